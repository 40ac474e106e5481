"""headscope inspect: the terminal, the page, the notebook, and what is refused. Texts may hold anything."""

from __future__ import annotations

import io
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import headscope
from headscope import HeadscopeError, cli
from headscope.one_text.describing import about_head, segments, stands_out
from headscope.show.pages.view_page import COARSE, FINEST, HIGH, attention_bytes, similarity_bytes
from headscope.show.terminal import show
from headscope.wording import short, visible

TEXT = "The potter made a bowl. The bowl cracked, so the potter made another bowl!"
LONG_WORD = "abcdefghij" * 1000
HOSTILE = (
    '<script>alert(1)</script> & "quoted" <!-- {{ 7 * 7 }} </div></script><img src=x onerror=alert(2)>. '
    "Emoji 👩‍👩‍👧 🎉 and flags. שלום עולם, مرحبا. "
    f"{LONG_WORD} \x1b[31mred\x1b[0m \u202eturned\u202c end."
)


@pytest.fixture
def call(monkeypatch, capsys):
    """Inside this process: (exit code, standard output, standard error)."""

    def calling(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["headscope", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        told = capsys.readouterr()
        return code, told.out, told.err

    return calling


@pytest.fixture(scope="module")
def hostile(tiny) -> headscope.View:
    return headscope.inspect(tiny, HOSTILE)


class Reader(HTMLParser):
    """The tags of a page, and the text of its element #text (or of all, for a snippet)."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.shown = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.shown += data


def printed(view: headscope.View, heads: list[int], *, top: int = 12, colour: bool = False, layer: int = 2) -> str:
    console = Console(
        file=io.StringIO(), width=100, force_terminal=colour, color_system="truecolor" if colour else None
    )
    show(console, view, [(layer, head) for head in heads], top)
    return console.file.getvalue()


def test_the_terminal_shows_the_pairs_and_the_text(call, tiny_folder, tiny):
    code, out, _ = call("inspect", TEXT, "--model", tiny_folder, "--layer", 1, "--head", "2,0", "--top", 4)
    assert code == 0
    view = headscope.inspect(tiny, TEXT)
    assert out.index("Layer 1, head 0") < out.index("Layer 1, head 2")
    for head in (0, 2):
        part = out[out.index(f"Layer 1, head {head}") :]
        rows = re.findall(r"^ +(\d+) +(\S+) +(\d+) +(\S+) +(\d+) +(\d\.\d\d)", part, re.M)[:4]
        pairs = view.pairs(1, head).head(4)
        told = zip(pairs.i, pairs.token_i, pairs.j, pairs.token_j, pairs.distance, pairs.value, strict=True)
        assert rows == [(str(i), a, str(j), b, str(d), f"{value:.2f}") for i, a, j, b, d, value in told]
        assert f"and {len(view.pairs(1, head)) - 4} more" in part


def shown_heads(out: str) -> list[tuple[int, int]]:
    return [(int(layer), int(head)) for layer, head in re.findall(r"^Layer (\d+), head (\d+)$", out, re.M)]


def test_by_default_the_most_telling_heads_of_all_layers_are_shown(call, tiny_folder, tiny):
    _, out, _ = call("inspect", TEXT, "--model", tiny_folder)
    view = headscope.inspect(tiny, TEXT)
    assert shown_heads(out) == view.telling_heads()
    for place in view.telling_heads():
        assert (stands_out(view, *place) or about_head(view, *place)) in " ".join(out.split())
    assert "Shown are the most telling of 12 heads in layers 0 to 2" in out


@pytest.mark.parametrize("layer", [0, -1])
def test_with_a_layer_its_most_telling_heads_are_shown(call, tiny_folder, tiny, layer):
    _, out, _ = call("inspect", TEXT, "--model", tiny_folder, "--layer", layer)
    assert shown_heads(out) == headscope.inspect(tiny, TEXT).telling_heads(layer)
    assert f"Shown are the most telling of 4 heads in layer {layer % 3}" in out


def test_heads_without_a_layer_are_those_of_the_last(call, tiny_folder):
    _, out, _ = call("inspect", TEXT, "--model", tiny_folder, "--head", "3,1")
    assert shown_heads(out) == [(2, 1), (2, 3)]
    assert "most telling" not in out


def test_page_and_notebook_open_at_the_most_telling_head(tiny):
    view = headscope.inspect(tiny, TEXT)
    layer, head = view.telling_heads()[0]
    assert f'"layer": {layer},' in view.html()
    assert f'"head": {head},' in view.html()
    assert f"Layer {layer}, head {head}: " in view._repr_html_()
    assert f'"head": {view.telling_heads(0)[0][1]},' in view.html(layer=0)
    assert '"layer": 2,' in view.html(head=1)
    assert stands_out(view, layer, head) in isolated_away(view._repr_html_())


def isolated_away(html: str) -> str:
    return html.replace("\u2068", "").replace("\u2069", "")


def test_without_colours_the_tokens_of_the_table_are_marked(tiny):
    view = headscope.inspect(tiny, TEXT)
    out = printed(view, [1], top=1)
    first = view.pairs(2, 1).iloc[0]
    assert out.count("«") == 2
    assert f"«{first.token_i}»" in out
    assert f"«{first.token_j}»" in out


def test_with_colours_the_focal_token_is_underlined_and_nothing_else(tiny):
    view = headscope.inspect(tiny, TEXT)
    out = printed(view, [1], colour=True)
    underlined = re.findall(r"\x1b\[[\d;]*4;30;48[\d;]*m([^\x1b]+)\x1b", out)
    assert underlined == [view.labels[place] for place in view.focal(2, 1).positions]


def test_a_file_and_standard_input_are_read(call, tiny_folder, tmp_path, monkeypatch):
    file = tmp_path / "potter.txt"
    file.write_text(TEXT, "utf-8")
    _, from_argument, _ = call("inspect", TEXT, "--model", tiny_folder)
    _, from_file, _ = call("inspect", file, "--model", tiny_folder)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    _, from_input, _ = call("inspect", "-", "--model", tiny_folder)
    assert from_argument == from_file == from_input


def test_words_are_whole(call, tiny_folder):
    _, out, _ = call("inspect", "The cartographer met the cartographer.", "--model", tiny_folder, "--words", "--top", 0)
    assert re.search(r"\d+ +cartographer +\d+ +cartographer .*equal", out)
    _, out, _ = call("inspect", "The cartographer met the cartographer.", "--model", tiny_folder, "--top", 0)
    assert not re.search(r"\d+ +cartographer ", out)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([""], "The text is empty"),
        (["   "], "The text is empty"),
        (["missing.txt"], "There is no file missing.txt"),
        ([TEXT, "--layer", "99"], "There is no layer 99: the model has 3, numbered 0 to 2"),
        ([TEXT, "--head", "7"], "There is no head 7: a layer has 4, 0 to 3"),
        ([TEXT, "--head", "one"], "'one' is not a list of numbers"),
        ([TEXT, "--threshold", "1.5"], "--threshold is 1.5"),
        ([TEXT, "--special", "maybe"], "--special is 'maybe'"),
        ([TEXT, "--length", "500"], "takes at most 96 tokens"),
        ([TEXT, "--html", "no/such/folder/page.html"], "no/such/folder/page.html can't be written"),
        ([TEXT, "--model", "./no-such-model"], "no-such-model"),
        ([TEXT, "--study", "no/such/study"], "There is no study folder no/such/study"),
    ],
)
def test_what_can_not_be_done_is_one_sentence_and_exit_code_2(call, tiny_folder, arguments, sentence):
    model = [] if "--model" in arguments else ["--model", tiny_folder]
    code, out, err = call("inspect", *arguments, *model)
    assert code == 2
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""


def test_csv_holds_every_pair_of_the_heads_shown(call, tiny_folder, tiny, tmp_path):
    call("inspect", TEXT, "--model", tiny_folder, "--head", "1,3", "--csv", tmp_path / "pairs.csv", "--top", 1)
    table = pd.read_csv(tmp_path / "pairs.csv")
    view = headscope.inspect(tiny, TEXT)
    assert list(table.columns[:4]) == ["layer", "head", "i", "j"]
    for head in (1, 3):
        mine = table[table["head"] == head].reset_index(drop=True)
        expected = view.pairs(2, head)
        assert mine[["i", "j", "token_i", "token_j"]].equals(expected[["i", "j", "token_i", "token_j"]])
        assert mine.value.to_numpy() == pytest.approx(expected.value.to_numpy())
    assert set(table.layer) == {2}


def test_the_picture_shows_the_matrices(call, tiny_folder, tiny, tmp_path):
    from headscope.show.view_picture import draw

    view = headscope.inspect(tiny, TEXT)
    axes = draw(view, [(1, 0), (2, 3)]).axes
    images = [each.images[0].get_array() for each in axes if each.images]
    expected = [view.attention[1, 0], view.normalised[1, 0], view.attention[2, 3], view.normalised[2, 3]]
    assert len(images) == 4
    for image, matrix in zip(images, expected, strict=True):
        assert np.asarray(image) == pytest.approx(matrix)
    code, *_ = call("inspect", TEXT, "--model", tiny_folder, "--png", tmp_path / "maps.png")
    assert code == 0
    assert (tmp_path / "maps.png").read_bytes().startswith(b"\x89PNG")


def test_bytes_of_the_page_tell_exactly_which_pairs_are_high(tiny):
    view = headscope.inspect(tiny, TEXT)
    upper = np.triu_indices(view.size, 1)
    for head in range(view.heads):
        normalised = view.normalised[1, head]
        first, more = similarity_bytes(normalised, view.threshold)
        high = normalised[upper] > view.threshold
        assert ((first >= HIGH) == high).all()
        fine = ((first[high].astype(int) - HIGH) * 256 + more) / FINEST
        assert view.threshold + (1 - view.threshold) * fine == pytest.approx(normalised[upper][high], abs=1e-4)
        low = -1 + (1 + view.threshold) * first[~high] / COARSE
        assert low == pytest.approx(normalised[upper][~high].clip(-1), abs=0.011)
        weights = (attention_bytes(view.attention[1, head]) / COARSE) ** 2
        assert weights == pytest.approx(view.attention[1, head].reshape(-1), abs=0.017)


def test_no_token_is_lost_in_the_text(hostile):
    assert "".join(piece.characters for piece in segments(hostile) if not piece.special) == hostile.text
    assert hostile.text == HOSTILE[: len(hostile.text)]
    assert LONG_WORD in hostile.text


def test_the_page_is_one_file_that_asks_for_nothing(hostile):
    page = Reader(hostile.html())
    assert not [tag for tag, attributes in page.tags if {"src", "href", "srcset", "action"} & set(attributes)]
    assert not [tag for tag, _ in page.tags if tag in ("link", "iframe", "object", "embed", "img", "base")]
    policy = [attributes["content"] for tag, attributes in page.tags if "http-equiv" in attributes]
    assert policy[0].startswith("default-src 'none'")


def test_text_on_the_page_stays_text(hostile):
    html = hostile.html()
    assert len(re.findall(r"<script\b", html)) == 2
    assert len(re.findall(r"</script>", html)) == 2
    assert HOSTILE[: len(hostile.text)] in Reader(html).shown.replace("[CLS]", "").replace("[SEP]", "")


def test_a_notebook_shows_text_without_script_or_network(hostile):
    snippet = Reader(hostile._repr_html_())
    assert {tag for tag, _ in snippet.tags} <= {
        "div", "p", "strong", "span", "table", "caption", "thead", "tbody", "tr", "th", "td", "bdi",
    }  # fmt: skip
    assert "<script>alert(1)</script>" in snippet.shown
    assert LONG_WORD not in snippet.shown
    first = hostile.pairs(*hostile.telling_heads()[0]).iloc[0]
    assert f"{first.value:.2f}" in snippet.shown


def test_a_terminal_is_not_steered_by_the_text(hostile):
    out = printed(hostile, [0, 1], top=500)
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert LONG_WORD not in out.replace("\n", "")
    assert max(map(len, out.splitlines())) <= 110
    assert "·[31mred" in re.sub("[«»]", "", out)


def test_labels_are_short_and_on_one_line():
    assert short("constabulary", 8) == "constab…"
    assert short("a\nb\tc") == "a·b·c"
    assert visible("a\x1b[0m\u2066b\n") == "a·[0m·b\n"
    assert visible("👩‍👧 می‌خواهم") == "👩‍👧 می‌خواهم"


@pytest.fixture(scope="module")
def browser():
    driver = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    with driver.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def file(hostile, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(hostile.html(layer=2, head=1), "utf-8")
    return file


@pytest.mark.browser
class TestInTheBrowser:
    @pytest.fixture
    def opened(self, browser, file):
        """Open the page; what goes wrong in it, or leaves it, is collected in `page.trouble`."""
        pages = []

        def open_page(width: int, scheme: str = "light"):
            page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
            page.trouble = []
            page.on("console", lambda message: page.trouble.append(message.text))
            page.on("pageerror", lambda problem: page.trouble.append(str(problem)))
            page.on("dialog", lambda dialog: (page.trouble.append("a dialog"), dialog.dismiss()))
            page.on("request", lambda asked: page.trouble.append(asked.url) if asked.url != file.as_uri() else None)
            page.goto(file.as_uri())
            page.wait_for_selector("#pairs tr")
            pages.append(page)
            return page

        yield open_page
        for page in pages:
            assert page.trouble == []
            page.close()

    @pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (400, "dark")])
    def test_the_layout_stays_intact(self, opened, width, scheme):
        page = opened(width, scheme)
        assert page.evaluate("document.scrollingElement.scrollWidth") == width
        assert page.locator("#text").inner_text().count("<script>alert(1)</script>") == 1
        for name in ("similarity", "attention"):
            box = page.locator(f"#{name}").bounding_box()
            assert box["width"] == pytest.approx(box["height"], abs=1)
            assert box["width"] > 300

    def test_a_text_from_right_to_left_is_read_from_the_right(self, browser, minilm, tmp_path):
        text = "جلست القطة على السجادة. هل رأيت الكلب؟\nThe end of it."
        file = tmp_path / "arabic.html"
        file.write_text(headscope.inspect(minilm, text).html(2, 1), "utf-8")
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.goto(file.as_uri())
        page.wait_for_selector("#heads button")
        left = "token => document.querySelector(`#text [data-token='${token}']`).getBoundingClientRect().left"
        tokens = page.locator("#text [data-token]").count()
        assert page.evaluate(left, 1) > page.evaluate(left, 2)
        assert page.evaluate(left, tokens - 3) < page.evaluate(left, tokens - 2)
        for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowLeft"):
            page.locator("#text").press(key)
        assert page.locator("#text .chosen").get_attribute("data-token") == "1"
        page.close()

    def test_the_table_shows_the_pairs(self, opened, hostile):
        page = opened(1200)
        more = page.locator("#more")
        if more.is_visible():
            more.click()
        rows = page.evaluate(
            "[...document.querySelectorAll('#pairs tr')].map(r => [...r.cells].map(c => c.textContent))"
        )
        pairs = hostile.pairs(2, 1)
        told = {(row[0], row[2]): (row[1], row[3], row[5], row[6]) for row in rows}
        assert len(rows) == len(pairs) == len(told)
        for pair in pairs.itertuples():
            notes = ", ".join(["same sentence"] * pair.same_sentence + ["equal"] * pair.equal)
            first, second, value, noted = told[str(pair.i), str(pair.j)]
            assert (first, second, noted) == (short(pair.token_i), short(pair.token_j), notes)
            assert float(value) == pytest.approx(pair.value, abs=0.0051)

    def test_a_chosen_token_colours_the_text_by_its_similarity(self, opened, hostile):
        page = opened(1200)
        page.locator("#text [data-token='3']").click()
        page.mouse.move(0, 0)
        alpha = "Number(getComputedStyle(s).backgroundColor.match(/[\\d.]+/g)[3] ?? 1)"
        spans = "[...document.querySelectorAll('#text [data-token]')]"
        shades = page.evaluate(f"Object.fromEntries({spans}.map(s => [s.dataset.token, {alpha}]))")
        row = np.abs(hostile.normalised[2, 1][3])
        for token, shade in shades.items():
            assert shade == pytest.approx(0.8 * row[int(token)], abs=0.02)
        assert "is most similar to" in page.locator("#probe").inner_text()

    def test_keys_choose_tokens_and_heads(self, opened, hostile):
        page = opened(1200)
        page.locator("#text").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert page.locator("#text .chosen").get_attribute("data-token") == "1"
        page.keyboard.press("Escape")
        assert page.locator("#text .chosen").count() == 0
        page.locator("#heads [aria-selected=true]").focus()
        page.keyboard.press("ArrowUp")
        page.locator("#chosen", has_text="Layer 1, head 1").wait_for()
        assert f"{len(hostile.pairs(1, 1)):,} of" in page.locator("#about").inner_text()


@pytest.mark.parametrize("several", [[TEXT, TEXT], pd.Series([TEXT, TEXT]), pd.DataFrame({"text": [TEXT, TEXT]})])
def test_several_texts_are_refused_not_dropped(tiny, several):
    with pytest.raises(HeadscopeError, match="More than one text was given"):
        headscope.inspect(tiny, several)


def test_one_text_may_lie_in_a_list_or_a_file(call, tiny, tiny_folder, tmp_path):
    assert headscope.inspect(tiny, [TEXT]).text == headscope.inspect(tiny, TEXT).text
    (tmp_path / "a.csv").write_text("text\nThe cat sat.\nThe cat slept.\n")
    code, _, err = call("inspect", tmp_path / "a.csv", "--model", tiny_folder)
    assert code == 2
    assert "a.csv" in err
    assert "More than one text" in err
    with pytest.raises(HeadscopeError, match="text is None"):
        headscope.inspect(tiny, None)
