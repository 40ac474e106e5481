"""Findings are held against null studies, each against those that take away what it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headscope.insight.findings import Finding, findings
from headscope.show.objects import Study


@pytest.fixture(scope="module")
def study(planted_study: Study) -> Study:
    return planted_study


def test_findings_have_the_number_of_each_null(study: Study) -> None:
    found = [finding for finding in findings(study) if finding.quantity is not None]
    assert len(found) > 10
    for finding in found:
        for null in ("tokens", "sentences"):
            expected = finding.quantity.of(study.nulls[null])
            assert finding.nulls.get(null) == (None if expected is None else pytest.approx(expected))


def test_a_head_is_held_against_the_strongest_of_its_layer_with_random_weights(study: Study) -> None:
    drawn = study.nulls["weights"].heads
    neighbours = next(finding for finding in findings(study) if finding.topic == "Neighbours")
    ((layer, _),) = neighbours.heads
    assert neighbours.nulls["weights"] == drawn[drawn.layer == layer]["attention_previous"].max()
    assert "random weights" in neighbours.sentence


def test_what_stands_over_its_nulls_comes_before_what_does_not(study: Study) -> None:
    leads = [finding.lead for finding in findings(study) if not finding.nothing_there]
    standing = [lead for lead in leads if lead is not None and lead > 0]
    assert standing == sorted(standing, reverse=True)
    assert leads[: len(standing)] == standing
    assert findings(study)[0].topic == "Neighbours"


def test_only_nulls_that_take_away_what_it_is_about_are_rivals() -> None:
    finding = Finding("Made up", "A head does it", ".", 0.4, "made up", chance=0.1, interval=(0.39, 0.41))
    finding = replace(finding, over_chance=(0.29, 0.31), nulls={"tokens": 0.4, "weights": 0.2})
    assert finding.lead == pytest.approx(1)
    assert finding.sentence == "A head does it; random weights 20 %."
    about_order = replace(finding, against=("tokens", "weights"))
    assert about_order.lead == 0
    assert about_order.sentence == "A head does it. No more than shuffled tokens give (40 %)."


def test_at_another_threshold_nulls_are_read_there(study: Study) -> None:
    at = study.at(0.5)
    distance = next(finding for finding in findings(at) if finding.topic == "Distance")
    for name, null in at.nulls.items():
        assert null.manifest.options.threshold == 0.5
        assert distance.nulls[name] == null.layers.mean_distance[distance.quantity.places[0]]
