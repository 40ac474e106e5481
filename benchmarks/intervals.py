"""Do intervals hold on real texts? Those of disjoint parts of a corpus, against all other texts.

    python benchmarks/intervals.py CORPUS --texts 1600 --keep FOLDER

The corpus is measured in blocks of 64 texts, so that a group of texts is one text; what is kept of them makes parts of
any size without another run. A part's interval for a number should hold the number of all other texts, which has an
error of its own, in 95 % of the parts.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import headscope
from headscope.files import Arrays
from headscope.measure.catalogue import GROUPED, STATES, columns
from headscope.measure.declaration import GROUPS, Unit
from headscope.measure.jackknife import Estimate, Jackknife, NotByGroup
from headscope.measure.student import quantile

PARTS = {10: 1, 20: 1, 40: 2, 64: 4, 160: 8}
"""Texts of a part, and into how many random orders the texts are put to cut them into such parts."""
DIFFERENCES = {
    "same_sentence_probability": "same_sentence_chance_by_distance",
    "repeat_probability": "repeat_chance_by_distance",
    "focal_share": "focal_chance",
}


def measured(corpus: str, model: str, texts: int, keep: Path) -> Arrays:
    """Every state that is kept by group, with texts in place of groups."""
    every = [text.text for text in headscope.read_texts(corpus)]
    order = np.random.default_rng(0).permutation(len(every))[:texts]
    network = headscope.load(model)
    blocks = []
    for start in range(0, len(order), GROUPS):
        path = keep / f"block-{start // GROUPS}.npz"
        if not path.exists():
            chosen = [every[number] for number in order[start : start + GROUPS]]
            with tempfile.TemporaryDirectory() as folder:
                study = headscope.study(network, chosen, out=folder, progress=False)
                np.savez(path, **{name: study.groups[name] for name in GROUPED})
        blocks.append(np.load(path))
    return {name: np.concatenate([block[name] for block in blocks], _axis(name)) for name in GROUPED}


def estimates(texts: Arrays, chosen: np.ndarray) -> dict[str, tuple[Unit, Estimate]]:
    """Of every column of `heads`, from these texts as a study of them would group them."""
    groups = {}
    for name, array in texts.items():
        of_texts = np.moveaxis(array.take(chosen, _axis(name)), _axis(name), 0)
        rounds = -(-len(chosen) // GROUPS)
        filled = np.zeros((rounds * GROUPS, *of_texts.shape[1:]), of_texts.dtype)
        filled[: len(chosen)] = of_texts
        groups[name] = np.moveaxis(filled.reshape(rounds, GROUPS, *of_texts.shape[1:]).sum(0), 0, _axis(name))
    jackknife = Jackknife(groups, {})
    found: dict[str, tuple[Unit, Estimate]] = {}
    for name, column in columns().items():
        if column.value is not None and column.heads and name != "pairs":
            try:
                found[name] = column.unit, jackknife.made("heads", column.resampled or column.value)
            except NotByGroup:
                continue
    for name, chance in DIFFERENCES.items():
        found[f"{name} less {chance}"] = "difference", found[name][1] - found[chance][1]
    return found


def holds(unit: Unit, part: Estimate, rest: Estimate) -> np.ndarray:
    """Of every head, whether the part's interval holds the number of the rest, given the error of both; NaN: none."""
    reach = np.array([quantile(freedom) for freedom in part.freedom.tolist()])
    inside = (part.value > 0) & (part.value < 1) & (rest.value > 0) & (rest.value < 1) & (unit == "share")
    (one, error), (other, error_of_other) = (_even(found, inside) for found in (part, rest))
    held = np.abs(one - other) <= reach * np.hypot(error, error_of_other) + 1e-12
    return np.where(np.isnan(part.error), np.nan, held)


def _even(found: Estimate, odds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A number and its error on the scale on which its interval is even, see `jackknife.within`."""
    inside = np.where(odds, found.value, 0.5)
    by_odds = np.log(inside / (1 - inside)), found.error / (inside * (1 - inside))
    return np.where(odds, by_odds[0], found.value), np.where(odds, by_odds[1], found.error)


def _axis(name: str) -> int:
    return STATES[name].shape.index("G")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--texts", type=int, default=1600)
    parser.add_argument("--keep", type=Path, required=True, help="folder for what was measured")
    asked = parser.parse_args()
    asked.keep.mkdir(exist_ok=True)
    texts = measured(asked.corpus, asked.model, asked.texts, asked.keep)
    windows = texts["windows"][0, 0]
    long_enough = np.flatnonzero(windows)
    print(f"{len(long_enough):,} texts that have windows, {windows.sum():,} windows")
    table: dict[str, list[float]] = {}
    for size, orders in PARTS.items():
        held: dict[str, list[np.ndarray]] = {}
        sizes = []
        for seed in range(orders):
            order = np.random.default_rng(seed).permutation(long_enough)
            for start in range(0, len(order) - size + 1, size):
                part = order[start : start + size]
                sizes.append(windows[part].sum())
                rest = estimates(texts, np.setdiff1d(long_enough, part))
                for name, (unit, found) in estimates(texts, part).items():
                    held.setdefault(name, []).append(holds(unit, found, rest[name][1]))
        print(f"{size} texts: {len(sizes)} parts of {min(sizes)} to {max(sizes)} windows")
        for name, shares in held.items():
            table.setdefault(name, []).append(float(np.nanmean(shares)))
    for name, shares in {**table, "mean": np.mean(list(table.values()), 0).tolist()}.items():
        print(f"| `{name}` | " + " | ".join(f"{share * 100:.0f}" for share in shares) + " |")


if __name__ == "__main__":
    main()
