"""Stability is that of studies of parts of the texts, compared slowly."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import planted
import pytest

from headscope.corpus.traits import TEXT
from headscope.folder.array_file import AbsentError
from headscope.insight.stability import rank_correlation, stability, top_tenth
from headscope.measure.declaration import GROUPS
from headscope.measure.tables import Totals, heads_table

HEADS = 30
COLUMNS = ("same_sentence_probability", "mean_distance", "signal_to_noise_sentence")


def made(texts: int) -> tuple[SimpleNamespace, dict]:
    """A study whose heads know sentences more and more, and what it was made of."""
    rng = np.random.default_rng(texts)
    text = planted.windows_of(texts, rng)
    outputs = planted.near_sighted(len(text), HEADS, text, rng)
    sentence = planted.sentences(len(text), rng)
    topic = rng.normal(size=(len(text), 5, outputs.shape[-1]))
    strength = np.linspace(0, 2, HEADS)[None, :, None, None]
    outputs += strength * np.take_along_axis(topic, sentence[..., None], 1)[:, None]
    ids = rng.integers(0, 8, (len(text), planted.LENGTH))
    given = {"outputs": outputs, "ids": ids, "sentence": sentence, "text": text}
    arrays = planted.states(**given)
    heads = heads_table(Totals(arrays), [0])
    study = SimpleNamespace(
        jackknife=planted.jackknife(arrays),
        heads=heads,
        column=lambda table, name: heads[name].to_numpy(float),
        folder="made-up",
        manifest=SimpleNamespace(gives=TEXT),
    )
    return study, given


def of_texts(given: dict, chosen: np.ndarray) -> pd.DataFrame:
    """The table `heads` of a study of some windows alone."""
    return heads_table(Totals(planted.states(**{name: array[chosen] for name, array in given.items()})), [0])


@pytest.mark.parametrize("texts", [12, 80])
def test_stability_is_that_of_studies_of_parts_of_the_texts(texts: int) -> None:
    study, given = made(texts)
    group = given["text"] % GROUPS
    halves = [of_texts(given, group % 2 == part) for part in range(2)]
    fifths = [of_texts(given, group % 5 == part) for part in range(5)]
    found = stability(study).set_index("column")
    assert set(found.index) == set(study.heads.columns) - {"layer", "head", "windows"}
    for name in COLUMNS:
        slow = pd.concat([part[name] for part in (*halves, *fifths)], axis=1).astype(float).rank().corr().to_numpy()
        pairs = [slow[2 + one, 2 + other] for one, other in combinations(range(5), 2)]
        assert found.loc[name, "halves"] == pytest.approx(slow[0, 1])
        assert found.loc[name, "fifths"] == pytest.approx(np.mean(pairs))
        tops = [set(table[name].nlargest(3).index) for table in (study.heads, *fifths)]
        assert {head for _, head in found.loc[name, "heads_kept"]} == set.intersection(*tops)
        assert found.loc[name, "top_tenth_kept"] == pytest.approx(len(set.intersection(*tops)) / 3)


def test_an_order_that_is_there_is_found_and_one_that_is_not_is_not() -> None:
    study, _ = made(80)
    found = stability(study).set_index("column")
    assert found.loc["same_sentence_probability", "halves"] > 0.9
    assert found.loc["same_sentence_probability", "fifths"] > 0.8
    assert abs(found.loc["signal_to_noise_repeat", "fifths"]) < 0.3  # no head knows of words
    assert np.isnan(found.loc["same_sentence_chance", "halves"])  # the same for all heads


def test_with_few_texts_a_sentence_says_why_there_is_none() -> None:
    study, _ = made(9)
    with pytest.raises(AbsentError, match=r"9 groups of texts; .* from 10 on"):
        stability(study)


def test_equal_numbers_share_a_rank_and_are_all_in_the_top_tenth_or_none() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        one, other = rng.integers(0, 5, (2, 30)).astype(float)
        expected = pd.Series(one).rank().corr(pd.Series(other).rank())
        assert rank_correlation(one, other) == pytest.approx(expected)
        top = top_tenth(one)
        assert all(top[one == value].all() or not top[one == value].any() for value in range(5))
    assert np.isnan(rank_correlation(np.ones(4), np.arange(4.0)))
