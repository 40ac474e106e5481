"""Fine bins nest in all others, and an AUC made of bins is that of the values."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st

from headscope.measure import bins
from headscope.measure.declaration import Auc
from headscope.measure.definitions_torch import fine_bin, value_bin


def of_bins(values: np.ndarray) -> np.ndarray:
    """Counts in fine bins."""
    places = fine_bin(torch.from_numpy(values.astype(np.float32))).numpy()
    return np.bincount(places, minlength=bins.FINE_BINS)


@given(st.floats(-2, 1, width=32))
def test_a_fine_bin_lies_in_its_bin_of_the_spectrum_and_in_its_coarse_bin(value: float) -> None:
    n = np.float32(value)
    fine = int(fine_bin(torch.tensor([n]))[0])
    assert fine == reference.fine_bin(n)
    direct = int(value_bin(torch.tensor([n]))[0])
    counts = of_bins(np.array([n]))
    assert bins.value_spectrum(counts).argmax() == direct
    in_coarse = int(bins.coarse(counts).argmax())
    assert bins.COARSE_EDGES[in_coarse] <= fine < bins.COARSE_EDGES[in_coarse + 1]


def test_a_larger_value_never_falls_into_a_lower_bin() -> None:
    rng = np.random.default_rng(0)
    near_one = (1 - np.logspace(-8, -1.5, 4000)).astype(np.float32)
    values = np.sort(np.concatenate([rng.uniform(-2, 1, 20_000).astype(np.float32), near_one, [np.float32(1)]]))
    places = fine_bin(torch.from_numpy(values)).numpy()
    assert (np.diff(places) >= 0).all()
    assert places[-1] == bins.FINE_BINS - 1
    np.testing.assert_array_equal(
        bins.value_spectrum(of_bins(values)),
        np.bincount(value_bin(torch.from_numpy(values)).numpy(), minlength=bins.VALUE_BINS),
    )


def test_coarse_bins_are_made_of_whole_fine_ones() -> None:
    assert (np.diff(bins.COARSE_EDGES) > 0).all()
    assert bins.COARSE_EDGES[0] == 0
    assert bins.COARSE_EDGES[-1] == bins.FINE_BINS
    counts = np.random.default_rng(1).integers(0, 9, (3, bins.FINE_BINS))
    np.testing.assert_array_equal(bins.coarse(counts).sum(-1), counts.sum(-1))


@pytest.mark.parametrize("threshold", bins.THRESHOLDS)
def test_values_above_a_threshold_are_counted_from_its_bin_on(threshold: float) -> None:
    values = np.random.default_rng(2).uniform(-1, 1, 5000).astype(np.float32)
    assert bins.above(of_bins(values), threshold) == (values > threshold).sum()


VALUES = {
    "spread out": lambda rng, above, size: np.tanh(rng.normal(0.2 + above, 0.5, size)),
    "most near 0": lambda rng, above, size: rng.gamma(0.7 + above, 0.02, size).clip(max=1),
    "all near 1": lambda rng, above, size: 1 - 0.005 * rng.beta(2, 2 + 3 * above, size),
    "within a millionth of 1": lambda rng, above, size: 1 - 1e-6 * rng.beta(2, 2 + 3 * above, size),
    "all about 0.7": lambda rng, above, size: 0.7 + 0.01 * rng.normal(above, 1, size),
    "all within a thousandth": lambda rng, above, size: 0.7 + 0.001 * rng.normal(above, 1, size),
}


def errors(kind: str, above: float) -> tuple[float, float]:
    """How far an AUC of fine and of coarse bins is from that of the values."""
    rng = np.random.default_rng(3)
    related = VALUES[kind](rng, above, 20_000).astype(np.float32)
    others = VALUES[kind](rng, 0.0, 60_000).astype(np.float32)
    exact = reference.auc(related.tolist(), others.tolist())
    fine = of_bins(related), of_bins(others)
    found = [Auc(*pair).of_heads() for pair in (fine, tuple(map(bins.coarse, fine)))]
    return float(found[0] - exact), float(found[1] - exact)


@pytest.mark.parametrize("above", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", [kind for kind in VALUES if kind != "all within a thousandth"])
def test_the_auc_of_bins_is_that_of_the_values(kind: str, above: float) -> None:
    assert abs(errors(kind, above)[0]) < 0.005


@pytest.mark.parametrize("kind", ["spread out", "most near 0", "all near 1"])
def test_coarse_bins_tell_how_sure_an_auc_is(kind: str) -> None:
    """They are what texts are set apart by: an effect must be nearly as large in them, or intervals are too narrow."""
    rng = np.random.default_rng(4)
    fine = [of_bins(VALUES[kind](rng, above, 200_000)) for above in (0.1, 0.0)]
    whole, coarse = (Auc(*pair).of_heads() - 0.5 for pair in (fine, [*map(bins.coarse, fine)]))
    assert 0.9 < coarse / whole < 1.02
