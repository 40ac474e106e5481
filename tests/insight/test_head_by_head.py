"""Two studies head by head: a head that was changed is found, texts that are like the others change nothing."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import headscope
from headscope import HeadscopeError, compare
from headscope.cli.app import app
from headscope.insight.head_by_head import DIFFERENCES, why_not
from headscope.model.loading import Model

PLACE = (2, 1)
"""Layer and head that differ in `tuned`: no layer comes after it that could tell."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory, tiny, tiny_folder, sample):
    """A tiny model on all texts, and on every other; the same with a head that looks at itself."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("pairs")
    layer, head = PLACE
    loaded = headscope.load(str(tiny_folder), device="cpu")
    attention, rows = loaded.network.encoder.layer[layer].attention.self, slice(head * 8, head * 8 + 8)
    with torch.no_grad():
        attention.key.weight[rows] = 3 * attention.query.weight[rows]
    base = replace(tiny, name="here/base")
    for name, model, texts in (
        ("base", base, sample),
        ("tuned", Model(loaded.network, loaded.tokenizer, "here/tuned"), sample),
        ("even", base, sample[::2]),
        ("odd", base, sample[1::2]),
    ):
        headscope.study(model, texts, out=folder / name, length=32, windows="first", maps="none", progress=False)
    torch.set_num_threads(before)
    return folder


@pytest.fixture(scope="module")
def tuned(folders):
    return compare(folders / "base", folders / "tuned")


@pytest.fixture(scope="module")
def halves(folders):
    return compare(folders / "even", folders / "odd")


def test_of_all_heads_the_one_that_was_changed_differs(tuned):
    found = tuned.differences
    assert tuned.heading == "Two models of the same shape on the same windows"
    assert tuned.what_differs["what"].tolist() == ["weights"]
    assert list(found.columns) == list(DIFFERENCES)
    here = (found["layer"] == PLACE[0]) & (found["head"] == PLACE[1])
    assert (found["difference"][~here].dropna() == 0).all()
    assert not found["differs"][~here].any()
    assert {"attention_self", "mean_vector_share"} <= set(found["column"][found["differs"]])
    assert tuned.head_by_head.largest(3)[["layer", "head"]].to_numpy().tolist() == [list(PLACE)] * 3
    assert tuned.sentences[0].startswith("1 of 12 heads differ")
    assert f"most layer {PLACE[0]}, head {PLACE[1]}: " in tuned.sentences[1]
    assert " in base against " in tuned.sentences[1]


def test_differences_are_the_second_less_the_first(folders, tuned):
    found = tuned.differences.set_index(["layer", "head", "column"])
    back = compare([folders / "tuned", folders / "base"]).differences.set_index(["layer", "head", "column"])
    assert np.allclose(found["difference"], found["b"] - found["a"], equal_nan=True)
    assert np.allclose(found["difference"], -back["difference"], equal_nan=True)
    assert np.allclose(found["low"], -back["high"], equal_nan=True)
    assert (found["differs"] == back["differs"]).all()
    heads = headscope.read(folders / "tuned").heads.set_index(["layer", "head"])
    assert found["b"].xs("mean_distance", level="column").tolist() == heads["mean_distance"].tolist()
    assert "pairs" not in found.index.get_level_values("column")


def test_on_the_same_texts_both_leave_out_the_same_groups(folders, tuned):
    """The errors of the two go together: that of the difference is not what they would give apart."""
    assert tuned.head_by_head.paired
    base, other = (headscope.read(folders / name).jackknife for name in ("base", "tuned"))
    place, apart = PLACE[0] * 4 + PLACE[1], []
    for name, rows in tuned.differences.groupby("column", sort=False):
        one, two = (study.estimate("heads", str(name)) for study in (base, other))
        assert np.allclose(rows["low"], (two - one).interval()[0], equal_nan=True)
        apart.append(two.less_apart(one).interval()[0][place] - rows["low"].iloc[place])
    assert np.abs(apart).max() > 1e-3


def test_other_texts_of_the_same_kind_change_no_head(folders, halves):
    """Half of the texts against the other half: of 34 columns about one names a head by luck."""
    assert halves.heading == "The same model on different texts"
    assert not halves.head_by_head.paired
    found = halves.differences
    assert found.groupby("column")["differs"].any().sum() <= 3
    inside = (found["low"] <= 0) & (found["high"] >= 0)
    assert 0.9 <= inside[found["low"].notna()].mean() <= 1
    one, two = (headscope.read(folders / name).jackknife.estimate("heads", "focal_share") for name in ("even", "odd"))
    rows = found.query("column == 'focal_share'")
    assert np.allclose(rows["high"], two.less_apart(one).interval()[1])
    assert any(sentence.startswith("The texts themselves: ") for sentence in halves.sentences)


def test_the_same_study_twice_is_said_and_differs_in_nothing(folders, tmp_path):
    shutil.copytree(folders / "base", tmp_path / "copy")
    same = compare(folders / "base", tmp_path / "copy")
    assert same.heading.startswith("The same study twice")
    assert same.what_differs.empty
    assert (same.differences["difference"].dropna() == 0).all()
    assert not same.differences["differs"].any()
    assert same.sentences[0] == "Every difference is exactly 0."
    page = same._repr_html_()
    assert page.startswith("<h2>The same study twice")
    assert "dot: differs" not in page


def test_heads_of_models_that_can_not_answer_to_each_other_are_not_set_side_by_side(folders, tiny_folder, sample):
    base, tuned, odd = (headscope.read(folders / name) for name in ("base", "tuned", "odd"))

    def changed(study, **model):
        other = headscope.read(study.folder)
        other.manifest = replace(other.manifest, model=replace(other.manifest.model, **model))
        return other

    def reason(*studies):
        return why_not({str(number): study for number, study in enumerate(studies)})

    assert reason(base, tuned) is None
    assert reason(base, odd) is None
    assert "two studies are compared; there are 3" in reason(base, tuned, odd)
    assert "different shapes" in reason(base, changed(tuned, layers=6))
    assert "different shapes" in reason(base, changed(tuned, family="roberta"))
    assert "random" in reason(base, changed(tuned, name="random:tiny"))
    assert "not known" in reason(changed(base, family=None), changed(tuned, family=None))
    some = headscope.read(folders / "tuned")
    some.manifest = replace(some.manifest, layers=[0, 1])
    assert "Different layers" in reason(base, some)
    cut = headscope.read(folders / "tuned")
    cut.manifest = replace(cut.manifest, source=replace(cut.manifest.source, windows_sha256="0" * 64))
    assert "vocabularies" in reason(base, cut)
    three = compare(folders / "base", folders / "tuned", folders / "odd")
    assert three.differences.empty
    assert list(three.differences.columns) == list(DIFFERENCES)
    with pytest.raises(HeadscopeError, match="two studies are compared"):
        three.difference_map()


def test_without_intervals_no_head_is_said_to_differ(folders):
    """At another threshold nothing is known of how sure a number is."""
    found = compare(*(headscope.read(folders / name).at(0.2) for name in ("base", "tuned")))
    assert found.differences["low"].isna().all()
    assert not found.differences["differs"].any()
    assert "can't be said" in found.sentences[0]
    assert found.difference_map(["mean_distance"]).axes
    assert found._repr_html_()


def test_the_map_shows_every_difference_and_marks_heads_that_differ(tuned, halves):
    figure = tuned.difference_map(["mean_distance", "attention_to_first"])
    panels = [axes for axes in figure.axes if axes.images]
    for axes, name, scale in zip(panels, ("mean_distance", "attention_to_first"), (1, 100), strict=True):
        rows = tuned.differences[tuned.differences["column"] == name]
        drawn = np.ma.filled(axes.images[0].get_array().astype(float), np.nan)
        assert np.allclose(drawn.reshape(-1), rows["difference"] * scale, equal_nan=True)
        dots = list(zip(*(axes.lines[0].get_data()[::-1]), strict=True))
        assert dots == [tuple(place) for place in rows[rows["differs"]][["layer", "head"]].to_numpy()]
        assert axes.images[0].norm.vmin == -axes.images[0].norm.vmax
    assert len([axes for axes in halves.difference_map().axes if axes.images]) == 6
    for columns in ([], ["mean_distence"], "mean_distance"):
        with pytest.raises(HeadscopeError, match="it must be a list of some of pairs_per_window"):
            tuned.difference_map(columns)


def test_studies_are_taken_one_by_one_or_as_a_list_and_nothing_else(folders):
    base, tuned = folders / "base", folders / "tuned"
    for given in ((base, tuned), ([str(base), headscope.read(tuned)],), ((one for one in (base, tuned)),)):
        assert compare(*given).models == ["base", "tuned"]
    for given in ((), (base,), (str(base),), ([base],)):
        with pytest.raises(HeadscopeError, match="two or more"):
            compare(*given)
    for given in ((3, 4), ([base], [tuned]), (pd.DataFrame({"a": [1, 2]}), base)):
        with pytest.raises(HeadscopeError, match="compare takes studies or their folders"):
            compare(*given)


def test_tables_and_everything_in_json_lie_beside_the_page(folders, tuned, tmp_path):
    written = tuned.save(tmp_path / "t.html")
    assert [path.name for path in written] == ["t.html", "t.csv", "t.parquet", "t.json", "t-differences.csv"]
    page = (tmp_path / "t.html").read_text("utf-8")
    assert "<h1>Two models of the same shape on the same windows</h1>" in page
    assert "only if one was made from the other" in page
    assert "The largest differences" in page
    beside = pd.read_csv(tmp_path / "t-differences.csv")
    assert np.allclose(beside["low"], tuned.differences["low"], equal_nan=True)
    facts = json.loads((tmp_path / "t.json").read_text("utf-8"))
    assert facts["heading"] == tuned.heading
    assert facts["what_differs"][0]["what"] == "weights"
    assert len(facts["what_differs"][0]["tuned"]) == 64
    assert facts["sentences"] == tuned.sentences
    assert [row["layer"] for row in facts["table"]] == tuned.table["layer"].tolist()
    assert facts["claims"][0]["verdicts"].keys() == {"base", "tuned"}
    assert len(facts["differences"]) == len(tuned.differences)
    assert [study["label"] for study in facts["studies"]] == ["base", "tuned"]
    assert facts["why_not_head_by_head"] is None
    with pytest.raises(HeadscopeError, match=r"t\.csv must end with \.html"):
        tuned.save(tmp_path / "t.csv")


def test_differences_of_an_earlier_comparison_do_not_stay_beside_a_page_that_has_none(folders, tuned, tmp_path):
    tuned.save(tmp_path / "t.html")
    three = compare(folders / "base", folders / "tuned", folders / "odd").save(tmp_path / "t.html")
    assert tmp_path / "t-differences.csv" not in three
    assert not (tmp_path / "t-differences.csv").exists()
    assert json.loads((tmp_path / "t.json").read_text("utf-8"))["differences"] == []


def test_the_command_says_what_differs_first(folders, tmp_path, capsys):
    studies = [str(folders / "base"), str(folders / "tuned")]
    assert app(["compare", *studies, "--out", str(tmp_path / "t.csv")], standalone_mode=False) == 2
    assert "must end with .html" in capsys.readouterr().err
    (tmp_path / "t-differences.csv").write_text("mine")
    assert app(["compare", *studies, "--out", str(tmp_path / "t.html")], standalone_mode=False) == 2
    assert "t-differences.csv exists" in capsys.readouterr().err
    assert app(["compare", *studies, "--out", str(tmp_path / "t.html"), "--overwrite"], standalone_mode=False) == 0
    out = capsys.readouterr().out
    assert out.startswith("Two models of the same shape on the same windows\n  weights: ")
    assert "1 of 12 heads differ" in out
    assert "only if one was made from the other" in out
    assert "beside it t.csv, t.parquet, t.json, t-differences.csv" in out
