"""The report: one page that holds everything, shows the numbers of the tables, and lets nothing in from outside."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import shutil
from contextlib import nullcontext
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from typer.testing import CliRunner

import headscope
from headscope.cli.app import app
from headscope.insight.claims import claims
from headscope.insight.findings import findings
from headscope.measure.catalogue import columns
from headscope.model.loading import Model
from headscope.show import figures
from headscope.show.figures.of_findings import versions
from headscope.show.numbers import shown
from headscope.show.report import content, page, pictures, slider, summary, write_report
from headscope.show.report.tables import columns_of

SCRIPT = "<script>alert(1)</script>"
LONG_WORD = "abcdefghij" * 1000
HOSTILE = (
    f'{SCRIPT} & "quoted" {{{{ 7 * 7 }}}} <img src=x onerror=alert(2)>. 👩‍👩‍👧 🎉 שלום עולם, مرحبا. {LONG_WORD} end. '
)
LARGEST = 12 * 2**20
VOID = {"meta", "link", "br", "img", "input"}

DRAWN = {number: module for number, module in figures.FIGURES.items() if number != "grid"}
"""Of a study of texts."""


class Reader(HTMLParser):
    """Tags with their attributes, the text of every table cell by table, and whether every tag is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.cells: dict[str, list[list[str]]] = {}
        self.text = ""
        self._table = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self._table = attributes.get("id") or attributes.get("class") or "table"
            self.cells[self._table] = []
        elif tag == "tr":
            self.cells[self._table].append([])
        elif tag in ("td", "th"):
            self.cells[self._table][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] in ("style", "script"):
            return
        self.text += data
        if "td" in self.open or "th" in self.open:
            self.cells[self._table][-1][-1] += data


@pytest.fixture(scope="module")
def study(tmp_path_factory, tiny, sample):
    out = tmp_path_factory.mktemp("report") / "study"
    return headscope.study(tiny, sample[:4], out=out, length=48, max_windows=12, progress=False)


@pytest.fixture(scope="module")
def written(study):
    """With figures 7 and 9 as they are drawn; blank ones for the rest, which take seconds."""
    real = figures.draw

    def draw(study, number, **choices):
        return real(study, number, **choices) if number in ("7", "9") else Figure(figsize=(3, 2))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(figures, "draw", draw)
        return write_report(study)


@pytest.fixture(scope="module")
def read(written):
    return Reader(written.read_text("utf-8"))


@pytest.fixture
def no_pictures(monkeypatch):
    """Drawing figures takes seconds; most tests are about what stands around them."""
    monkeypatch.setattr(content, "drawing", lambda *given: nullcontext(pictures.Pictures))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, tiny):
    """Everything that comes from outside is hostile: the name of the model, that of the texts, the texts."""
    folder = tmp_path_factory.mktemp("hostile")
    file = folder / "<script>alert(1)<" / "script>.txt"
    file.parent.mkdir()
    file.write_text(HOSTILE * 8, "utf-8")
    model = Model(tiny.network, tiny.tokenizer, f"{SCRIPT}{'é' * 300}")
    texts = headscope.read_texts([file])
    return headscope.study(model, texts, out=folder / "study", length=64, short="pad", progress=False)


def test_the_page_is_well_formed_and_every_link_inside_leads_somewhere(read):
    assert read.open == []
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    inner = {a["href"][1:] for tag, a in read.tags if tag == "a" and a["href"].startswith("#")}
    assert len(inner) > 8
    assert inner <= set(ids)


def test_nothing_is_loaded_from_outside(read, written):
    for tag, attributes in read.tags:
        for name in ("src", "href", "srcset", "poster", "action", "data"):
            address = attributes.get(name) or ""
            outside = tag != "a" and not address.startswith("data:")
            assert not address or address.startswith("#") or not outside, (tag, address)
    links = [a["href"] for tag, a in read.tags if tag == "a" and not a["href"].startswith("#")]
    assert links == ["https://arxiv.org/abs/2512.21956"]
    html = written.read_text("utf-8")
    assert "@import" not in html
    assert not re.search(r"url\((?!data:)", html)


def test_only_the_pages_own_script_may_run(written):
    html = written.read_text("utf-8")
    allowed = re.search(r"script-src 'sha256-([^']+)'", html)[1]
    script = re.search(r"<script>(.*)</script>", html, re.DOTALL)[1]
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() == allowed
    assert "default-src 'none'" in html


