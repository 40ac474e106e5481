"""Every finding links to a picture in which the layers and heads that it names are there to see."""

from __future__ import annotations

import os
import re
import shutil

import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from typer.testing import CliRunner

import headscope
from headscope.cli.app import app
from headscope.insight.choices import Shown
from headscope.insight.every_threshold import at_every_threshold
from headscope.insight.findings import Finding, Quantity, findings
from headscope.measure.bins import THRESHOLDS
from headscope.show import figures
from headscope.show.figures.of_findings import MOST, telling_head, versions
from headscope.show.report import page, pictures
from headscope.show.report.pictures import Picture, Pictures


@pytest.fixture(scope="module")
def study(tmp_path_factory, tiny_folder, sample):
    """Of ten layers, more than figures show by themselves. The weights are random, but so large that heads differ."""
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("linked")
    shutil.copytree(tiny_folder, folder / "model")
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 10, "num_attention_heads": 4, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=600, max_position_embeddings=96, initializer_range=0.6, **shape)).save_pretrained(
        folder / "model"
    )
    model = headscope.load(str(folder / "model"), device="cpu")
    return headscope.study(model, sample[:12], out=folder / "study", length=64, windows="first", progress=False)


def texts(figure: Figure) -> list[str]:
    return [text.get_text().lower() for text in figure.findobj(Text) if text.get_text()]


def rows(figure: Figure) -> set[tuple[int, int]]:
    """Layer and head of each row of a panel that is about one layer."""
    found = set()
    for axes in figure.axes:
        layer = re.search(r"Layer (\d+)", axes.get_title(loc="left"))
        heads = [re.fullmatch(r"head (\d+)", label.get_text()) for label in axes.get_yticklabels()]
        found |= {(int(layer[1]), int(head[1])) for head in heads if layer and head}
    return found


def choices_of(study, found: list[Finding], picture: Picture):
    """What a picture of the page was drawn with."""
    wanted = {version.wanted.name: version.wanted.choices for version in versions(study, found)}
    return wanted.get(picture.name, {})


def not_drawn(monkeypatch) -> None:
    """Blank figures: what they would show is known without drawing them."""
    monkeypatch.setattr(figures, "draw", lambda study, number, **choices: Figure(figsize=(1, 1)))


def test_the_picture_of_a_finding_draws_every_layer_and_head_that_it_names(study, monkeypatch):
    found = findings(study)
    with monkeypatch.context() as patched:
        not_drawn(patched)
        made = pictures.pictures(study, found)
    linked = [(finding, made.of(finding)) for finding in found if finding.figure is not None]
    assert len(linked) > 10
    assert made.of_findings, "of ten layers, not all that findings name are drawn by default"
    for finding, picture in linked:
        assert picture is not None, finding.topic
        figure = figures.draw(study, picture.number, **choices_of(study, found, picture))
        told = texts(figure)
        for layer in finding.layers:
            assert any(re.search(rf"\blayer {layer}\b", text) for text in told), (finding.topic, layer)
        for layer, head in finding.heads:
            named = any(re.search(rf"\blayer {layer}, head {head}\b", text) for text in told)
            assert named or (layer, head) in rows(figure), (finding.topic, layer, head)


def test_what_a_figure_says_that_it_shows_is_what_it_draws(study):
    for version in versions(study, findings(study)):
        wanted = version.wanted
        shown, figure = figures.shown(study, wanted.number, **wanted.choices), figures.draw(
            study, wanted.number, **wanted.choices
        )  # fmt: skip
        assert shown.draws(version.layers, ())
        for layer, head in shown.heads:
            assert any(f"layer {layer}, head {head}" in text for text in texts(figure)), wanted
        for layer in shown.layers:
            assert any(re.search(rf"\blayer {layer}\b", text) for text in texts(figure)), wanted


def found(topic, figure, layers=(), heads=(), **more):
    quantity = Quantity("layers", ("attention_to_first",), (0,))
    return Finding(
        topic, "It is so", ".", 0.5, "much", figure=figure, layers=layers, heads=heads, quantity=quantity, **more
    )


def test_findings_of_one_figure_share_a_picture_as_long_as_it_stays_readable(study):
    some = [found("a", "8", (1,)), found("b", "8", (2, 3)), found("c", "8", (4, 5, 6)), found("d", "8", (7,))]
    first, second = versions(study, some)
    assert (first.topics, first.layers) == (("a", "b", "c"), (1, 2, 3, 4, 5, 6))
    assert len(first.layers) == MOST
    assert (second.topics, second.layers) == (("d",), (7,))
    assert [version.wanted.name for version in (first, second)] == ["fig08-findings", "fig08-findings-2"]


def test_what_a_figure_shows_anyway_is_not_drawn_twice(study):
    assert versions(study, [found("last", "8", (9,)), found("all", "signal", (), ((3, 2),)), found("none", None)]) == []
    assert versions(study, [found("first", "8", (0,))])[0].wanted.choices == {"layers": (0,)}


def test_a_named_head_in_a_figure_of_rows_is_shown_among_all_heads_of_its_layer(study):
    (version,) = versions(study, [found("repeats", "6", heads=((3, 2),))])
    assert version.wanted.choices == {"layers": (3,)}
    assert figures.shown(study, "6", layers=(3,)).draws((), ((3, 2),))


def test_beside_the_sum_of_a_layer_stands_the_head_that_has_most_of_what_is_said(study):
    finding = found("first", "2", (3,))
    share = study.heads[study.heads.layer == 3].set_index("head").attention_to_first
    assert telling_head(study, finding, 3) == (3, share.idxmax())
    (version,) = versions(study, [finding, found("neighbours", "2", heads=((4, 1),))])
    assert version.wanted.choices == {"layers": (3,), "heads": ((3, share.idxmax()), (4, 1))}


