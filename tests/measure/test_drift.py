"""What moves, held against slow and obvious references: token by token, window by window."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.measure.drift import (
    embedding_cosines,
    hidden_changes,
    hidden_cosines,
    losses,
    masked_places,
    next_tokens,
)
from headscope.measure.effects import BY_NAME, case_table, estimate, head_table, intervals, ratio, undisturbed_loss


def states(seed: int, copies: int, windows: int, tokens: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    before = torch.randn(windows, tokens, 5)
    after = before + 0.3 * torch.randn(copies, windows, tokens, 5)
    sizes = torch.randint(1, tokens + 1, (windows,))
    return before, after, torch.arange(tokens) < sizes[:, None]


def cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(one.double() @ other.double() / (one.double().norm() * other.double().norm()))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 3), st.integers(1, 6))
def test_changes_and_cosines_are_sums_over_real_tokens(seed: int, copies: int, windows: int, tokens: int) -> None:
    before, after, real = states(seed, copies, windows, tokens)
    changes, cosines = hidden_changes(before, after, real), hidden_cosines(before, after, real)
    pooled = embedding_cosines(before, after, real)
    for copy in range(copies):
        for window in range(windows):
            there = [token for token in range(tokens) if real[window, token]]
            change = sum(
                float((after[copy, window, token] - before[window, token]).norm() / before[window, token].norm())
                for token in there
            )
            alike = sum(cosine(before[window, token], after[copy, window, token]) for token in there)
            means = before[window, there].mean(0), after[copy, window, there].mean(0)
            assert float(changes[copy, window]) == pytest.approx(change, rel=1e-5)
            assert float(cosines[copy, window]) == pytest.approx(alike, rel=1e-5, abs=1e-5)
            assert float(pooled[copy, window]) == pytest.approx(cosine(*means), abs=1e-5)


def test_what_does_not_move_has_no_change_and_cosines_of_one() -> None:
    before, _, real = states(0, 1, 2, 4)
    assert float(hidden_changes(before, before[None], real).sum()) == 0
    assert torch.allclose(hidden_cosines(before, before[None], real)[0], real.sum(1).double(), atol=1e-6)
    assert torch.allclose(embedding_cosines(before, before[None], real), torch.ones(1, 2).double(), atol=1e-6)


def test_a_loss_is_minus_the_log_of_the_probability() -> None:
    logits, targets = torch.randn(4, 7), torch.tensor([0, 3, 6, 2])
    expected = [-math.log(float(logits[row].softmax(0)[target])) for row, target in enumerate(targets.tolist())]
    assert losses(logits, targets).tolist() == pytest.approx(expected, rel=1e-5)


def test_a_token_predicts_the_next_and_padding_predicts_nothing() -> None:
    ids, real = torch.tensor([[5, 6, 7, 0]]), torch.tensor([[True, True, True, False]])
    places, targets = next_tokens(ids, real)
    assert places.tolist() == [[True, True, False, False]]
    assert targets[places].tolist() == [6, 7]


def test_masked_tokens_depend_on_the_window_and_the_seed_alone() -> None:
    ids = np.arange(80, dtype=np.int64).reshape(2, 40)
    content = np.ones((2, 40), dtype=bool)
    content[:, [0, -1]] = False
    places = masked_places(ids, content, 3)
    assert places.sum(1).tolist() == [6, 6]
    assert not (places & ~content).any()
    assert np.array_equal(masked_places(ids[1:], content[1:], 3)[0], places[1])
    assert not np.array_equal(masked_places(ids, content, 4), places)
    assert masked_places(ids[:1], np.zeros((1, 40), dtype=bool), 3).sum() == 0


def sums(cases: int, groups: int, seed: int = 0) -> dict[str, np.ndarray]:
    draws = np.random.default_rng(seed)
    found = {name: np.zeros((cases, 64)) for name in ("hidden_change", "hidden_cosine", "embedding_cosine", "loss")}
    counts = {name: np.zeros(64, dtype=np.int64) for name in ("tokens", "windows", "predicted")}
    for group in range(groups):
        for name in found:
            found[name][:, group] = draws.uniform(0.1, 1, cases)
        for name in counts:
            counts[name][group] = draws.integers(1, 9)
    return found | counts | {"undisturbed_loss": np.where(np.arange(64) < groups, 0.1, 0.0)}


def test_a_column_is_a_ratio_of_sums_and_its_interval_leaves_out_groups() -> None:
    given = sums(3, 10)
    table, ends = head_table(given, [(0, 0), (0, 1), (1, 0)]), intervals(given, [(0, 0), (0, 1), (1, 0)])
    assert list(table) == [
        *("layer", "head", "hidden_change", "hidden_cosine", "embedding_cosine", "loss", "loss_increase")
    ]
    assert table["hidden_change"][1] == pytest.approx(given["hidden_change"][1].sum() / given["tokens"].sum())
    increase = given["loss"][2].sum() - given["undisturbed_loss"].sum()
    assert table["loss_increase"][2] == pytest.approx(increase / given["predicted"].sum())
    assert undisturbed_loss(given).value[0] == pytest.approx(given["undisturbed_loss"].sum() / given["predicted"].sum())
    row = ends[(ends["column"] == "hidden_change") & (ends["layer"] == 0) & (ends["head"] == 1)].iloc[0]
    without = [
        (given["hidden_change"][1].sum() - given["hidden_change"][1, group])
        / (given["tokens"].sum() - given["tokens"][group])
        for group in range(10)
    ]
    error = math.sqrt(9 / 10 * sum((one - np.mean(without)) ** 2 for one in without))
    assert row["groups"] == 10
    assert estimate(given, BY_NAME["hidden_change"]).error[1] == pytest.approx(error)
    assert row["low"] < row["value"] < row["high"]
    assert list(case_table(given, [2, 0])["loss"]) == [table["loss"][2], table["loss"][0]]


def test_few_groups_have_no_interval_and_no_loss_has_no_column() -> None:
    given = {name: array for name, array in sums(2, 3).items() if "loss" not in name}
    ends = intervals(given, [(0, 0), (0, 1)])
    assert ends["low"].isna().all()
    assert set(ends["column"]) == {"hidden_change", "hidden_cosine", "embedding_cosine"}
    assert np.isnan(ratio(np.zeros((1, 64)), np.zeros(64, dtype=np.int64)).value).all()
