"""Models side by side: the numbers are those of the studies, and heads are matched by what they do."""

import re
import shutil

import numpy as np
import pandas as pd
import pytest
import torch

import headscope
from headscope import HeadscopeError, compare
from headscope.cli.app import app
from headscope.insight.comparing import QUANTITIES
from headscope.insight.matching import PROFILE, match_heads
from headscope.model.loading import Model


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Networks this small only lose by sharing work among threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory, tiny, tiny_folder, sample):
    """The same texts through a tiny model and the same with other weights; `short` has other windows."""
    folder = tmp_path_factory.mktemp("compared")
    other = headscope.load(f"random:{tiny_folder}", seed=7, device="cpu")
    named = {"tiny": Model(tiny.network, tiny.tokenizer, "here/tiny"), "other": other}
    for name, model in named.items():
        headscope.study(model, sample, out=folder / name, length=48, max_windows=24, progress=False)
    headscope.study(tiny, sample, out=folder / "short", length=24, max_windows=8, progress=False)
    return folder


@pytest.fixture(scope="module")
def comparison(folders):
    return compare([folders / "tiny", folders / "other"])


def test_models_have_short_names_and_doubles_are_told_apart(folders, comparison):
    assert comparison.models == ["tiny", "random tiny"]
    shutil.copytree(folders / "tiny", folders / "again")
    assert compare([folders / "tiny", folders / "again"]).models == ["tiny (tiny)", "tiny (again)"]
    with pytest.raises(HeadscopeError, match="given twice"):
        compare([folders / "tiny", folders / "tiny"])


def test_the_table_holds_the_layers_of_every_study_by_relative_depth(folders, comparison):
    table = comparison.table
    assert table.groupby("model")["depth"].apply(list).to_dict() == {
        "tiny": [0, 0.5, 1],
        "random tiny": [0, 0.5, 1],
    }
    layers = headscope.read(folders / "other").layers
    mine = table[table.model == "random tiny"]
    assert mine["distance"].tolist() == layers["mean_distance"].tolist()
    ratio = layers["same_sentence_probability"] / layers["same_sentence_chance"]
    assert np.allclose(mine["same_sentence_over_chance"], ratio)
    assert np.allclose(mine["attention_on_separators"], 1 - layers["attention_to_word"])
    assert np.allclose(mine["unique_focal_share"] * 4, layers["unique_focal_tokens"])


def test_claims_stand_beside_each_other(comparison):
    claims = comparison.claims
    assert list(claims.columns) == ["claim", "paper", "tiny", "random tiny"]
    assert len(claims) >= 10
    assert set(claims["tiny"]) <= {"holds", "does not hold", "can't be said"}


def test_a_head_matches_itself_wherever_it_stands():
    """Model b has the heads of a in another order, and one head that is like none."""
    generator = np.random.default_rng(3)
    values = pd.DataFrame(generator.random((12, len(PROFILE))), columns=list(PROFILE))
    first = values.assign(layer=np.repeat(range(3), 4), head=np.tile(range(4), 3))
    order = generator.permutation(12)
    second = values.iloc[order].assign(layer=np.repeat(range(3), 4), head=np.tile(range(4), 3)).reset_index(drop=True)
    matches = match_heads({"a": first, "b": second})
    assert len(matches) == 12
    assert (matches["difference"] == 0).all()
    assert (matches["chance"] > 0.1).all()
    for _, row in matches.iterrows():
        assert order[row["other_layer"] * 4 + row["other_head"]] == row["layer"] * 4 + row["head"]


def test_heads_without_high_pairs_match_nothing():
    values = pd.DataFrame(np.random.default_rng(3).random((4, len(PROFILE))), columns=list(PROFILE))
    table = values.assign(layer=0, head=range(4))
    empty = table.assign(mean_distance=np.nan)
    assert match_heads({"a": table, "b": empty}).empty
    mixed = table.assign(mean_distance=[np.nan, 2.0, 3.0, 4.0])
    assert 0 not in match_heads({"a": mixed, "b": table})["head"].tolist()


def test_the_figure_has_a_panel_a_quantity_and_a_line_a_model(comparison):
    figure = comparison.figure()
    panels = [axes for axes in figure.axes if axes.lines]
    assert len(panels) == len(QUANTITIES)
    table = comparison.table
    for axes in panels:
        models = [line for line in axes.lines if line.get_label() in comparison.models]
        assert [line.get_label() for line in models] == comparison.models
    line = panels[0].lines[0]
    assert line.get_ydata().tolist() == table[table.model == "tiny"]["distance"].tolist()


def test_the_page_needs_no_network_and_the_table_lies_beside_it(comparison, tmp_path):
    comparison.save(tmp_path / "models.html")
    page = (tmp_path / "models.html").read_text("utf-8")
    assert "<svg" in page
    assert not re.search(r"(src|href)=\"(https?:)?//", page)
    for sentence in comparison.sentences:
        assert sentence.split("(")[0].replace("'", "&#39;") in page
    assert pd.read_csv(tmp_path / "models.csv").shape == comparison.table.shape
    assert pd.read_parquet(tmp_path / "models.parquet").equals(comparison.table)
    assert "<svg" in comparison._repr_html_()


def test_names_can_not_smuggle_code_into_the_page(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("headscope.show.pages.comparison_page._svg", lambda _: "<svg></svg>")
    comparison = compare([folders / "tiny", folders / "other"])
    comparison.studies = {
        "<script>alert(1)</script>": comparison.studies["tiny"],
        "b": comparison.studies["random tiny"],
    }
    comparison.save(tmp_path / "models.html")
    assert "<script>" not in (tmp_path / "models.html").read_text("utf-8")


def test_studies_of_different_options_are_refused(folders):
    with pytest.raises(HeadscopeError, match=r"length=48.*with 24"):
        compare([folders / "tiny", folders / "short"])
    with pytest.raises(HeadscopeError, match="two or more"):
        compare([folders / "tiny"])


def test_the_command_writes_once_and_not_over_what_is_there(folders, tmp_path, capsys):
    command = ["compare", str(folders / "tiny"), str(folders / "other"), "--out", str(tmp_path / "c.html")]
    assert app(command, standalone_mode=False) == 0
    assert "The paper's claims" in capsys.readouterr().out
    assert app(command, standalone_mode=False) == 2
    assert "exists; give another --out, or --overwrite" in capsys.readouterr().err


def test_shares_over_pairs_are_not_held_against_means_over_windows(tiny, sample, tmp_path) -> None:
    asked = {"length": 32, "max_windows": 40, "progress": False}
    one, other = (
        headscope.study(tiny, texts, out=tmp_path / name, **asked)
        for name, texts in (("one", sample[:8]), ("other", sample[8:16]))
    )
    with pytest.raises(HeadscopeError, match="is read at another threshold, so its shares are pooled over pairs"):
        headscope.compare(one.at(0.2), other)
    told = " ".join(headscope.compare(one.at(0.2), other.at(0.2)).sentences)
    assert "nan" not in told
    assert "the heads have different focal tokens" not in told