def test_every_figure_is_there_with_caption_and_alternative_text(read, study):
    images = [attributes for tag, attributes in read.tags if tag == "img"]
    named = versions(study, findings(study))
    assert len(images) == len(named) + len(DRAWN)
    modules = [*(figures.FIGURES[version.number] for version in named), *DRAWN.values()]
    for image, module in zip(images, modules, strict=True):
        kind, _, content = image["src"].partition(";base64,")
        with Image.open(io.BytesIO(base64.b64decode(content)), formats=[kind.removeprefix("data:image/")]) as picture:
            width, height = picture.size
            assert width / height == pytest.approx(int(image["width"]) / int(image["height"]), rel=0.01)
        assert module.TITLE in image["alt"]
        assert int(image["width"]) > 100
        assert module.CAPTION in read.text


def test_a_picture_full_of_detail_is_compressed_until_all_fit_on_the_page():
    noise = np.random.default_rng(0).integers(0, 255, (760, 710, 1), dtype=np.uint8).repeat(2, 0).repeat(2, 1)
    source, width, height = pictures.data_uri(Image.fromarray(noise.repeat(3, 2)))
    assert (width, height) == (1420, 1520)
    assert len(source) * len(DRAWN) < LARGEST


def test_the_tables_of_the_page_are_the_tables_of_the_study(read, study):
    for name, table in (("heads", study.table("heads")), ("layers", study.layers)):
        header, *rows = read.cells[name]
        assert len(header) == len(table.columns)
        assert len(rows) == len(table)
        for row, values in zip(rows, table.itertuples(index=False), strict=True):
            assert row == [shown(value, columns()[column]) for column, value in zip(table.columns, values, strict=True)]
    place = study.heads.repeat_probability.idxmax()
    column = list(study.heads.columns).index("repeat_probability")
    assert float(read.cells["heads"][place + 1][column]) == pytest.approx(
        study.heads.repeat_probability.max() * 100, abs=0.05
    )


def test_bars_and_strokes_are_in_proportion(study):
    column = next(column for column in columns_of(study.heads) if column.name == "same_sentence_probability")
    shares, chances = study.heads.same_sentence_probability, study.heads.same_sentence_chance_by_distance
    longest = max(shares.max(), chances.max())
    for cell, value, chance in zip(column.cells, shares, chances, strict=True):
        assert cell.bar == pytest.approx(value / longest, abs=0.001)
        assert cell.chance == pytest.approx(chance / longest, abs=0.001)


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("repeat_probability", 0.01234, "1.2"),
        ("mean_distance", 42.06, "42.1"),
        ("pairs", 12345.0, "12,345"),
        ("pairs_per_window", 12.34, "12.3"),
        ("block_contrast", -0.0031, "-0.003"),
        ("focal_share", float("nan"), "–"),
    ],
)
def test_numbers_are_shown_in_their_unit(column, value, text):
    assert shown(value, columns()[column]) == text


def test_findings_claims_definitions_and_facts_are_on_the_page(read, study):
    text = read.text.replace("\u00a0", " ")
    for finding in findings(study):
        assert finding.sentence in text
    for claim in claims(study):
        assert claim.criterion in text
        assert claim.measured in text
    for name, term in columns().items():
        assert name in text
        assert term.definition in text
    for fact in (study.manifest.model.weights_sha256, study.manifest.source.windows_sha256):
        assert fact in text
    assert study.example.text in text
    for line in ("@article{", "@software{", "arXiv:2512.21956"):
        assert line in text


def test_figures_that_are_drawn_are_not_drawn_again(study, monkeypatch):
    kept = study.folder / "figures" / "fig07.png"
    kept.parent.mkdir()
    Figure(figsize=(1, 1)).savefig(kept)
    asked = []

    def draw(study, number, **choices):
        asked.append(number)
        return Figure(figsize=(1, 1))

    monkeypatch.setattr(figures, "draw", draw)
    pictures.pictures(study, [])
    assert sorted(asked) == sorted(number for number in DRAWN if number != "7")
    os.utime(kept, (0, 0))
    asked.clear()
    pictures.pictures(study, [])
    assert sorted(asked) == sorted(DRAWN), "a figure older than the study is drawn anew"
    shutil.rmtree(kept.parent)


