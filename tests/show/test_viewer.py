"""The viewer: what is packed is what the library says, and what a browser shows is what was packed."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from runs import small_study

import headscope
from headscope.measure.definitions import compared, context_similarity, normalise, pairs_among
from headscope.one_text.alike import most_alike
from headscope.one_text.layer_array import LayerArray
from headscope.show.viewer.of_study import pack_study, pack_sums
from headscope.show.viewer.packing import (
    FINE,
    STRONG,
    deflated,
    exact_values,
    levels,
    pack,
    packed_attention,
    packed_output,
    small,
    unpacked_output,
)
from headscope.show.viewer.page import MODULES, script
from headscope.show.viewer.page import page as viewer_page
from headscope.wording import short

TEXT = (
    "The potter made a bowl. The bowl cracked, so the potter made another bowl! Nobody bought the first bowl; "
    "the second one, which had no crack, was sold before noon. Then the potter went home."
)
LONG_WORD = "abcdefghij" * 1000
HOSTILE = (
    '<script>alert(1)</script> & "quoted" <!-- {{ 7 * 7 }} </div></script><img src=x onerror=alert(2)>. '
    "Emoji 👩‍👩‍👧 🎉 and flags. שלום עולם, مرحبا. "
    f"{LONG_WORD} \x1b[31mred\x1b[0m \u202eturned\u202c end."
)


@pytest.fixture(scope="module")
def view(tiny) -> headscope.View:
    return headscope.inspect(tiny, TEXT)


@pytest.fixture(scope="module")
def hostile(tiny) -> headscope.View:
    return headscope.inspect(tiny, HOSTILE)


def rounded(view: headscope.View, layer: int, head: int) -> np.ndarray:
    """N as a browser has it of what is sent."""
    rows = compared(unpacked_output(*packed_output(view.output[layer, head])), view.part, view.similarity_option)
    return normalise(context_similarity(rows), pairs_among(view.part))


class TestPacking:
    @pytest.mark.parametrize("similarity", ["dot", "centred", "cosine"])
    @pytest.mark.parametrize("threshold", [0.05, 0.3, 0.62])
    def test_the_browsers_high_pairs_are_the_librarys(self, view, similarity, threshold):
        other = replace(view, similarity_option=similarity, threshold=threshold)
        for layer in other.layers:
            for head in range(other.heads):
                there = rounded(other, layer, head)
                for place, value in exact_values(other, layer, head):
                    there.reshape(-1)[place] = value
                assert (np.triu(there > np.float32(threshold)) == np.triu(other.high(layer, head))).all()
                assert np.triu(there) == pytest.approx(np.triu(other.normalised[layer, head]), abs=1e-4)

    def test_a_pair_that_rounding_would_move_is_sent_as_it_is(self, view):
        here, there = view.normalised[1, 2], rounded(view, 1, 2)
        place = int(np.triu(np.abs(here - there), 1).argmax())
        between = float(here.reshape(-1)[place] + there.reshape(-1)[place]) / 2
        sent = dict(exact_values(replace(view, threshold=between), 1, 2))
        assert sent[place] == here.reshape(-1)[place]

    def test_strong_weights_are_exact_and_small_ones_near(self, view):
        attention = view.attention[1, 0]
        packed = packed_attention(attention)
        first, second = packed[: view.size**2], packed[view.size**2 :]
        weights = small(view.size) * (first / levels(view.size)) ** 2
        strong = first >= STRONG
        weights[strong] = ((first[strong].astype(int) - STRONG) * 256 + second) / FINE
        weights = weights.reshape(view.size, view.size).T
        assert weights[attention >= small(view.size)] == pytest.approx(
            attention[attention >= small(view.size)], abs=2e-5
        )
        assert weights == pytest.approx(attention, abs=0.001)

    def test_numbers_of_attention_are_those_of_a_study(self, view):
        summary = view.summary().set_index(["layer", "head"])
        own = pack(view)["own"]
        assert {"attention_self", "attention_to_comma"} <= set(own)
        for name, rows in own.items():
            for layer in view.layers:
                for head in range(view.heads):
                    assert rows[layer][head] == pytest.approx(summary.loc[(layer, head), name], abs=2e-6)

    def test_heads_most_alike_have_the_largest_correlation(self, view):
        pairs = np.triu_indices(view.size, 1)
        here = view.normalised[1, 2][pairs]
        found = {
            (layer, head): np.corrcoef(here, view.normalised[layer, head][pairs])[0, 1]
            for layer in view.layers
            for head in range(view.heads)
            if (layer, head) != (1, 2)
        }
        told = most_alike(view, 3)[1, 2]
        assert [place for place, _ in told] == sorted(found, key=lambda place: -found[place])[:3]
        assert [value for _, value in told] == pytest.approx(sorted(found.values())[:-4:-1], abs=1e-5)

    @pytest.mark.parametrize(("size", "most"), [(128, 6e6), (512, 25e6)])
    def test_a_page_of_twelve_layers_and_heads_is_small_enough(self, gte_small, sample, size, most):
        """Of every sixth head, as if it were as wide as those of BERT-12, which put out 64 numbers."""
        view = headscope.inspect(gte_small, " ".join(sample), length=size)
        heads = [(layer, head) for layer in view.layers for head in range(view.heads)][::6]
        attention = sum(len(deflated(packed_attention(view.attention[place]))) for place in heads)
        outputs = sum(2 * len(deflated(packed_output(view.output[place])[0])) for place in heads)
        told = 400_000  # tokens, sentences about heads, a study beside them
        assert 6 * (attention + outputs) + len(script()) + told < most


class TestStudy:
    def test_every_number_stands_beside_what_it_is_held_against(self, planted_study):
        packed = pack_study(planted_study)
        beside = planted_study.beside
        heads = planted_study.manifest.model.heads
        by_name = {column["name"]: column for column in packed["columns"]}
        assert [one["name"] for one in packed["beside"]] == [
            "chance", "given_distance", "tokens", "sentences", "weights",
        ]  # fmt: skip
        for row in beside[(beside["head"] >= 0) & (beside["column"] == "same_sentence_probability")].itertuples():
            place = packed["layers"].index(row.layer) * heads + row.head
            column = by_name[row.column]
            assert column["texts"][place] == f"{100 * row.value:.1f}"
            assert column["intervals"][place] == f"{100 * row.low:.1f} to {100 * row.high:.1f}"
            assert column["beside"]["chance"][place] == f"{100 * row.chance:.1f}"
            assert column["beside"]["tokens"][place] in ("", f"{100 * row.tokens:.1f}")
        assert packed["roles"] == planted_study.heads["role"].tolist()
        assert all(len(one) <= 6 for one in packed["alike"])

    def test_sums_are_means_over_windows(self, tiny, tmp_path):
        study = small_study(tiny, tmp_path / "s", max_windows=20)
        packed = pack_sums(study)
        content = zlib.decompress(base64.b64decode(packed["measured"][1][2]))
        size = packed["size"]
        maps = np.frombuffer(content, "<u2").reshape(3, size, size)
        for name, scale, whole in zip(
            ("similarity_sum", "high_count", "attention_sum"), packed["scales"][1][2], maps, strict=True
        ):
            expected = study.arrays[name][1, 2] / study.windows
            assert scale[0] + scale[1] * whole == pytest.approx(expected, abs=1e-4)


class TestPage:
    def test_it_is_one_file_that_asks_for_nothing(self, hostile):
        made = hostile.html()
        assert not re.findall(r"<(?:link|iframe|object|embed|base)\b", made)
        assert not re.findall(r"\bsrc=\"(?!data:)", re.sub(r"<script.*?</script>", "", made, flags=re.DOTALL))
        allowed = re.search(r"script-src 'sha256-([^']+)'", made.replace("&#39;", "'"))[1]
        ran = re.search(r"<script>(.*?)</script>", made, re.DOTALL)[1]
        assert base64.b64encode(hashlib.sha256(ran.encode()).digest()).decode() == allowed

    def test_text_on_it_stays_text(self, hostile):
        made = hostile.html()
        assert len(re.findall(r"<script\b", made)) == 2
        assert len(re.findall(r"</script>", made)) == 2
        assert "<img src=x" not in made

    def test_the_script_takes_in_every_module(self):
        folder = Path(headscope.__file__).parent / "show" / "viewer" / "script"
        assert {path.stem for path in folder.glob("*.js")} == set(MODULES)
        assert "import " not in re.sub(r"//.*", "", script())
        assert "innerHTML" not in script()

    def test_a_notebook_has_it_in_a_frame_and_beneath_what_needs_none(self, hostile):
        shown = hostile._repr_html_()
        assert shown.count("<iframe") == 1
        assert 'sandbox="allow-scripts allow-downloads"' in shown
        static = shown[shown.index("</iframe>") :]
        assert "<script>alert(1)</script>" in html.unescape(re.sub(r"<[^>]+>", "", static))
        assert "<script" not in static
        assert LONG_WORD not in static
        first = hostile.pairs(*hostile.telling_heads()[0]).iloc[0]
        assert f"{first.value:.2f}" in static

    def test_a_notebook_is_not_weighed_down(self, hostile, monkeypatch):
        monkeypatch.setattr("headscope.show.pages.view_page.MOST_IN_A_NOTEBOOK", 1000)
        shown = hostile._repr_html_()
        assert "<iframe" not in shown
        assert "view.html()" in shown


def table_rows(page, selector: str) -> list[list[str]]:
    return page.evaluate(
        f"[...document.querySelectorAll('{selector} tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )


def all_pairs(page) -> list[list[str]]:
    more = page.locator(".pairs > button")
    while more.is_visible():
        more.click()
    return table_rows(page, ".pairs")


def slide(page, value: float) -> None:
    page.locator("#threshold").evaluate(
        "(range, value) => { range.value = value; range.dispatchEvent(new Event('input')); }", value
    )
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.mark.browser
class TestInTheBrowser:
    @pytest.fixture(scope="class")
    def files(self, view, hostile, tiny, tmp_path_factory) -> dict[str, Path]:
        folder = tmp_path_factory.mktemp("pages")
        study = small_study(tiny, folder / "study", windows="first")
        pages = {
            "plain": view.html(layer=2, head=1),
            "hostile": hostile.html(layer=2, head=1),
            "beside": replace(view, study=study).html(1, 2),
            "notebook": f"<!doctype html><title>n</title><body>{hostile._repr_html_()}",
        }
        for name, made in pages.items():
            (folder / f"{name}.html").write_text(made, "utf-8")
        return {name: folder / f"{name}.html" for name in pages}

    @pytest.fixture
    def opened(self, browser, files):
        """Open a page; what goes wrong in it, or leaves it, is collected."""
        contexts, trouble = [], []

        def open_page(name: str, width: int = 1300, scheme: str = "light", address: str = "", scripts: bool = True):
            context = browser.new_context(
                viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=scripts
            )
            contexts.append(context)
            page = context.new_page()
            page.on("console", lambda message: trouble.append(message.text))
            page.on("pageerror", lambda problem: trouble.append(str(problem)))
            page.on("dialog", lambda dialog: (trouble.append("a dialog"), dialog.dismiss()))
            page.on("request", lambda asked: trouble.append(asked.url) if asked.url.startswith("http") else None)
            page.goto(files[name].as_uri() + address)
            if scripts and name != "notebook":
                page.wait_for_selector(".pairs tbody tr")
            return page

        yield open_page
        for context in contexts:
            context.close()
        assert trouble == []

    @pytest.mark.parametrize(("width", "scheme"), [(1300, "light"), (400, "dark")])
    def test_the_layout_stays_intact(self, opened, width, scheme):
        page = opened("hostile", width, scheme)
        assert page.evaluate("document.scrollingElement.scrollWidth") == width
        assert page.locator(".text").inner_text().count("<script>alert(1)</script>") == 1
        for canvas in page.locator("figure canvas").all():
            box = canvas.bounding_box()
            assert box["width"] == pytest.approx(box["height"], abs=1)
            assert box["width"] > 300

    def test_the_table_shows_the_pairs(self, opened, hostile):
        page = opened("hostile")
        rows = all_pairs(page)
        pairs = hostile.pairs(2, 1)
        told = {(row[0], row[2]): row for row in rows}
        assert len(rows) == len(pairs) == len(told)
        for pair in pairs.itertuples():
            row = told[str(pair.i), str(pair.j)]
            assert (row[1], row[3]) == (short(pair.token_i), short(pair.token_j))
            assert row[4] == str(pair.distance)
            assert float(row[5]) == pytest.approx(pair.value, abs=0.0051)
            assert row[6:] == ["same" * pair.same_sentence, "equal" * pair.equal]

    @pytest.mark.parametrize("similarity", ["centred", "cosine", "dot"])
    def test_the_slider_and_the_choice_of_similarity_give_the_librarys_pairs(self, opened, view, similarity):
        page = opened("plain")
        page.select_option("#how", similarity)
        for threshold in (0.2, 0.55):
            slide(page, threshold)
            expected = replace(view, similarity_option=similarity, threshold=threshold).pairs(2, 1)
            page.get_by_role("heading", name=re.compile(rf"^{len(expected):,} high pairs$")).wait_for(timeout=3000)
            rows = {(int(row[0]), int(row[2])): float(row[5]) for row in all_pairs(page)}
            assert set(rows) == set(zip(expected.i, expected.j, strict=True))
            for pair in expected.itertuples():
                assert rows[pair.i, pair.j] == pytest.approx(pair.value, abs=0.0051)

    def test_numbers_are_those_of_the_library_and_of_the_study(self, opened, view, files):
        page = opened("beside")
        study = headscope.read(files["beside"].parent / "study")
        head = study.heads.set_index(["layer", "head"]).loc[(1, 2)]
        here = view.summary().set_index(["layer", "head"]).loc[(1, 2)]
        rows = {row[0]: row for row in table_rows(page, ".numbers")}
        for label, name in (
            ("same sentence, %", "same_sentence_probability"),
            ("focal share, %", "focal_share"),
            ("on itself, %", "attention_self"),
        ):
            assert rows[label][1] == f"{100 * here[name]:.1f}"
            assert rows[label][3] == f"{100 * head[name]:.1f}"
        assert rows["same sentence, %"][2] == f"{100 * here['same_sentence_chance']:.1f}"
        low, high = (
            study.intervals.query("layer == 1 and head == 2 and column == 'same_sentence_probability'")[end].item()
            for end in ("low", "high")
        )
        assert rows["same sentence, %"][4] == f"{100 * low:.1f} to {100 * high:.1f}"

    def test_a_click_holds_a_token_and_escape_or_a_second_click_lets_go(self, opened, view):
        page = opened("plain")
        token = int(view.high(2, 1).sum(1).argmax())
        span = page.locator(f".flow [data-token='{token}']")
        span.click()
        page.mouse.move(0, 0)
        assert page.locator(".flow .chosen").get_attribute("data-token") == str(token)
        assert page.locator(".arcs path").count() == min(60, int(view.high(2, 1)[token].sum()))
        alpha = "Number(getComputedStyle(s).backgroundColor.match(/[\\d.]+/g)[3] ?? 1)"
        spans = "[...document.querySelectorAll('.flow [data-token]')]"
        shades = page.evaluate(f"Object.fromEntries({spans}.map(s => [s.dataset.token, {alpha}]))")
        row = np.abs(view.normalised[2, 1][token])
        for other, shade in shades.items():
            assert shade == pytest.approx(0.8 * row[int(other)], abs=0.005)
        page.keyboard.press("Escape")
        assert page.locator(".flow .chosen").count() == 0
        span.click()
        span.click()
        page.mouse.move(0, 0)
        page.locator(".flow .chosen").first.wait_for(state="detached")

    def test_a_cell_that_is_pointed_at_lights_both_tokens(self, opened, view):
        page = opened("plain")
        canvas = page.locator("figure canvas").first
        canvas.scroll_into_view_if_needed()
        canvas.focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown"):
            canvas.press(key)
        page.locator(".flow .chosen").nth(1).wait_for()
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.locator(".flow .chosen").count() == 2
        told = page.locator("figure .read").all_inner_texts()
        assert told[0].endswith(f": {view.normalised[2, 1][1, 2]:.3f}")
        weight = view.attention[2, 1][1, 2]
        assert told[1].endswith(f": {100 * weight:.1f} %" if weight >= small(view.size) else "under 1.6 %")

    def test_keys_and_moves_that_come_before_they_are_lit_are_not_lost(self, opened, view):
        page = opened("plain")
        canvas = page.locator("figure canvas").first
        cell = page.evaluate(
            """() => new Promise((done) => {
                const canvas = document.querySelector("figure canvas");
                for (const key of ["ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown"])
                    canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
                requestAnimationFrame(() => requestAnimationFrame(() => done(
                    document.querySelector("figure .read").textContent)));
            })"""
        )
        assert cell.startswith("1 ")
        assert cell.endswith(f": {view.normalised[2, 1][1, 2]:.3f}")
        canvas.scroll_into_view_if_needed()
        lit = page.evaluate(
            """() => new Promise((done) => {
                const canvas = document.querySelector("figure canvas"), box = canvas.getBoundingClientRect();
                const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 3, bubbles: true };
                canvas.dispatchEvent(new PointerEvent("pointerleave"));
                requestAnimationFrame(() => requestAnimationFrame(() => {
                    canvas.dispatchEvent(new PointerEvent("pointermove", at));
                    canvas.dispatchEvent(new PointerEvent("pointerleave"));
                    requestAnimationFrame(() => requestAnimationFrame(() => done(
                        document.querySelectorAll(".flow .chosen").length)));
                }));
            })"""
        )
        assert lit == 0

    def test_keys_choose_tokens_heads_and_layers(self, opened, view):
        page = opened("plain")
        page.locator(".text").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert page.locator(".flow .chosen").get_attribute("data-token") == "1"
        page.keyboard.press("Escape")
        page.locator(".atlas [aria-selected=true]").focus()
        page.keyboard.press("ArrowUp")
        page.get_by_role("heading", name="Layer 1, head 1").wait_for()
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "layer 1, head 1"
        page.get_by_role("heading", name=re.compile(rf"^{len(view.pairs(1, 1)):,} high pairs$")).wait_for()
        page.get_by_role("button", name="↓ layer").click()
        page.get_by_role("heading", name="Layer 2, head 1").wait_for()
        page.get_by_label("layer 0, mean of its heads").click()
        page.get_by_role("heading", name="Layer 0, mean of its heads").wait_for()

    def test_the_address_keeps_what_is_seen(self, opened, view):
        page = opened("plain")
        page.get_by_label("layer 0, head 3").click()
        page.get_by_role("heading", name="Layer 0, head 3").wait_for()
        slide(page, 0.4)
        page.select_option("#how", "cosine")
        page.locator(".flow [data-token='5']").click()
        address = page.evaluate("location.hash")
        again = opened("plain", address=address)
        again.get_by_role("heading", name="Layer 0, head 3").wait_for()
        expected = replace(view, similarity_option="cosine", threshold=0.4).pairs(0, 3)
        again.get_by_role("heading", name=re.compile(rf"^{len(expected):,} high pairs$")).wait_for()
        assert again.locator(".flow .chosen").get_attribute("data-token") == "5"

    def test_an_address_that_makes_no_sense_does_no_harm(self, opened):
        page = opened("plain", address="#layer=99&head=-7&threshold=x&token=1e9&map=<b>&sort=nothing&from=text")
        page.get_by_role("heading", name="Layer 2, ").first.wait_for()

    def test_pictures_and_numbers_are_saved(self, opened, hostile):
        page = opened("hostile")

        def saved(group: str, button: str) -> bytes:
            with page.expect_download() as waiting:
                page.locator(group).get_by_role("button", name=button).first.click()
            return Path(waiting.value.path()).read_bytes()

        for group in (".head .save", ".atlas-section .save"):
            drawn = ElementTree.fromstring(saved(group, "SVG"))
            assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
            assert drawn.findall(".//{http://www.w3.org/2000/svg}image")
            assert saved(group, "PNG").startswith(b"\x89PNG")
        pairs = hostile.pairs(2, 1)
        rows = list(csv.DictReader(io.StringIO(saved(".pairs", "CSV").decode())))
        assert {(int(row["i"]), int(row["j"])) for row in rows} == set(zip(pairs.i, pairs.j, strict=True))
        facts = json.loads(saved(".head .save", "JSON"))
        assert (facts["layer"], facts["head"], len(facts["pairs"])) == (2, 1, len(pairs))
        assert b"same sentence" in saved(".numbers", "CSV")

    def test_the_atlas_is_sorted_by_a_column_of_the_study(self, opened, files):
        page = opened("beside")
        study = headscope.read(files["beside"].parent / "study")
        page.select_option("#sorting", "mean_distance")
        page.wait_for_selector(".atlas.sorted")
        shown = page.locator(".atlas .tag").all_inner_texts()
        ordered = study.heads.sort_values("mean_distance", ascending=False, kind="stable")
        assert [label.split(" ")[0] for label in shown][:4] == [
            f"{row.layer}.{row.head}" for row in ordered.head(4).itertuples()
        ]

    def test_the_pair_table_is_sorted_by_any_column(self, opened, view):
        page = opened("plain")
        page.locator(".pairs th button", has_text="distance").click()
        assert table_rows(page, ".pairs")[0][4] == str(view.pairs(2, 1).distance.max())
        page.locator(".pairs th button", has_text="distance").click()
        assert table_rows(page, ".pairs")[0][4] == str(view.pairs(2, 1).distance.min())

    def test_without_scripts_there_is_a_picture_and_tables(self, opened, hostile):
        page = opened("hostile", scripts=False)
        assert page.locator(".static img").bounding_box()["width"] > 300
        first = hostile.pairs(*hostile.telling_heads()[0]).iloc[0]
        assert f"{first.value:.2f}" in page.locator(".static table").first.inner_text()

    def test_in_a_notebook_it_works_within_its_frame(self, opened):
        page = opened("notebook")
        inside = page.frame_locator("iframe")
        inside.locator(".pairs tbody tr").first.wait_for()
        inside.locator(".flow [data-token='3']").click()
        assert inside.locator(".flow .chosen").get_attribute("data-token") == "3"

    def test_a_text_from_right_to_left_is_read_from_the_right(self, browser, minilm, tmp_path):
        text = "جلست القطة على السجادة. هل رأيت الكلب؟\nThe end of it."
        file = tmp_path / "arabic.html"
        file.write_text(headscope.inspect(minilm, text).html(2, 1), "utf-8")
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.goto(file.as_uri())
        page.wait_for_selector(".atlas button")
        left = "token => document.querySelector(`.flow [data-token='${token}']`).getBoundingClientRect().left"
        tokens = page.locator(".flow [data-token]").count()
        assert page.evaluate(left, 1) > page.evaluate(left, 2)
        assert page.evaluate(left, tokens - 3) < page.evaluate(left, tokens - 2)
        for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowLeft"):
            page.locator(".text").press(key)
        assert page.locator(".flow .chosen").get_attribute("data-token") == "1"
        page.close()


def test_a_page_of_nothing_but_a_server_allows_no_style_of_its_own():
    made = viewer_page("t", "h", {"server": {}})
    assert "unsafe-inline" not in made[: made.index("<style>")]


def test_layers_of_a_view_keep_their_numbers(view):
    some = replace(
        view,
        attention=LayerArray([4, 9], np.asarray(view.attention)[:2]),
        output=LayerArray([4, 9], np.asarray(view.output)[:2]),
        lengths=None,
    )
    packed = pack(some)
    assert packed["layers"] == [4, 9]
    assert {place[0] for place in packed["telling"]} <= {4, 9}
