"""Corpora made up of numbers, as a study would keep them, whose truth is known: is it within the interval?

Each simulated corpus stands where a head stands in a study, so that one call of the real code judges all of
them.
"""

from __future__ import annotations

import numpy as np

from headscope.measure.declaration import GROUPS, RELATIONS, SETS, Unit
from headscope.measure.jackknife import Estimate, Jackknife, within

BINS = np.linspace(-2.2, 2.7, 15)
"""Edges of the bins of N in simulated spectra."""


def lengths(kind: str, corpora: int, texts: int, rng: np.random.Generator) -> np.ndarray:
    """(corpora, texts): windows of each text. alike: 5. unequal: as in an encyclopedia, half of the texts up to 4, one
    in twenty over 24, some over 100. wild: nine in ten have one window, all others 200."""
    size = corpora, texts
    if kind == "alike":
        return np.full(size, 5)
    if kind == "wild":
        return np.where(rng.random(size) < 0.9, 1, 200)
    return np.exp(rng.normal(np.log(4), 1.1, size)).round().clip(1, 240).astype(np.int64)


class Corpora:
    """Simulated corpora. alike: how much of a window's variance it has in common with all windows of its text."""

    def __init__(self, kind: str, corpora: int, texts: int, seed: int, alike: float = 0.4) -> None:
        self.rng = np.random.default_rng(seed)
        self.windows = lengths(kind, corpora, texts, self.rng)
        self.alike = alike

    def normal(self) -> np.ndarray:
        return self.rng.normal(size=self.windows.shape)

    def text_mean(self) -> np.ndarray:
        """(corpora, texts): the mean over the windows of a text of something with mean 0 and variance 1."""
        return np.sqrt(self.alike) * self.normal() + np.sqrt((1 - self.alike) / self.windows) * self.normal()

    def estimate(self, column: str, states: dict[str, np.ndarray]) -> Estimate:
        """Of a column of `heads`. states: (corpora, texts, ...), summed over the windows of each text."""
        states = {"windows": self.windows, **states}
        groups = {name: self._by_group(array)[None] for name, array in states.items()}
        return Jackknife(groups, {name: array.sum(2) for name, array in groups.items()}).estimate("heads", column)

    def _by_group(self, array: np.ndarray) -> np.ndarray:
        grouped = np.zeros((GROUPS, *np.delete(array.shape, 1)), dtype=array.dtype)
        np.add.at(grouped, np.arange(array.shape[1]) % GROUPS, array.swapaxes(0, 1))
        return grouped.swapaxes(0, 1)


def share(made: Corpora) -> tuple[Estimate, float]:
    """A mean over windows, as all probabilities are."""
    shares = made.windows * (0.3 + 0.1 * made.text_mean())
    found = made.estimate("same_sentence_probability", _shares(made, shares))
    return found, 0.3


def rare(made: Corpora) -> tuple[Estimate, float]:
    """A share that is next to nothing in most texts and large in a few."""
    shares = made.windows * made.rng.beta(0.2, 3, made.windows.shape)
    return made.estimate("same_sentence_probability", _shares(made, shares)), 0.2 / 3.2


def difference(made: Corpora) -> tuple[Estimate, float]:
    """A probability less its chance given distance: the two go together."""
    common = made.rng.beta(4, 8, made.windows.shape)
    states = _shares(made, made.windows * (common + 0.1 * made.text_mean()))
    states["same_sentence_chance_by_distance_sum"] = made.windows * (0.9 * common + 0.03 * made.text_mean())
    probability = made.estimate("same_sentence_probability", states)
    return probability - made.estimate("same_sentence_chance_by_distance", states), 0.1 / 3


def pooled(made: Corpora) -> tuple[Estimate, float]:
    """A mean over high pairs, of which some texts have more than others: there they lie farther apart."""
    spread = 0.5
    more = made.normal() * spread
    pairs = made.windows * 50 * np.exp(more)
    distance = pairs * (10 + 2 * more + 4 * made.text_mean())
    found = made.estimate("mean_distance", {"pairs": pairs, "distance_sum": distance})
    return found, 10 + 2 * spread**2


def signal_to_noise(made: Corpora) -> tuple[Estimate, float]:
    """A quotient with a root in it; texts differ in noise."""
    spread = 0.7
    noise = np.exp(made.normal() * spread)
    pairs = made.windows * 200 * np.exp(0.3 * made.normal())
    states = {
        "signal_together_sum": pairs * np.sqrt(noise) * (0.2 + 0.1 * made.text_mean()),
        "signal_together_pairs": pairs,
        "noise_square_sum": noise * made.windows * 1000,
        "noise_pairs": made.windows * 1000,
    }
    return made.estimate("signal_to_noise_sentence", states), 0.2 * np.exp(spread**2 / 8 - spread**2 / 4)


def auc(made: Corpora) -> tuple[Estimate, float]:
    """From spectra. Texts differ in where their N lies, and in how far pairs of one sentence lie above."""
    level, above = 0.5 * made.normal(), 0.5 + 0.4 * made.normal()
    others = made.windows[..., None] * 80.0 * _spectrum(level, 1)
    related = made.windows[..., None] * 20.0 * _spectrum(level + above, 1)
    sets = {"all": others + related, "equal": 0 * others, "together": related}
    relations = {"neither": others, "equal": 0 * others, "together": related, "both": 0 * others}
    states = {
        "spectrum_of_groups": np.stack([sets[name] for name in SETS], 2),
        "spectrum": np.stack([relations[name] for name in RELATIONS], 2),
    }
    # What all texts there are would give: the spread of the texts adds to that within a text.
    all_others = _spectrum(np.array(0.0), np.sqrt(1 + 0.25))
    all_related = _spectrum(np.array(0.5), np.sqrt(1 + 0.25 + 0.16))
    truth = float(all_related @ (all_others.cumsum() - all_others / 2))
    return made.estimate("same_sentence_auc", states), truth


def _shares(made: Corpora, shares: np.ndarray) -> dict[str, np.ndarray]:
    return {"same_sentence_share_sum": shares, "same_sentence_windows": made.windows}


def _spectrum(mean: np.ndarray, deviation: float) -> np.ndarray:
    """(...) -> (..., bins): shares of a normal distribution."""
    fine = np.linspace(-8, 8, 4001)
    below = np.cumsum(np.exp(-(fine**2) / 2)) * (fine[1] - fine[0]) / np.sqrt(2 * np.pi)
    at_edges = np.interp((BINS - mean[..., None]) / deviation, fine + (fine[1] - fine[0]) / 2, below)
    ends = np.zeros((*mean.shape, 1))
    return np.diff(np.concatenate([ends, at_edges, ends + 1], -1), axis=-1)


NUMBERS = {
    "share": share,
    "difference": difference,
    "pooled": pooled,
    "signal to noise": signal_to_noise,
    "AUC": auc,
    "rare": rare,
}
UNITS: dict[str, Unit] = {"difference": "difference", "pooled": "tokens", "signal to noise": "difference"}
"""Of each, but for shares."""


def coverage(number: str, kind: str, texts: int, corpora: int, seed: int = 0, alike: float = 0.4) -> float:
    """How often the 95 % interval holds the truth, over simulated corpora of so many texts."""
    found, truth = NUMBERS[number](Corpora(kind, corpora, texts, seed, alike))
    low, high = within(UNITS.get(number, "share"), found)
    return float(np.mean((low <= truth) & (truth <= high)))
