"""Numbers, claims and roles beside nulls."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import headscope
from headscope.corpus.null_kinds import NULLS
from headscope.insight import claims as module
from headscope.insight.claims import ABOUT_LANGUAGE, CLAIMS, claims, claims_table
from headscope.insight.judges import Judged
from headscope.insight.roles import rules_of, summary
from headscope.show import figures
from headscope.show.objects import Study

TOPICS_OF_LANGUAGE = {parts[0] for parts in CLAIMS if parts[-1] in ABOUT_LANGUAGE}


def test_every_number_stands_beside_what_it_is_held_against(planted_study: Study) -> None:
    table = planted_study.beside
    heads = planted_study.heads
    mine = table[(table["column"] == "same_sentence_probability") & (table["head"] >= 0)].reset_index(drop=True)
    np.testing.assert_array_equal(mine["value"], heads["same_sentence_probability"])
    np.testing.assert_array_equal(mine["chance"], heads["same_sentence_chance"])
    np.testing.assert_array_equal(mine["chance_by_distance"], heads["same_sentence_chance_by_distance"])
    tokens = planted_study.nulls["tokens"].heads["same_sentence_probability"]
    np.testing.assert_array_equal(mine["tokens"], tokens)
    drawn = planted_study.nulls["weights"].heads.groupby("layer")["same_sentence_probability"].mean()
    np.testing.assert_allclose(mine["weights"], drawn[mine["layer"]].to_numpy(), rtol=1e-12)
    known = ~np.isnan(mine["low"])
    assert (mine["low"] <= mine["value"])[known].all()
    assert (mine["value"] <= mine["high"])[known].all()
    pd.testing.assert_frame_equal(pd.read_parquet(planted_study.folder / "beside.parquet"), table)


def test_without_nulls_the_same_table_has_nothing_there(tiny, sample, tmp_path: Path) -> None:
    study = headscope.study(tiny, sample[:10], out=tmp_path / "s", length=32, progress=False)
    assert study.beside[list(NULLS)].isna().all(axis=None)


def judged(holds: bool):
    return lambda study: Judged(holds, f"{study.folder.name} {holds}")


def only_in(*names: str):
    """A judge whose criterion is met by the study and by nulls of these names."""
    return lambda study: Judged(study.manifest.null is None or study.manifest.null.kind in names, "made up")


@pytest.mark.parametrize(
    ("judge", "about_language", "verdict"),
    [
        (only_in(), True, "holds"),
        (only_in("sentences"), True, "holds"),
        (only_in("weights"), True, "holds without learning"),
        (only_in("weights"), False, "holds without learning"),
        (only_in("tokens"), True, "holds on shuffled tokens"),
        (only_in("tokens"), False, "holds"),
        (judged(False), True, "does not hold"),
    ],
)
def test_a_claim_that_a_null_meets_is_said_as_that(
    judge, about_language, verdict, planted_study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLAIMS", ((*CLAIMS[0][:-1], judge),))
    monkeypatch.setattr(module, "ABOUT_LANGUAGE", (judge,) if about_language else ())
    (claim,) = claims(planted_study, thresholds=False)
    assert claim.verdict == verdict
    assert set(claim.nulls) == set(NULLS)
    table = claims_table({"planted": [claim]})
    assert {*NULLS} <= set(table.columns)


def test_on_shuffled_tokens_and_on_random_weights_no_claim_about_language_holds(
    planted_study: Study, tiny, sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = tuple((*parts[:-1], judged(True)) for parts in CLAIMS)
    monkeypatch.setattr(module, "CLAIMS", every)
    monkeypatch.setattr(module, "ABOUT_LANGUAGE", tuple(parts[-1] for parts in every if parts[0] in TOPICS_OF_LANGUAGE))
    for null in ("tokens", "weights"):
        held = {
            claim.topic for claim in claims(planted_study.nulls[null], thresholds=False) if claim.verdict == "holds"
        }
        assert not held & TOPICS_OF_LANGUAGE
    drawn = headscope.study(
        replace(tiny, name="random:tiny"), sample[:10], out=tmp_path / "r", length=32, progress=False
    )
    assert not [claim for claim in claims(drawn, thresholds=False) if claim.verdict == "holds"]


def test_the_real_claims_are_judged_on_nulls(planted_study: Study) -> None:
    found = {claim.topic: claim for claim in claims(planted_study)}
    assert found["Same sentence"].nulls["tokens"].measured
    assert all(claim.nulls or claim.verdict == "can't be said" for claim in found.values())
    json.dumps(headscope.claims(planted_study).to_dict("records"))


def test_roles_are_counted_by_depth_and_told(planted_study: Study, tiny, sample, tmp_path: Path) -> None:
    other = headscope.study(
        tiny, sample[:10], out=tmp_path / "s", length=planted_study.manifest.options.length, progress=False
    )
    compared = headscope.compare([planted_study, other])
    named = compared.roles[compared.roles["heads"] > 0].set_index("role")
    assert named.loc["previous token", ["heads", "early", "middle", "late"]].tolist() == [1, 1, 0, 0]
    assert set(compared.roles["model"]) == {"planted"}
    assert any("No nulls were measured for tiny" in sentence for sentence in compared.sentences)
    assert "distance_weights" in compared.table
    np.testing.assert_array_equal(
        compared.table[compared.table["model"] == "planted"]["distance_tokens"],
        planted_study.nulls["tokens"].layers["mean_distance"],
    )
    page = compared._repr_html_()
    assert "What the heads do" in page
    assert "Beside nulls" in page


def test_the_atlas_marks_the_roles(planted_study: Study) -> None:
    figure = figures.draw(planted_study, "atlas")
    letters = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert "P" in letters
    assert "R" in letters
    figure.savefig(io.BytesIO(), format="png")


def test_a_summary_counts_roles_and_says_how_stable_they_are(planted_study: Study) -> None:
    told = summary(planted_study, planted_study.roles)
    assert "previous token 1" in told
    assert "both halves" in told
    assert list(rules_of(["near"])) == ["near"]
    assert "≤ 0.5" in rules_of(["near"])["near"]


def test_the_report_shows_what_each_head_does_beside_nulls(planted_study: Study, tmp_path: Path) -> None:
    page = planted_study.report(tmp_path / "report.html").read_text("utf-8")
    assert "What each head does" in page
    assert "Layer 0, head 0: previous token" in page
    assert "random weights: " in page
    assert "attention on the previous token ≥ 0.4" in page


def test_the_report_of_a_study_without_nulls_says_how_to_have_roles(tiny, sample, tmp_path: Path) -> None:
    study = headscope.study(tiny, sample[:10], out=tmp_path / "s", length=32, progress=False)
    page = study.report().read_text("utf-8")
    assert "What each head does" in page
    assert "headscope nulls" in page
    assert "rolemap" not in page.partition("</style>")[2]
