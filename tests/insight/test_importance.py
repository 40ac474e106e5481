"""Which measures tell what a head is worth, and in which order heads are removed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from headscope.errors import HeadscopeError
from headscope.insight.importance import ALL, DEPTHS, WITHIN, correlation_within, parts, predictors, reliability
from headscope.insight.pruning import curve_cases, ordered, parse_order, removed_at
from headscope.insight.stability import rank_correlation
from headscope.measure.effects import ratio
from headscope.measure.jackknife import Estimate
from headscope.show.objects import Study

HEADS = [(layer, head) for layer in range(3) for head in range(4)]


def estimate(values: np.ndarray, noise: float = 0.01, groups: int = 12) -> Estimate:
    draws = np.random.default_rng(0)
    part = np.zeros((len(values), 64))
    part[:, :groups] = values[:, None] + noise * draws.normal(size=(len(values), groups))
    return ratio(part, (np.arange(64) < groups).astype(np.int64))


def test_within_layers_depth_makes_no_correlation() -> None:
    layers = np.repeat(np.arange(3), 4)
    values = np.random.default_rng(1).permutation(12).astype(float)
    assert correlation_within(layers + 0.0, values, layers) != correlation_within(values, values, layers)
    assert np.isnan(correlation_within(layers + 0.0, values, layers))
    assert correlation_within(values, values + 100 * layers, layers) == pytest.approx(1)
    by_hand = [rank_correlation(values[layers == layer], -values[layers == layer]) for layer in range(3)]
    assert correlation_within(values, -values, layers) == pytest.approx(np.mean(by_hand))


def test_parts_are_all_heads_within_layers_and_thirds() -> None:
    layers = np.repeat(np.arange(7), 2)
    found = {name: mine for name, mine, _, _ in parts(layers)}
    assert list(found) == [ALL, WITHIN, *DEPTHS]
    assert np.array_equal(sum(found[name].astype(int) for name in DEPTHS), np.ones(14))
    assert [name for name, *_ in parts(np.zeros(4, dtype=np.int64))] == [ALL]


def test_a_measure_that_is_the_importance_is_found_first(planted_study: Study) -> None:
    study = planted_study
    heads = list(zip(study.heads["layer"].tolist(), study.heads["head"].tolist(), strict=True))
    value = study.column("heads", "attention_previous")
    table = predictors(heads, estimate(value, 1e-9), study)
    first = table.iloc[0]
    assert (first["column"], first["where"]) == ("attention_previous", ALL)
    assert first["correlation"] == pytest.approx(1)
    assert (table["low"] <= table["correlation"] + 1e-12).all() or table["low"].isna().any()
    assert set(table["where"]) >= {ALL}


def test_another_model_s_study_is_refused(planted_study: Study) -> None:
    with pytest.raises(HeadscopeError, match="did not measure head 90:0"):
        predictors([(90, 0)], estimate(np.ones(1)), planted_study)


def test_halves_of_the_texts_agree_where_there_is_no_noise() -> None:
    values = np.random.default_rng(2).normal(size=30)
    assert reliability(estimate(values, 1e-9)) == pytest.approx(1)
    assert abs(reliability(estimate(0 * values, 1.0))) < 0.6
    assert np.isnan(reliability(estimate(values, groups=1)))


def test_orders_are_read_and_others_refused() -> None:
    assert parse_order("measure:-focal_share").falling
    assert parse_order("random").kind == "random"
    with pytest.raises(HeadscopeError, match="order is 'size'; it must be importance"):
        parse_order("size")


def test_the_least_important_heads_go_first_and_at_last_all() -> None:
    importance = np.arange(12)[::-1].astype(float)
    importance[3] = np.nan
    cases, rows = curve_cases(HEADS, [parse_order("importance")], 2, 4, 0, importance, None)
    assert [row.name for row in rows] == ["importance"] * 4 + ["random 1"] * 4 + ["random 2"] * 4
    assert [row.heads for row in rows[:4]] == removed_at(12, 4) == [3, 6, 9, 12]
    assert set(cases[rows[0].case]) == {HEADS[11], HEADS[10], HEADS[9]}
    assert cases[rows[3].case] == tuple(HEADS)
    assert rows[3].case == rows[7].case == rows[11].case
    assert len(set(cases)) == len(cases)
    assert ordered(importance)[-1] == 3
    assert cases == curve_cases(HEADS, [parse_order("importance")], 2, 4, 0, importance, None)[0]


def test_each_step_of_an_order_holds_the_step_before() -> None:
    cases, rows = curve_cases(HEADS, [parse_order("random")], 0, 6, 7, None, None)
    sets = [set(cases[row.case]) for row in rows]
    assert all(one < other for one, other in pairwise(sets))
