"""Findings are ordered by how far they stand over the strongest of their rivals, and say which that is."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from made_up import attention_on, heads, made_up

import headscope
from headscope.corpus.null_kinds import NULLS
from headscope.insight.every_threshold import at_every_threshold
from headscope.insight.findings import FINDERS, Finding, Quantity, findings, gathered, ordered
from headscope.insight.findings.about_attention import neighbours, punctuation
from headscope.insight.findings.finding import held_against

SHARE = Quantity("layers", ("attention_to_first",), (0,))
SHORT = Quantity("layers", ("mean_distance",), (0,), lower_is_more=True)


def found(value, chance=None, nulls=None, interval=None, **more):
    over = None if interval is None or chance is None else (interval[0] - chance, interval[1] - chance)
    given = {"topic": "T", "claim": "Much", "rest": ".", "what": "much", "quantity": SHARE, "against": NULLS, **more}
    return Finding(value=value, chance=chance, nulls=nulls or {}, interval=interval, over_chance=over, **given)


@pytest.mark.parametrize(
    ("finding", "lead"),
    [
        (found(0.4, 0.1), 2),
        (found(0.4, 0.1, {"weights": 0.2, "tokens": 0.1}), 1),
        (found(0.1, 0.4), 0),
        (found(10.0, 40.0, quantity=SHORT, unit="tokens"), 2),
        (found(40.0, 10.0, quantity=SHORT, unit="tokens"), 0),
        (found(10.0, 40.0, {"weights": 20.0}, quantity=SHORT, unit="tokens"), 1),
        (found(3.0, 0.0, unit="difference"), 2),
        (found(3.0, 0.0, {"weights": 2.0}, unit="difference"), 1),
        (found(0.5, 0.0, {"weights": 2.0}, unit="difference"), 0),
        (found(0.2, 0.0), math.inf),
        (found(-0.1, -0.1, unit="difference"), 0),
        (found(0.4), None),
    ],
)
def test_the_lead_is_over_the_strongest_rival(finding, lead):
    assert finding.lead == (None if lead is None else pytest.approx(lead))


def test_a_number_that_is_not_told_from_its_rival_has_no_lead():
    assert found(0.4, 0.2, interval=(0.19, 0.6)).lead == 0
    assert found(0.4, 0.2, interval=(0.21, 0.6)).lead == 1
    assert found(0.4, 0.1, {"tokens": 0.35}, interval=(0.3, 0.5)).lead == 0
    assert found(20.0, 40.0, quantity=SHORT, unit="tokens", interval=(1.0, 41.0)).lead == 0


def test_without_an_interval_a_lead_takes_a_tenth():
    assert found(0.21, 0.2).lead == 0
    assert found(0.23, 0.2).lead > 0


def test_what_stands_over_nothing_comes_last_and_nothing_at_all_after_it():
    little, much, alone = found(0.3, 0.1), found(0.9, 0.1), found(0.5)
    no_more, other_no_more = found(0.1, 0.1), found(0.1, 0.1, topic="U")
    nothing = found(0.9, 0.1, nothing_there=True)
    mixed = [nothing, no_more, alone, little, other_no_more, much]
    assert ordered(mixed) == [much, little, alone, no_more, other_no_more, nothing]


def test_the_strongest_null_is_told_where_the_finding_stands_over_it():
    assert found(0.4, 0.1).sentence == "Much."
    assert found(0.4, 0.1, {"tokens": 0.05, "weights": 0.12}).sentence == "Much; random weights 12 %."
    short = found(10.0, 40.0, {"tokens": 30.0, "weights": 43.0}, quantity=SHORT, unit="tokens")
    assert short.sentence == "Much; shuffled tokens 30.0."


def test_a_finding_that_does_not_stand_over_a_null_says_so():
    assert found(0.31, 0.1, {"weights": 0.31}).sentence == "Much. No more than random weights give (31 %)."
    unsure = found(0.4, 0.1, {"sentences": 0.35}, interval=(0.3, 0.5))
    assert unsure.sentence == "Much. Not surely more than shuffled sentences give (35 %)."
    short = found(10.0, 40.0, {"tokens": 8.0}, quantity=SHORT, unit="tokens")
    assert short.sentence == "Much. No less than shuffled tokens give (8.0)."


def test_what_a_null_with_random_weights_would_tell_is_asked_for_only_without_one():
    assert found(0.4, learned=" Learned?").sentence == "Much. Learned?"
    assert found(0.4, nulls={"tokens": 0.1}, learned=" Learned?").sentence == "Much; shuffled tokens 10 %. Learned?"
    assert found(0.4, nulls={"weights": 0.1}, learned=" Learned?").sentence == "Much; random weights 10 %."


def test_a_quantity_is_the_mean_over_rows_of_the_sum_of_columns():
    study = made_up({"a": [0.1, 0.2, 0.4], "b": [0.0, 0.1, np.nan], "c": [0.5, 1.0, 0.0]})
    assert Quantity("layers", ("a", "b"), (0, 1)).of(study) == pytest.approx(0.2)
    assert Quantity("layers", ("a", "b"), (1, 2)).of(study) == pytest.approx(0.3), "what is not there is left out"
    assert Quantity("layers", ("a",), (0, 1), per=("c",)).of(study) == pytest.approx(0.2)
    for nothing in (Quantity("layers", ("b",), (2,)), Quantity("layers", ("d",), (0,))):
        assert nothing.of(study) is None
    assert Quantity("layers", ("a",), (2,), per=("c",)).of(study) is None


def test_nulls_that_lack_the_number_are_no_rivals():
    study, null = made_up(attention_on([0.1, 0.5])), made_up(attention_on([0.1, 0.2]))
    against = {"weights": null, "tokens": made_up({"attention_to_comma": [0.1, 0.1]})}
    told = held_against(study, punctuation(study), against)
    assert told.nulls == {"weights": pytest.approx(0.2)}
    assert told.sentence == (
        "Layer 1 puts 50 % of its attention on punctuation (10 % of the tokens; random weights 20 %)."
    )


def test_no_preference_is_never_the_first_finding():
    columns = {"attention_self": [0.1, 0.0], "attention_previous": [0.2, 0.9], "attention_next": [0.3, 0.0]}
    study = made_up(attention_on([0.1, 0.108]), heads(**columns))
    nothing, something = punctuation(study), neighbours(study)
    assert nothing.sentence.startswith("No layer favours punctuation")
    assert ordered([nothing, something]) == [something, nothing]


@pytest.fixture(scope="module")
def study(tmp_path_factory, tiny, sample):
    out = tmp_path_factory.mktemp("ranking") / "study"
    return headscope.study(tiny, sample[:24], out=out, length=48, windows="first", progress=False)


def test_numbers_of_findings_are_what_their_quantities_are(study):
    made_of = [finding for finding in findings(study) if finding.quantity is not None]
    assert len(made_of) > 10
    for finding in made_of:
        assert finding.quantity.of(study) == pytest.approx(finding.value), finding.topic
        if finding.by_chance is not None:
            assert finding.by_chance.of(study) == pytest.approx(finding.chance), finding.topic
        low, high = finding.interval
        assert low <= finding.value <= high, finding.topic


def test_leads_fall_and_ties_keep_the_order_of_the_finders(study):
    told = findings(study)
    leads = [finding.lead for finding in told if finding.rank[0] == 0]
    assert leads == sorted(leads, reverse=True)
    topics = [finding.topic for finding in gathered(study)]
    assert len(topics) <= len(FINDERS)
    for tier in (1, 2, 3):
        of_tier = [topics.index(finding.topic) for finding in told if finding.rank[0] == tier]
        assert of_tier == sorted(of_tier)


def test_layers_and_heads_that_a_sentence_names_are_those_of_the_finding(study):
    for finding in findings(study):
        named = {(int(layer), int(head)) for layer, head in re.findall(r"layer (\d+), head (\d+)", finding.sentence)}
        assert named == set(finding.heads), finding.topic
        whole = re.sub(r"layer \d+, head \d+|(?<=the last layer )[0-9.]+", "", finding.sentence.lower())
        layers = {int(number) for number in re.findall(r"layers? (\d+)", whole)}
        layers |= {int(number) for number in re.findall(r"layers \d+ (?:to|and) (\d+)", whole)}
        layers |= {study.manifest.layers[-1]} if "last layer" in whole else set()
        assert layers <= set(finding.layers), finding.topic


def test_at_every_threshold_findings_stand_in_the_order_of_that_threshold(study):
    told = at_every_threshold(study)
    for place in (0, 45, 90):
        there = told.at(place)
        assert there == ordered(there)
        assert {finding.topic for finding in there} >= {finding.topic for finding in told.there[place]}
