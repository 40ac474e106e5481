"""What a study says of a head, beside the same head on one text: words, numbers, and studies that are refused."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_up import made_up_study
from runs import small_study

import headscope
from headscope.errors import HeadscopeError
from headscope.insight.about_heads import about_heads, about_study_beside
from headscope.show.objects import Study, View

TEXT = "The miller ground the rye. The rye was damp, so the miller dried it beside the oven."


@pytest.fixture(scope="module")
def study(tiny, tmp_path_factory) -> Study:
    return small_study(tiny, tmp_path_factory.mktemp("beside") / "study", max_windows=60, windows="first")


@pytest.fixture(scope="module")
def view(tiny, study) -> View:
    return headscope.inspect(tiny, TEXT, study=study)


def made_up(**columns):
    heads = pd.DataFrame({"layer": [3, 3], "head": [0, 1], **columns})
    return made_up_study(
        layers=pd.DataFrame(), heads=heads, arrays={}, numbers=[3], model={"heads": 2, "layers": 4}, length=64
    )


def test_a_role_comes_first_where_there_is_one():
    told = about_heads(made_up(role=["previous token", ""], attention_previous=[0.62, 0.1]))
    assert told[3, 0] == "In the study: role “previous token”; on the previous 62 %."
    assert told[3, 1] == "In the study: on the previous 10 %."


def test_chance_given_distance_stands_beside_a_share():
    told = about_heads(
        made_up(
            pairs_per_window=[1234.0, 0.0],
            repeat_probability=[0.16, np.nan],
            repeat_chance_by_distance=[0.012, np.nan],
        )
    )
    assert told[3, 0] == "In the study: 1,234 high pairs a window; equal tokens 16 %, by distance 1.2 %."
    assert told[3, 1] == "In the study: 0.0 high pairs a window."


def test_numbers_are_those_of_the_tables_with_their_intervals(study, view):
    table = study.intervals
    assert "role" not in study.heads or not study.heads["role"].any()
    for layer, head in ((0, 1), (2, 3)):
        mine = table[(table.layer == layer) & (table["head"] == head)].set_index("column")
        row = study.heads[(study.heads.layer == layer) & (study.heads["head"] == head)].iloc[0]
        told = view.in_study(layer, head)
        for name, words in (("same_sentence_probability", "one sentence"), ("attention_next", "on the next")):
            value, low, high = re.search(rf"{words} ([\d.]+) % \(([\d.]+) to ([\d.]+)\)", told).groups()
            expected = 100 * mine.loc[name, ["value", "low", "high"]].to_numpy(dtype=float)
            assert [float(value), float(low), float(high)] == pytest.approx(expected, abs=0.51)
        assert float(re.search(r"mean distance ([\d.]+) ", told)[1]) == pytest.approx(row.mean_distance, abs=0.06)
        by_distance = float(re.search(r"one sentence [^;]*by distance ([\d.]+) %", told)[1])
        assert by_distance == pytest.approx(100 * row.same_sentence_chance_by_distance, abs=0.51)


def test_a_study_at_another_threshold_has_numbers_without_intervals(study):
    told = about_heads(study.at(0.5))[1, 2]
    assert "high pairs a window" in told
    assert "to" not in re.findall(r"high pairs a window;.*mean distance ([^;]*)", told)[0]


def test_it_is_said_in_what_the_study_was_measured_otherwise(study, view):
    assert about_study_beside(view, study) == f"Beside it: the study in {study.folder}, 60 windows of 32 tokens"
    other = replace(view, threshold=0.4, similarity_option="centred", special_option="drop")
    assert about_study_beside(other, study).endswith(
        "32 tokens, measured with threshold 0.3, not 0.4, similarity dot, not centred, special tokens keep, not drop"
    )


def test_terminal_page_and_notebook_show_it(tiny, study, view, tiny_folder, monkeypatch, capsys):
    from headscope import cli

    monkeypatch.setattr(
        "sys.argv", ["headscope", "inspect", TEXT, "-m", str(tiny_folder), "--study", str(study.folder)]
    )
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    out = " ".join(capsys.readouterr().out.split())
    shown = view.telling_heads()
    for place in shown:
        assert view.in_study(*place) in out
    assert out.count("60 windows of 32 tokens") == 1
    page = view.html()
    assert '"hasRoles": ' in page
    assert "60 windows of 32 tokens" in page
    assert view.in_study(*shown[0]) in view._repr_html_()


def test_a_view_without_a_study_says_nothing_of_one(tiny):
    bare = headscope.inspect(tiny, TEXT)
    assert (bare.study, bare.about_study, bare.in_study(0, 0)) == (None, None, None)
    assert "In the study" not in bare.html() + bare._repr_html_()


def test_the_words_of_a_text_keep_the_study_and_a_layer_that_it_lacks_is_said(tiny, tmp_path):
    some = small_study(tiny, tmp_path / "some", max_windows=20, layers=(0, 2))
    view = headscope.inspect(tiny, TEXT, study=tmp_path / "some").words()
    assert view.study.folder == some.folder
    assert view.in_study(0, 1).startswith("In the study: ")
    assert view.in_study(1, 1) == "The study did not measure layer 1."


def test_studies_of_anything_else_are_refused(tiny, tiny_folder, study, tmp_path):
    other = headscope.load(f"random:{tiny_folder}", device="cpu", seed=7)
    with pytest.raises(
        HeadscopeError, match=r"is a study of .*tiny, whose weights are not those of random:.*tiny; give"
    ):
        headscope.inspect(other, TEXT, study=study)
    half = headscope.load(str(tiny_folder), device="cpu", dtype="bfloat16")
    with pytest.raises(HeadscopeError, match=r"tiny in float32, whose weights are not those of .*tiny in bfloat16;"):
        headscope.inspect(half, TEXT, study=study)
    stacked = Study(study.folder)
    stacked.manifest = replace(stacked.manifest, model=replace(stacked.manifest.model, stack="decoder"))
    with pytest.raises(HeadscopeError, match="study of the stack decoder, and this is None; give stack='decoder'"):
        headscope.inspect(tiny, TEXT, study=stacked)
    pictures = Study(study.folder)
    pictures.manifest = replace(pictures.manifest, kind="images")
    with pytest.raises(HeadscopeError, match="is a study of images; give one of texts"):
        headscope.inspect(tiny, TEXT, study=pictures)
    with pytest.raises(HeadscopeError, match="There is no study folder"):
        headscope.inspect("no-model-is-loaded", TEXT, study=tmp_path / "nothing")