def test_a_figure_that_can_not_be_drawn_is_named_and_the_rest_is_there(study, monkeypatch):
    def draw(study, number, **choices):
        if number == "4":
            raise headscope.HeadscopeError("the study keeps no example text")
        return Figure(figsize=(1, 1))

    monkeypatch.setattr(figures, "draw", draw)
    html = page(study)
    assert "the study keeps no example text" in html
    named = [version for version in versions(study, findings(study)) if version.number != "4"]
    assert html.count("<img ") == len(named) + len(DRAWN) - 1


@pytest.mark.usefixtures("no_pictures")
def test_a_study_without_high_pairs_has_a_page(tmp_path, tiny, sample):
    bare = headscope.study(
        tiny, sample[:1], out=tmp_path / "s", length=8, max_windows=1, threshold=0.999, progress=False
    )
    bare.heads.loc[:, ["mean_distance", "repeat_probability", "same_sentence_probability", "focal_share"]] = float(
        "nan"
    )
    bare.layers.loc[:, ["mean_distance", "repeat_probability", "same_sentence_probability", "focal_share"]] = float(
        "nan"
    )
    html = page(bare)
    assert "can't be said" in Reader(html).text
    assert not re.search(r"\bnan\b", Reader(html).text)


@pytest.mark.usefixtures("no_pictures")
def test_what_comes_from_outside_is_shown_as_text(hostile):
    html = page(hostile)
    read = Reader(html)
    assert [tag for tag, _ in read.tags].count("script") == 1
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    assert "alert(1)" not in re.search(r"<script>(.*)</script>", html, re.DOTALL)[1]
    assert read.text.count(SCRIPT) > 3
    assert "{{ 7 * 7 }}" in read.text
    assert "👩‍👩‍👧" in read.text
    assert "שלום" in read.text
    assert LONG_WORD in read.text


def test_in_a_notebook_a_study_shows_itself_without_script(hostile, study):
    html = hostile._repr_html_()
    read = Reader(html)
    assert read.open == []
    assert not {"script", "style", "link", "img", "iframe"} & {tag for tag, _ in read.tags}
    assert SCRIPT in read.text
    whole = Reader(summary(study))
    for finding in findings(study):
        assert finding.sentence in whole.text.replace("\u00a0", " ")
    header, *rows = whole.cells["table"]
    assert [row[0] for row in rows] == [str(layer) for layer in study.layers.layer]
    place = header.index("same sentence,\u00a0%")
    assert [row[place] for row in rows] == [f"{100 * share:.1f}" for share in study.layers.same_sentence_probability]
    assert len(html) < 100_000


@pytest.mark.usefixtures("no_pictures")
def test_the_command_writes_the_page_where_it_is_told(study, tmp_path):
    out = tmp_path / "page.html"
    told = CliRunner().invoke(app, ["report", str(study.folder), "--out", str(out)])
    assert told.exit_code == 0, told.output
    assert told.output.strip().endswith(str(out))
    assert out.read_text("utf-8").startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert study.report(tmp_path / "again.html").read_bytes() == out.read_bytes()


def test_a_study_ends_with_its_report_and_says_where_it_is(tiny_folder, tmp_path, sample, monkeypatch):
    monkeypatch.setattr(figures, "draw", lambda study, number, **choices: Figure(figsize=(1, 1)))
    (tmp_path / "text.txt").write_text(sample[0], "utf-8")
    arguments = ["study", str(tmp_path / "text.txt"), "--model", str(tiny_folder), "--length", "48", "--out"]
    told = CliRunner().invoke(app, [*arguments, str(tmp_path / "with")])
    assert told.exit_code == 0, told.output
    assert told.stdout.splitlines()[-1] == f"Report: {tmp_path / 'with' / 'report.html'}"
    assert (tmp_path / "with" / "report.html").is_file()
    assert CliRunner().invoke(app, [*arguments, str(tmp_path / "without"), "--no-figures"]).exit_code == 0
    assert not (tmp_path / "without" / "report.html").exists()


