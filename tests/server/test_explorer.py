"""The explorer's server: who may ask, how much, what is answered, and that nothing brings it down."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs import small_study
from starlette.testclient import TestClient

import headscope
from headscope import HeadscopeError
from headscope.jobs.inspecting import Looking
from headscope.server import serving
from headscope.server.app import MOST_BYTES, application
from headscope.server.explorer import MOST_CHARACTERS, Explorer
from headscope.show.viewer.packing import pack

TOKEN = "the-token"
TEXT = "The potter made a bowl. The bowl cracked, so the potter made another bowl! Then the potter went home."


@pytest.fixture(scope="module")
def study_folder(tiny, tmp_path_factory) -> Path:
    return small_study(tiny, tmp_path_factory.mktemp("explored") / "s", max_windows=20).folder


@pytest.fixture(scope="module")
def explorer(tiny, study_folder) -> Explorer:
    return Explorer([tiny], headscope.read(study_folder))


def client_of(explorer: Explorer, **headers: str) -> TestClient:
    given_headers = {"X-Headscope-Token": TOKEN, **headers}
    return TestClient(application(explorer, TOKEN), base_url="http://127.0.0.1:8000", headers=given_headers)


@pytest.fixture(scope="module")
def client(explorer) -> TestClient:
    return client_of(explorer)


@pytest.fixture(scope="module")
def name(tiny) -> str:
    return tiny.name


def asked(name: str, **more: Any) -> dict[str, Any]:
    return {"text": TEXT, "model": name, **more}


class TestWhoMayAsk:
    def test_the_token_is_needed_everywhere(self, client):
        for path in ("/", "/api/study", "/api/openapi.json", "/nowhere"):
            for given_token in ("", "wrong", "é", TOKEN + "x"):
                answer = client.get(path, params={"token": given_token}, headers={"X-Headscope-Token": ""})
                assert answer.status_code == 403
                assert "token is missing or wrong" in answer.json()["problem"]
        assert client.get("/", params={"token": TOKEN}, headers={"X-Headscope-Token": ""}).status_code == 200

    @pytest.mark.parametrize(
        "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[::1", "0.0.0.0"]
    )
    def test_a_name_that_another_site_made_point_here_is_refused(self, client, host):
        answer = client.get("/", headers={"Host": host})
        assert answer.status_code == 403
        assert "127.0.0.1" in answer.json()["problem"]

    @pytest.mark.parametrize(
        "origin", ["http://evil.example", "null", "https://127.0.0.1:8000", "http://127.0.0.1:9", "http://["]
    )
    def test_a_page_of_another_site_may_not_ask(self, client, name, origin):
        answer = client.post("/api/look", json=asked(name), headers={"Origin": origin})
        assert answer.status_code == 403
        assert "another site" in answer.json()["problem"]

    def test_its_own_page_may(self, client):
        assert client.get("/", headers={"Origin": "http://127.0.0.1:8000"}).status_code == 200
        assert client.get("/", headers={"Host": "localhost:8000"}).status_code == 200

    def test_every_answer_says_what_a_browser_may_do_with_it(self, client):
        for path in ("/", "/api/study", "/nowhere"):
            answer = client.get(path)
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert "unsafe" not in answer.headers["Content-Security-Policy"]
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Cache-Control"] == "no-store"


class TestWhatIsAnswered:
    def test_a_text_is_looked_at_as_inspect_does(self, client, tiny, name):
        answer = client.post("/api/look", json=asked(name, length=64)).json()
        view = headscope.inspect(tiny, TEXT, length=64)
        expected = json.loads(json.dumps(pack(view)))
        assert {key: answer[key] for key in expected} == expected
        assert answer["fits"]
        assert "20 windows of 32 tokens" in answer["aboutStudy"]

    def test_any_window_of_a_text_can_be_had(self, client, tiny, name):
        long = TEXT * 3
        answers = [
            client.post("/api/look", json={**asked(name, length=32, window=k), "text": long}).json() for k in (0, 1)
        ]
        assert answers[0]["windows"] == answers[1]["windows"] > 2
        view = headscope.inspect(tiny, long, length=32, window=1)
        assert answers[1]["labels"] == pack(view)["labels"] != answers[0]["labels"]
        beyond = client.post("/api/look", json={**asked(name, length=32, window=99), "text": long})
        assert beyond.status_code == 400
        assert f"has {answers[0]['windows']} windows of 32 tokens; there is no window 99" in beyond.json()["problem"]

    def test_a_study_its_example_and_its_sums(self, client, study_folder):
        study = headscope.read(study_folder)
        assert len(client.get("/api/study").json()["roles"]) == len(study.heads)
        assert client.get("/api/example").json()["labels"] == pack(study.example)["labels"]
        assert client.get("/api/sums").json()["size"] == 32

    def test_without_a_study_that_is_said(self, tiny):
        answer = client_of(Explorer([tiny])).get("/api/study")
        assert answer.status_code == 400
        assert "There is no study here" in answer.json()["problem"]

    def test_without_a_model_the_study_is_shown(self, study_folder):
        about = Explorer([], headscope.read(study_folder)).about
        assert about["models"] == []
        assert about["first"] == {"from": "example"}

    @pytest.mark.parametrize(
        ("change", "status", "sentence"),
        [
            ({"text": " "}, 400, "The text is empty"),
            ({"model": "another"}, 400, "There is no model 'another' here"),
            ({"text": "x" * (MOST_CHARACTERS + 1)}, 413, "200,000 characters are the most"),
            ({"text": "x" * (MOST_BYTES + 1)}, 413, "The request is too large"),
            ({"length": 513}, 422, "length: "),
            ({"window": -1}, 422, "window: "),
            ({"text": None}, 422, "text: "),
        ],
    )
    def test_what_can_not_be_done_is_one_sentence(self, client, name, change, status, sentence):
        answer = client.post("/api/look", json={**asked(name), **change})
        assert answer.status_code == status
        assert sentence in answer.json()["problem"]
        assert "\n" not in answer.json()["problem"]

    def test_a_request_that_hides_its_size_is_refused_too(self, client):
        def endless() -> Iterator[bytes]:
            for _ in range(3):
                yield b"x" * MOST_BYTES

        answer = client.post("/api/look", content=endless())
        assert answer.status_code == 413

    def test_half_a_character_does_no_harm(self, client, name):
        body = json.dumps(asked(name)).replace("potter", "\\ud800potter")
        answer = client.post("/api/look", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (200, 400, 422)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def values_of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """What fits a field of the schema, at its edges and beyond, and what does not."""
    kind = schema.get("type")
    if kind == "integer":
        low, high = schema.get("minimum", -5), schema.get("maximum", 5)
        fitting: st.SearchStrategy[Any] = st.sampled_from([low - 1, low, 16, 40, high, high + 1])
    else:
        fitting = st.sampled_from(["", "\x00", "a", "The cat sat. " * 9, "猫が座った。", "\u202e‮", "🎉" * 50])
    return fitting | JSON


class TestNothingBringsItDown:
    def test_requests_made_from_its_schema_and_against_it(self, client, name):
        schema = client.get("/api/openapi.json").json()
        fields = schema["components"]["schemas"]["Look"]["properties"]
        paths = [(path, method) for path, methods in schema["paths"].items() for method in methods]
        assert ("/api/look", "post") in paths
        bodies = st.fixed_dictionaries({}, optional={key: values_of(field) for key, field in fields.items()})
        named = bodies.map(lambda body: {**body, "model": name})

        @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.sampled_from(paths), bodies | named | JSON, st.binary(max_size=60) | st.none(), st.text(max_size=10))
        def fuzzed(where: tuple[str, str], body: Any, raw: bytes | None, query: str) -> None:
            content = raw if raw is not None else json.dumps(body).encode()
            answer = client.request(
                where[1].upper(),
                where[0],
                content=content,
                params={"x": query},
                headers={"Content-Type": "application/json"},
            )
            assert answer.status_code in (200, 400, 413, 422), answer.text
            if answer.status_code != 200:
                assert answer.json()["problem"]

        fuzzed()
        assert client.post("/api/look", json=asked(name)).status_code == 200

    @pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH"])
    def test_other_methods_are_refused(self, client, method):
        assert client.request(method, "/api/look").status_code == 405

    def test_a_slow_request_does_not_hold_up_others(self, tiny, study_folder, monkeypatch):
        explorer = Explorer([tiny], headscope.read(study_folder))
        running, released = threading.Event(), threading.Event()

        real = Looking.at

        def slow(*given: Any) -> Any:
            running.set()
            released.wait(20)
            return real(*given)

        monkeypatch.setattr(Looking, "at", slow)
        client = client_of(explorer)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.post, "/api/look", json=asked(tiny.name))
            assert running.wait(20)
            assert client.get("/api/study").status_code == 200
            assert not waiting.done()
            released.set()
            assert waiting.result(20).status_code == 200


@pytest.fixture
def running(monkeypatch):
    """Serve an explorer on a port of its own, in a thread; gives its address."""
    servers = []
    real = serving.uvicorn.Server

    class Kept(real):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            servers.append(self)

    monkeypatch.setattr(serving.uvicorn, "Server", Kept)
    threads = []

    def start(explorer: Explorer) -> str:
        told: list[str] = []
        thread = threading.Thread(target=serving.serve, args=(explorer, serving.bound(0), told.append, False))
        thread.start()
        threads.append(thread)
        for _ in range(400):
            if told and servers and servers[-1].started:
                return told[0]
            time.sleep(0.02)
        raise AssertionError("The server did not start.")

    yield start
    for server in servers:
        server.should_exit = True
    for thread in threads:
        thread.join(10)


def test_ten_clients_at_once(minilm, running):
    """200 requests, every other for a text of its own: none refused, none waits ten seconds."""
    address = httpx.URL(running(Explorer([minilm])))
    headers = {"X-Headscope-Token": address.params["token"]}

    def one_client(number: int) -> list[float]:
        waited = []
        with httpx.Client(base_url=f"http://127.0.0.1:{address.port}", headers=headers, timeout=30) as client:
            for k in range(20):
                started = time.perf_counter()
                if k % 2:
                    answer = client.get("/")
                else:
                    body = {"text": f"Client {number}, question {k}. {TEXT}", "model": "minilm", "length": 32}
                    answer = client.post("/api/look", json=body)
                    assert answer.json()["segments"][1][0] == "Client"
                waited.append(time.perf_counter() - started)
                assert answer.status_code == 200
        return waited

    with ThreadPoolExecutor(10) as pool:
        waited = [seconds for times in pool.map(one_client, range(10)) for seconds in times]
    assert len(waited) == 200
    assert max(waited) < 10


def test_a_port_that_is_taken_is_said(running, tiny):
    port = httpx.URL(running(Explorer([tiny]))).port
    with pytest.raises(HeadscopeError, match=f"Port {port} can't be had"):
        serving.bound(port)


@pytest.mark.browser
class TestInTheBrowser:
    @pytest.fixture
    def page(self, browser, running, explorer):
        address = running(explorer)
        context = browser.new_context(viewport={"width": 1300, "height": 900})
        page = context.new_page()
        trouble: list[str] = []
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda problem: trouble.append(str(problem)))
        here = address.split("/?")[0]
        away = ("data:", "blob:", here)
        page.on("request", lambda request: None if request.url.startswith(away) else trouble.append(request.url))
        page.goto(address)
        page.wait_for_selector(".pairs tbody tr")
        yield page
        context.close()
        assert [told for told in trouble if "400 (Bad Request)" not in told] == []

    def look(self, page, text: str, button: str = "Look") -> None:
        page.locator("#given").fill(text)
        page.get_by_role("button", name=button, exact=True).click()

    def test_a_text_that_is_typed_is_shown_with_its_numbers(self, page, tiny, name):
        self.look(page, TEXT)
        page.locator(".flow", has_text="potter").wait_for()
        view = headscope.inspect(tiny, TEXT, length=64)
        layer, head = (
            int(part) for part in page.locator(".head h2").inner_text().replace("Layer ", "").split(", head ")
        )
        heading = page.locator(".pairs h3").inner_text()
        assert heading == f"{len(view.pairs(layer, head)):,} high pairs"
        assert "from=text" in page.url

    def test_two_texts_side_by_side_and_the_address_keeps_them(self, page):
        self.look(page, TEXT)
        page.locator(".flow", has_text="potter").wait_for()
        self.look(page, "Another text. It is shorter.", "Look, beside this")
        page.locator(".pane").nth(1).locator(".flow", has_text="shorter").wait_for()
        page.get_by_label("layer 0, head 2").first.click()
        for pane in page.locator(".pane").all():
            pane.get_by_role("heading", name="Layer 0, head 2").wait_for()
        page.reload()
        page.locator(".pane").nth(1).locator(".flow", has_text="shorter").wait_for()
        assert page.locator(".pane").count() == 2

    def test_the_studys_sums_are_shown_by_position(self, page):
        page.get_by_role("button", name="The study's sums", exact=True).click()
        page.locator(".pane > header", has_text="20 windows of 32 tokens, added up").wait_for()
        assert page.locator(".pairs").count() == 0
        assert page.locator("figure canvas").count() == 2

    def test_a_file_is_read_and_a_refusal_is_said(self, page, tmp_path):
        file = tmp_path / "letter.txt"
        file.write_text("A letter from the harbour. " * 40, "utf-8")
        page.set_input_files("input[type=file]", file)
        page.locator(".status", has_text="Window 0; the text has").wait_for()
        page.locator("input[type=number]").fill("99")
        page.get_by_role("button", name="Look", exact=True).click()
        page.locator(".status.problem", has_text="there is no window 99").wait_for()

    def test_first_paint_is_quick(self, page):
        page.reload()
        page.wait_for_selector(".pairs tbody tr")
        painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
        assert painted < 2000  # half a second where nothing else runs
