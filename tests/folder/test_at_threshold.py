"""A study at another threshold: what a run with that threshold would count, without the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from runs import small_study

import headscope
from headscope.errors import HeadscopeError
from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.insight.findings import findings
from headscope.measure.bins import THRESHOLDS
from headscope.measure.catalogue import columns
from headscope.model.loading import Model
from headscope.show.objects import Study

OLD = Path(__file__).parents[1] / "data" / "version-0.1.0"
FOCAL = ("focal_share", "focal_chance", "unique_focal_tokens", "unique_focal_chance")


@pytest.fixture(scope="module")
def study(tiny: Model, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return small_study(tiny, tmp_path_factory.mktemp("at") / "study", max_windows=24)


@pytest.fixture(scope="module")
def run_at_half(tiny: Model, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return small_study(tiny, tmp_path_factory.mktemp("at") / "half", max_windows=24, threshold=0.5)


def test_it_counts_what_a_run_with_that_threshold_counts(study: Study, run_at_half: Study) -> None:
    at, run = study.at(0.5), run_at_half
    for table in ("heads", "layers"):
        for name in ("pairs", "pairs_per_window", "mean_distance"):
            np.testing.assert_allclose(at.column(table, name), run.column(table, name), rtol=1e-3, err_msg=name)
    np.testing.assert_allclose(at.heads["same_sentence_chance"], run.heads["same_sentence_chance"])
    apart = np.abs(at.arrays["distance_histogram"] - run.arrays["distance_histogram"]).sum()
    assert apart <= 2, "but for a value exactly on the edge"
    assert at.manifest.options.threshold == 0.5


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.95])
def test_a_column_asked_for_by_itself_is_that_of_the_table(study: Study, threshold: float) -> None:
    for table in ("heads", "layers"):
        frame = getattr(study.at(threshold), table).select_dtypes("number")
        assert len(frame.columns) > 10
        for name in frame:
            alone = study.at(threshold).column(table, name)
            assert alone.dtype == np.float64
            np.testing.assert_array_equal(alone, frame[name], err_msg=name)


def test_at_its_own_threshold_pairs_are_the_same_and_shares_are_pooled(study: Study) -> None:
    at = study.at(0.3)
    assert np.abs(at.heads["pairs"] - study.heads["pairs"]).max() <= 1
    assert at.heads["pairs"].dtype == study.heads["pairs"].dtype
    assert not np.allclose(at.heads["repeat_probability"], study.heads["repeat_probability"], rtol=1e-3)
    spectrum = study.arrays["spectrum"][..., 650:].sum(-1)
    np.testing.assert_allclose(
        at.heads["repeat_probability"], (spectrum[..., [1, 3]].sum(-1) / spectrum.sum(-1)).reshape(-1)
    )
    shares = study.layers["same_sentence_probability"]
    np.testing.assert_allclose(at.layers["same_sentence_probability"], shares, atol=0.05)


def test_layers_are_pooled_over_their_heads(study: Study) -> None:
    at = study.at(0.2)
    of_layers = at.heads.groupby("layer").pairs.sum()
    assert at.layers["pairs"].tolist() == of_layers.tolist()
    weighted = (at.heads["same_sentence_probability"] * at.heads["pairs"]).groupby(at.heads["layer"]).sum()
    np.testing.assert_allclose(at.layers["same_sentence_probability"], weighted / of_layers)


def test_merged_parts_are_the_whole_at_any_threshold(study: Study, tiny: Model, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 8)
        parts = [
            small_study(tiny, tmp_path / f"{number}", max_windows=24, shard=f"{number}/2").folder for number in (1, 2)
        ]
    merged = headscope.merge(parts, out=tmp_path / "merged")
    for threshold in (0.1, 0.55):
        for name in columns():
            if name in merged.at(threshold).heads:
                np.testing.assert_allclose(
                    merged.at(threshold).heads[name], study.at(threshold).heads[name], rtol=1e-9, err_msg=name
                )


def test_what_no_threshold_enters_is_as_it_is(study: Study) -> None:
    at = study.at(0.7)
    assert list(at.heads.columns) == [name for name in study.heads.columns if name not in FOCAL]
    assert list(at.layers.columns) == [name for name in study.layers.columns if name not in FOCAL]
    for name in at.heads:
        if name in columns() and not columns()[name].of_high_pairs:
            assert at.heads[name].equals(study.heads[name]), name
    np.testing.assert_array_equal(at.arrays["attention_sum"], study.arrays["attention_sum"])
    np.testing.assert_array_equal(at.arrays.packed("similarity_sum"), study.arrays.packed("similarity_sum"))


@pytest.mark.parametrize("name", ["high_count", "repeat_histogram", "pairs", "unique_focal_histogram"])
def test_what_is_known_at_the_own_threshold_alone_is_absent(study: Study, name: str) -> None:
    at = study.at(0.2)
    assert name not in at.arrays
    assert name not in list(at.arrays)
    with pytest.raises(AbsentError, match=rf"The array {name} is known at the study's own threshold 0\.3 alone"):
        at.arrays[name]
    with pytest.raises(
        AbsentError, match=r"The column focal_share is .* run the study again with threshold=0.2 to have it"
    ):
        at.column("heads", "focal_share")
    with pytest.raises(AbsentError, match="has no column nonsense"):
        at.column("heads", "nonsense")
    for asked in ("intervals", "groups", "jackknife"):
        with pytest.raises(AbsentError, match="The interval of a number is known at the study's own threshold"):
            getattr(at, asked)


def test_the_example_has_its_high_pairs_at_that_threshold(study: Study) -> None:
    values = np.triu(study.example.normalised[1, 0], 1)
    for threshold in (0.1, 0.9):
        found = study.at(threshold).example.pairs(layer=1, head=0)
        assert len(found) == (values > np.float32(threshold)).sum()
    assert len(found) < len(study.example.pairs(layer=1, head=0))


def test_findings_are_told_at_every_threshold(study: Study) -> None:
    own = {finding.topic for finding in findings(study)}
    for threshold in THRESHOLDS[::15]:
        told = {finding.topic for finding in findings(study.at(threshold))}
        assert {"Same sentence", "Distance", "Punctuation"} <= told
        assert told & {"Focal token", "Division of labour"} == set()
    assert {"Focal token", "Division of labour"} <= own


def test_another_threshold_is_that_of_the_study_itself(study: Study) -> None:
    assert study.at(0.2).at(0.6).heads.equals(study.at(0.6).heads)
    assert "at threshold 0.6)" in repr(study.at(0.6))
    assert isinstance(StudyFolder(study.folder).at(0.6), StudyFolder)
    with pytest.raises(HeadscopeError, match=r"not at 0\.305; the nearest is 0\.3"):
        study.at(0.305)


@pytest.mark.parametrize("name", ["texts", "images"])
def test_a_study_of_an_older_version_says_that_it_can_not(name: str) -> None:
    with pytest.raises(AbsentError, match="does not keep what another threshold takes; run the study again"):
        headscope.read(OLD / name).at(0.2)