@pytest.mark.usefixtures("no_pictures")
def test_the_page_can_be_opened_at_once(study, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    told = CliRunner().invoke(app, ["report", str(study.folder), "--out", str(tmp_path / "p.html"), "--open"])
    assert told.exit_code == 0, told.output
    assert opened == [(tmp_path / "p.html").as_uri()]


def test_a_folder_without_a_study_is_refused(tmp_path):
    told = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert told.exit_code == 2
    assert "is not a study folder" in told.output


@pytest.fixture
def opened(browser):
    """Open a page; whatever it asks for, says or pops up is an error."""
    pages = []

    def opening(path, width=1300):
        view = browser.new_page(viewport={"width": width, "height": 900})
        problems = []
        view.on("dialog", lambda dialog: problems.append(dialog.message))
        view.on("console", lambda message: problems.append(message.text))
        view.on("pageerror", lambda error: problems.append(str(error)))
        view.on("request", lambda request: problems.append(request.url) if request.url.startswith("http") else None)
        view.goto(path.resolve().as_uri())
        pages.append(view)
        assert problems == []
        view.problems = problems
        return view

    yield opening
    for view in pages:
        view.close()


@pytest.mark.browser
def test_the_viewer_within_the_page_opens_when_it_is_asked_for(hostile, opened, no_pictures, tmp_path):
    view = opened(hostile.report(tmp_path / "viewer.html"))
    view.get_by_text("Look into it: every head").click()
    inside = view.frame_locator("iframe")
    inside.locator(".flow [data-token='3']").click()
    assert inside.locator(".flow .chosen").get_attribute("data-token") == "3"
    assert view.problems == []


OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1300])
def test_hostile_input_does_not_break_the_layout(opened, hostile, tmp_path, no_pictures, width):
    view = opened(write_report(hostile, tmp_path / "page.html"), width)
    view.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    assert view.evaluate(OVERFLOW) == 0
    assert SCRIPT in view.inner_text("h1")


@pytest.mark.browser
@pytest.mark.parametrize("width", [1200, 1366, 1400])
def test_the_table_of_layers_is_not_cut_on_a_laptop(opened, written, width):
    view = opened(written, width)
    box = view.locator("#layers-section .scroll")
    assert box.evaluate("box => box.scrollWidth - box.clientWidth") == 0


