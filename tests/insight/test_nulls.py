"""Null studies lie in the folder of a study; findings are held against each."""

from __future__ import annotations

import shutil

import pytest
from runs import small_study

from headscope.insight.findings import findings
from headscope.insight.nulls import null_studies


@pytest.fixture(scope="module")
def study(tmp_path_factory, tiny):
    """With the study itself as one null, and fewer windows as another: both are rivals that give about as much."""
    out = tmp_path_factory.mktemp("nulls") / "study"
    study = small_study(tiny, out, max_windows=40)
    shutil.copytree(out, out.parent / "copy")
    shutil.copytree(out.parent / "copy", out / "nulls" / "weights")
    small_study(tiny, out / "nulls" / "tokens", max_windows=16)
    return study


def test_finished_nulls_are_found_by_their_names(study):
    assert set(null_studies(study)) == {"weights", "tokens"}
    assert null_studies(study)["tokens"].windows == 16
    (study.folder / "nulls" / "sentences").mkdir()
    assert set(null_studies(study)) == {"weights", "tokens"}, "one that is not finished is none"


def test_nulls_of_other_layers_are_not_held_against_a_study(study, tiny):
    other = study.folder / "nulls" / "sentences"
    small_study(tiny, other, max_windows=4, layers=[0, 1], overwrite=True)
    assert "sentences" not in null_studies(study)
    shutil.rmtree(other)


def test_a_study_has_no_nulls_unless_they_are_there(study):
    assert null_studies(null_studies(study)["weights"]) == {}


def test_findings_are_held_against_each_null(study):
    nulls = null_studies(study)
    found = [finding for finding in findings(study) if finding.quantity is not None]
    assert len(found) > 10
    for finding in found:
        assert finding.nulls == {name: pytest.approx(finding.quantity.of(null)) for name, null in nulls.items()}
        assert finding.lead == 0, "nothing stands over the study itself"
        assert "than random weights give" in finding.sentence or "than shuffled tokens give" in finding.sentence
    assert "--model random" not in " ".join(finding.sentence for finding in found)


def test_at_another_threshold_nulls_are_read_there(study):
    at = study.at(0.5)
    nulls = null_studies(at)
    distance = next(finding for finding in findings(at) if finding.topic == "Distance")
    for name, null in nulls.items():
        assert null.manifest.options.threshold == 0.5
        assert distance.nulls[name] == null.layers.mean_distance[distance.quantity.places[0]]
    assert distance.nulls["weights"] == distance.value