@pytest.mark.parametrize("number", ["2", "4", "5", "10"])
def test_single_heads_are_drawn_as_they_are_asked_for(study, number):
    figure = study.figure(number, heads=[(3, 2), (4, 1)])
    for name in ("layer 3, head 2", "layer 4, head 1"):
        assert any(name in text for text in texts(figure))
    for wrong in ([(3, 4)], [(10, 0)]):
        with pytest.raises(headscope.HeadscopeError, match=r"There is no head 4|Layer 10 was not measured"):
            study.figure(number, heads=wrong)


def test_a_finding_that_names_nothing_leads_to_the_figure_of_the_paper():
    named = Picture("8", "fig08-findings", "T", "C", "", 1, 1, Shown((5,), every_head=True), ("a",))
    paper = Picture("8", "fig08", "T", "C", "", 1, 1, Shown((9,), every_head=True))
    made = Pictures([named], [paper])
    assert made.of(found("a", "8", (5,))) is named
    assert made.of(found("a", "8", heads=((5, 1),))) is named
    assert made.of(found("a", "8", (9,))) is paper
    assert made.of(found("a", "8")) is paper
    assert made.of(found("a", "8", (6,))) is None
    assert made.of(found("a", "7", (5,))) is None
    assert (named.id, paper.id) == ("fig-8-findings", "fig-8")


def test_at_every_threshold_a_link_leads_to_a_picture_of_the_layers_named(study, monkeypatch):
    not_drawn(monkeypatch)
    made, told = pictures.pictures(study, findings(study)), at_every_threshold(study)
    dead = 0
    for place in range(len(THRESHOLDS)):
        for finding in told.at(place):
            picture = made.of(finding)
            dead += picture is None and finding.figure is not None
            assert picture is None or picture.shown is None or picture.shown.draws(finding.layers, finding.heads)
    assert dead, "other layers than at the own threshold are named, and not drawn"


def test_the_page_shows_them_before_the_figures_of_the_paper(study, monkeypatch):
    not_drawn(monkeypatch)
    html = page(study)
    places = [html.index(f'id="{name}"') for name in ("findings", "shown", "fig-13-findings", "figures", "fig-13")]
    assert places == sorted(places)
    distance = next(finding for finding in findings(study) if finding.topic == "Distance")
    assert f"Layers {', '.join(map(str, distance.layers[:-1]))} and 9, for “Distance”. A curve for each layer" in html
    assert 'href="#fig-13-findings">Fig. 13</a>' in html


def test_the_command_writes_them_beside_the_others(study, tmp_path):
    told = CliRunner().invoke(
        app, ["figures", str(study.folder), "--findings", "--only", "8,13", "--format", "png", "--out", str(tmp_path)]
    )
    assert told.exit_code == 0, told.output
    assert "files in" in told.output
    named = {
        version.wanted.name: version for version in versions(study, findings(study)) if version.number in ("8", "13")
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{name}.png" for name in named)
    with Image.open(tmp_path / "fig13-findings.png") as image:
        assert image.info["Description"] == str(Shown(named["fig13-findings"].layers))
    refused = CliRunner().invoke(app, ["figures", str(study.folder), "--findings", "--layers", "1"])
    assert refused.exit_code == 2
    assert "chooses layers and heads by itself" in " ".join(refused.output.split())
    nothing = CliRunner().invoke(app, ["figures", str(study.folder), "--findings", "--only", "12"])
    assert "Nothing to draw" in nothing.output


def test_a_file_that_shows_other_layers_is_not_put_on_the_page(study, monkeypatch):
    monkeypatch.setattr(figures, "FIGURES", {"13": figures.FIGURES["13"]})
    asked = []
    real = figures.draw

    def draw(study, number, **choices):
        asked.append(choices)
        return real(study, number, **choices)

    study.figures(only=["13"], formats=["png"], progress=False)
    study.figures(findings=True, formats=["png"], progress=False)
    monkeypatch.setattr(figures, "draw", draw)
    pictures.pictures(study, findings(study))
    assert asked == [], "both files are used as they are"
    study.figures(only=["13"], formats=["png"], progress=False, layers=[4])
    os.replace(study.folder / "figures" / "fig13.png", study.folder / "figures" / "fig13-findings.png")
    asked.clear()
    pictures.pictures(study, findings(study))
    assert [choices.get("layers", ()) != () for choices in asked] == [True, False], "one shows layer 4, one is gone"
    shutil.rmtree(study.folder / "figures")


def test_nulls_stand_beside_chance_on_the_page(study, planted_study, monkeypatch):
    not_drawn(monkeypatch)
    html = page(planted_study)
    assert "● random weights" in html.replace("&nbsp;", " ").replace("\u00a0", " ")
    lines = re.findall(r'<i class="null" data-mark="●"></i>random weights: <b>([^<]+)</b>', html)
    marks = re.findall(r'<i class="null" data-mark="●" style="--at:([0-9.]+)"></i>', html)
    told = [finding for finding in findings(planted_study) if "weights" in finding.nulls]
    assert len(lines) == len(marks) == len(told) > 10
    for mark, finding in zip(marks, told, strict=True):
        part = min(max(finding.nulls["weights"] / finding.full, 0), 1)
        assert float(mark) == pytest.approx(part, abs=0.001)
    assert 'class="null"' not in page(study)