@pytest.mark.browser
def test_heads_are_sorted_filtered_and_chosen(opened, written, study):
    view = opened(written)
    column = list(study.heads.columns).index("mean_distance") + 1
    shown_rows = "#heads tbody tr:not([hidden])"

    def distances():
        return [float(text) for text in view.locator(f"{shown_rows} td:nth-child({column})").all_inner_texts()]

    head = view.locator('#heads th[data-column="mean_distance"]')
    head.locator("[role=button]").click()
    assert distances() == sorted(distances(), reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("[role=button]").press("Enter")
    assert distances() == sorted(distances())

    view.select_option("#layer", "1")
    assert view.locator(shown_rows).count() == 4
    assert view.inner_text("#count") == "4 of 12 heads"
    view.select_option("#layer", "")
    view.select_option("#measure", label="distance")
    middle = sorted(distances())[6]
    view.fill("#least", str(middle))
    assert min(distances()) >= middle
    view.fill("#least", "")

    assert view.locator("#map button").count() == 12
    view.locator("#map button").nth(5).click()
    chosen = view.locator("#heads tr.chosen th").all_inner_texts()
    assert chosen == ["1", "1"]


MOVING = ("pairs", "pairs_per_window", "mean_distance", "repeat_probability", "repeat_probability_in_sentence",
          "repeat_chance", "same_sentence_probability", "same_sentence_chance", "same_sentence_chance_by_distance",
          "repeat_chance_by_distance")  # fmt: skip


def cells_of(view, table, name):
    """The column as the browser shows it, in the order of the study, hidden or not."""
    read = """([table, name]) => {
      const heads = [...document.querySelectorAll(`#${table} thead th`)].map((head) => head.dataset.column);
      return [...document.querySelectorAll(`#${table} tbody tr`)].map((row) => [
        Number(row.cells[0].textContent), table === "heads" ? Number(row.cells[1].textContent) : 0,
        row.cells[heads.indexOf(name)].textContent]);
    }"""
    return [text for _, _, text in sorted(view.evaluate(read, [table, name]))]


def moved(view, slider, threshold):
    """Move a slider as a hand does, and wait for the page."""
    view.evaluate(
        "([id, value]) => { const range = document.getElementById(id); range.value = value;"
        " range.dispatchEvent(new Event('input')); }",
        [slider, threshold],
    )
    view.wait_for_timeout(300)


@pytest.mark.browser
def test_the_slider_shows_what_the_study_says_at_each_threshold(opened, written, study):
    view = opened(written)
    before = {name: cells_of(view, "heads", name) for name in study.table("heads")}
    told, whole = view.inner_html(".findings"), view.inner_html("#heads")
    for moving, threshold in (
        ("threshold-of-heads", 0.55),
        ("threshold-of-findings", 0.07),
        ("threshold-of-heads", 0.95),
    ):
        moved(view, moving, threshold)
        at = study.at(threshold)
        for table in ("heads", "layers"):
            for name in MOVING:
                expected = [shown(value, columns()[name]) for value in at.column(table, name)]
                assert cells_of(view, table, name) == expected, name
            assert set(cells_of(view, table, "focal_share")) == {"–"}
            of_column = f"#{table} tbody tr > :nth-child({list(getattr(study, table)).index('mean_distance') + 1})"
            assert view.locator(f"{of_column}[title]").count() == 0, "no interval is known there"
        assert cells_of(view, "heads", "attention_self") == before["attention_self"]
        text = view.inner_text(".findings").replace("\u00a0", " ")
        for finding in findings(at):
            if finding.topic in ("Same sentence", "Repeated tokens", "Distance", "Range of heads"):
                assert finding.sentence in text
        assert "at 0.3" in text, "focal tokens are those of the study"
        for box in view.locator(".threshold").all():
            assert box.locator("output").inner_text() == f"{threshold:.2f}"
            assert float(box.locator("input").input_value()) == threshold
            assert "pooled over the pairs" in box.inner_text()
    view.locator(".threshold button").first.click()
    view.wait_for_timeout(300)
    assert {name: cells_of(view, "heads", name) for name in study.table("heads")} == before
    assert (view.inner_html(".findings"), view.inner_html("#heads")) == (told, whole)
    assert "means over windows" in view.locator(".threshold").first.inner_text()
    assert view.locator(".threshold button").first.is_disabled()
    assert view.problems == []


@pytest.mark.browser
def test_the_slider_is_moved_by_keys_and_keeps_the_order_and_the_choice(opened, written, study):
    view = opened(written)
    view.locator('#heads th[data-column="mean_distance"] [role=button]').click()
    view.select_option("#layer", "2")
    hand = view.get_by_label("Threshold").nth(1)
    hand.focus()
    for _ in range(3):
        hand.press("ArrowRight")
    view.wait_for_timeout(300)
    at = study.at(0.33)
    of_layer = at.heads[at.heads.layer == 2].mean_distance
    column = list(study.heads.columns).index("mean_distance") + 1
    cells = view.locator(f"#heads tbody tr:not([hidden]) td:nth-child({column})").all_inner_texts()
    assert cells == [f"{value:.1f}" for value in sorted(of_layer, reverse=True)]
    assert hand.get_attribute("aria-valuetext") == "0.33, pooled over pairs"
    assert (
        view.locator("#map button")
        .first.get_attribute("aria-label")
        .endswith(shown(at.heads.repeat_probability[0], columns()["repeat_probability"]))
    )
    for _ in range(3):
        hand.press("ArrowLeft")
    view.wait_for_timeout(300)
    assert hand.get_attribute("aria-valuetext") == "0.3, the study's own"
    own = [shown(value, columns()["repeat_probability"]) for value in study.heads.repeat_probability]
    assert cells_of(view, "heads", "repeat_probability") == own
    assert view.problems == []


@pytest.mark.usefixtures("no_pictures")
def test_at_the_own_threshold_windows_and_pooled_stand_side_by_side(study, written):
    header, *rows = Reader(written.read_text("utf-8")).cells["beside"]
    both = [study.layers, study.at(0.3).layers]
    place = header.index("same sentence,\u00a0%: windows")
    assert header[place + 1] == "same sentence,\u00a0%: pooled"
    for row, *values in zip(rows, *(table.same_sentence_probability for table in both), strict=True):
        assert row[place : place + 2] == [f"{100 * value:.1f}" for value in values]


@pytest.mark.usefixtures("no_pictures")
def test_a_study_of_an_older_version_has_no_slider(study, tiny, sample, tmp_path, monkeypatch):
    assert 'id="at-thresholds"' in page(study)
    monkeypatch.setattr("headscope.folder.study_folder.StudyFolder.keeps_spectra", False)
    html = page(study)
    assert 'at-thresholds">' not in html
    assert 'type="range"' not in html


@pytest.mark.usefixtures("no_pictures")
def test_a_threshold_between_two_steps_has_a_slider_and_a_way_back(tiny, sample, tmp_path):
    odd = headscope.study(
        tiny, sample[:1], out=tmp_path / "s", length=16, max_windows=3, threshold=0.333, progress=False
    )
    html = page(odd)
    assert 'data-own=""' in html
    assert 'value="0.33"' in html
    assert "Back to 0.333" in html
    assert 'id="beside"' not in html, "what is pooled at 0.333 is not known"


def test_the_slider_adds_little_to_the_page(study):
    """Of 12 x 12 heads: what is measured here for 3 x 4, twelve times as much, and the findings."""
    moving = slider.at_thresholds(study)
    made = slider.slider(study, moving, lambda told, only: "".join(finding.sentence for finding in told))
    assert len(made.packed) * 12 < 600_000


@pytest.mark.usefixtures("no_pictures")
def test_a_report_at_another_threshold_lies_beside_that_of_the_study(study, tmp_path):
    own = (study.folder / "report.html").read_bytes()
    told = CliRunner().invoke(app, ["report", str(study.folder), "--threshold", "0.2"])
    assert told.exit_code == 0, told.output
    path = study.folder / "report-0.20.html"
    assert told.output.strip().endswith(str(path))
    assert (study.folder / "report.html").read_bytes() == own
    read = Reader(path.read_text("utf-8"))
    text = " ".join(read.text.replace("\u00a0", " ").split())
    assert "Read at the threshold 0.2; the study was run with 0.3." in text
    assert "pooled over the pairs of all windows, not means over windows" in text
    assert (
        "Left out. The findings “Focal token” and “Division of labour” are known at the study's own threshold, 0.3"
        in text
    )
    header, *rows = read.cells["heads"]
    place = header.index("repeats,\u00a0%")
    assert [row[place] for row in rows] == [f"{100 * share:.1f}" for share in study.at(0.2).heads.repeat_probability]
    assert "focal share,\u00a0%" not in header
    assert 'type="range"' not in path.read_text("utf-8")
    assert study.report(threshold=0.2) == path
    path.unlink()
    refused = CliRunner().invoke(app, ["report", str(study.folder), "--threshold", "0.333"])
    assert refused.exit_code == 2
    assert "the nearest is 0.33" in " ".join(refused.output.split())


def test_figures_of_what_is_known_at_the_own_threshold_alone_are_left_out(study, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "FIGURES", {number: figures.FIGURES[number] for number in ("8", "10", "13")})
    made = pictures.pictures(study.at(0.2), findings(study.at(0.2)))
    assert {picture.number for picture in made.of_findings + made.of_paper} == {"13"}
    assert len(made.missing) == 2
    assert all("is known at the study's own threshold 0.3 alone" in sentence for sentence in made.missing)
    written = study.at(0.2).figures(formats=["png"], progress=False)
    assert written == [study.folder / "figures-0.20" / "fig13.png"]
    shutil.rmtree(study.folder / "figures-0.20")
    with pytest.raises(headscope.HeadscopeError, match="known at the study's own threshold"):
        study.at(0.2).figure(10)


@pytest.mark.browser
def test_columns_are_chosen_by_group(opened, written):
    view = opened(written)
    first = view.locator('#heads th[data-column="attention_self"]')
    assert not first.is_visible()
    view.select_option("#columns", "attention")
    assert first.is_visible()
    assert not view.locator('#heads th[data-column="mean_distance"]').is_visible()
    view.select_option("#columns", "all")
    assert view.locator("#heads thead th:visible").count() == len(view.locator("#heads thead th").all())


@pytest.mark.browser
def test_the_page_opens_within_a_second_and_is_whole_on_paper(opened, written):
    view = opened(written)
    elapsed = view.evaluate("performance.timing.loadEventEnd - performance.timing.navigationStart")
    assert elapsed < 1000
    view.emulate_media(media="print")
    assert not view.locator(".controls").is_visible()
    assert view.evaluate("getComputedStyle(document.querySelector('.scroll')).maxHeight") == "none"
