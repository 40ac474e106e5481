"""Heads are over chance as often as they should be: by luck at the rate that is said, and always where they are."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import planted
import pytest

from headscope.corpus.traits import TEXT
from headscope.folder.array_file import AbsentError
from headscope.insight.discoveries import discovered, heads_over, told_from_chance
from headscope.measure.jackknife import Estimate
from headscope.measure.tables import Totals, heads_table

SENTENCE = "same_sentence_probability"


def of_groups(means: np.ndarray) -> Estimate:
    """Of a mean over groups of equal weight, (G, N)."""
    groups = len(means)
    left_out = (means.sum(0) - means) / (groups - 1)
    return Estimate(means.mean(0), left_out, np.full(means.shape, 1 / groups))


def slow(p_values: list[float], rate: float) -> list[bool]:
    """Benjamini and Hochberg as they wrote it."""
    tests = sorted(p for p in p_values if not np.isnan(p))
    k = max([place for place, p in enumerate(tests, 1) if p <= place / len(tests) * rate], default=0)
    return [not np.isnan(p) and k > 0 and p <= tests[k - 1] for p in p_values]


def test_discoveries_are_those_of_the_rule_as_it_was_written() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        p_values = rng.random(rng.integers(1, 12)) ** rng.integers(1, 5)
        p_values[rng.random(len(p_values)) < 0.1] = np.nan
        assert discovered(p_values, 0.1).tolist() == slow(p_values.tolist(), 0.1)
    assert discovered(np.full(3, np.nan)).tolist() == [False] * 3
    assert discovered(np.array([])).tolist() == []


def test_without_an_effect_one_study_in_twenty_names_any_head() -> None:
    studies, heads = 1500, 72
    found = of_groups(np.random.default_rng(1).normal(size=(16, studies * heads)))
    named = [discovered(p).any() for p in found.p_values().reshape(studies, heads)]
    assert 0.035 < np.mean(named) < 0.065


def test_of_the_heads_named_one_in_twenty_is_named_by_luck() -> None:
    """A third of the heads have an effect: they are found, and few others."""
    rng = np.random.default_rng(2)
    studies, heads, real = 400, 72, 24
    effect = np.tile(np.arange(heads) < real, studies)
    found = of_groups(rng.normal(size=(16, studies * heads)) + 1.5 * effect)
    named = np.array([discovered(p) for p in found.p_values().reshape(studies, heads)])
    truly = effect.reshape(studies, heads)
    false = (named & ~truly).sum(1) / np.maximum(named.sum(1), 1)
    assert false.mean() < 0.05
    assert (named & truly).sum() / truly.sum() > 0.95


def test_each_head_is_over_below_neither_or_can_not_be_said() -> None:
    rng = np.random.default_rng(3)
    means = rng.normal(size=(12, 4)) * 0.01 + np.array([0.5, -0.5, 0.0, 0.5])
    means[:, 2] -= means[:, 2].mean()
    found = of_groups(means)
    found.weight[5:, 3] = 0  # seven groups of this one
    said = told_from_chance(found)
    assert said.verdicts == ["over", "below", "not told from chance", "can't be said"]
    assert str(said) == "1 of 3 heads over chance (false discovery rate 5 %)"


def a_study(arrays) -> SimpleNamespace:
    """As much of a study as is asked for."""
    heads = heads_table(Totals(arrays), [0])

    def column(table: str, name: str) -> np.ndarray:
        if name not in heads:
            raise AbsentError(f"no {name}")
        return heads[name].to_numpy()

    return SimpleNamespace(
        jackknife=planted.jackknife(arrays),
        heads=heads,
        column=column,
        folder="made-up",
        manifest=SimpleNamespace(gives=TEXT),
    )


HEADS = 120


@pytest.fixture(scope="module")
def blind():
    """Studies of near-sighted heads that are blind to sentences and words, in texts of unequal length."""
    made = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        texts = planted.windows_of(24, rng)
        outputs = planted.near_sighted(len(texts), HEADS, texts, rng)
        ids = rng.integers(0, 8, (len(texts), planted.LENGTH))
        made.append(a_study(planted.states(outputs, ids, planted.sentences(len(texts), rng), texts)))
    return made


def test_a_near_sighted_head_has_a_lift_of_1_given_distance_within_its_interval(blind) -> None:
    """And not given chance alone: near tokens share a sentence anyway."""
    covered, lifts = [], []
    for study in blind:
        probability = study.jackknife.estimate("heads", SENTENCE)
        lift = probability.joined(study.jackknife.estimate("heads", f"{SENTENCE[:13]}_chance_by_distance"), np.divide)
        low, high = lift.interval()
        covered.append((low <= 1) & (high >= 1))
        lifts.append(lift.value)
        assert str(heads_over(study, SENTENCE, "same_sentence_chance")).startswith(f"{HEADS} of {HEADS} heads over")
    assert np.mean(lifts) == pytest.approx(1, abs=0.005)
    assert 0.93 <= np.mean(covered) <= 0.97


@pytest.mark.parametrize("column", ["signal_to_noise_sentence", "signal_to_noise_repeat"])
def test_a_near_sighted_head_has_no_signal_within_its_interval(blind, column: str) -> None:
    covered = []
    for study in blind:
        low, high = study.jackknife.estimate("heads", column).interval()
        covered.append((low <= 0) & (high >= 0))
    assert 0.93 <= np.mean(covered) <= 0.97


def test_heads_that_are_blind_to_sentences_are_not_named(blind) -> None:
    named = [heads_over(study, SENTENCE).found.sum() for study in blind]
    assert sum(named) <= 2
    assert str(heads_over(blind[0], SENTENCE)) == (
        f"0 of {HEADS} heads over chance given distance (false discovery rate 5 %)"
    )


def test_heads_that_know_sentences_or_words_are_found_among_those_that_do_not() -> None:
    rng = np.random.default_rng(9)
    texts = planted.windows_of(24, rng)
    ids = rng.integers(0, 8, (len(texts), planted.LENGTH))
    sentence = planted.sentences(len(texts), rng)
    outputs = planted.near_sighted(len(texts), 40, texts, rng)
    topic = rng.normal(size=(len(texts), 8, outputs.shape[-1]))
    of_sentence = np.take_along_axis(topic, sentence[..., None], 1)
    of_word = np.take_along_axis(topic, ids[..., None], 1)
    outputs[:, :5] += 1.5 * of_sentence[:, None]
    outputs[:, 5:10] += 1.5 * of_word[:, None]
    study = a_study(planted.states(outputs, ids, sentence, texts))
    for column, chance in ((SENTENCE, None), ("signal_to_noise_sentence", 0.0)):
        over = heads_over(study, column, chance).over
        assert over[:5].all()
        assert over[5:].sum() <= 2
    for column, chance in (("repeat_probability", None), ("signal_to_noise_repeat", 0.0), ("repeat_auc", 0.5)):
        over = heads_over(study, column, chance).over
        assert over[5:10].all()
        assert over[:5].sum() + over[10:].sum() <= 2
    assert str(heads_over(study, "repeat_auc", 0.5)).split("heads over ")[1].startswith("0.5 (")


def test_what_a_study_does_not_say_is_absent(blind) -> None:
    with pytest.raises(AbsentError):
        heads_over(blind[0], "no_such_column", 0.0)
    with pytest.raises(ValueError, match="say which"):
        heads_over(blind[0], "mean_distance")
