"""What finders read of the tables of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.folder.study_folder import StudyFolder

Numbers = NDArray[np.float64]


def layer_column(study: StudyFolder, *columns: str) -> Numbers:
    """A column of the layers' table, or the sum of several."""
    total: Numbers = np.sum([study.column("layers", column) for column in columns], 0)
    return total


def top_place(values: Numbers) -> int | None:
    """Where the largest number stands; None where there is none."""
    return None if np.isnan(values).all() else int(np.nanargmax(values))


def around_peak(shares: Numbers) -> NDArray[np.int64]:
    """The unbroken range about the largest share in which all are at least three quarters of it.

    >>> around_peak(np.array([0.1, 0.4, 0.5, 0.45, 0.2]))
    array([1, 2, 3])
    """
    peak = int(np.nanargmax(shares))
    low = np.flatnonzero(~(shares >= 0.75 * shares[peak]))
    return np.arange(max(low[low < peak], default=-1) + 1, min(low[low > peak], default=len(shares)))


def layers_at(study: StudyFolder, *places: int | np.integer[Any]) -> tuple[int, ...]:
    """The numbers of layers, by their places in the table; each once, in their order."""
    return tuple(study.manifest.layers[place] for place in sorted({int(place) for place in places}))


def standing_for(study: StudyFolder, places: Sequence[int] | NDArray[np.int64], shares: Numbers) -> tuple[int, ...]:
    """Of the places of layers those that a picture must draw to show them: of a range, which a sentence tells by its
    ends, the first, the one with the largest share and the last; else all."""
    numbers = [study.manifest.layers[place] for place in places]
    if numbers != list(range(numbers[0], numbers[-1] + 1)):
        return tuple(int(place) for place in places)
    strongest = max(places, key=lambda place: shares[place])
    return int(places[0]), int(strongest), int(places[-1])


def last_layer(study: StudyFolder) -> str:
    """The last layer measured, which need not be the model's."""
    number = study.manifest.layers[-1]
    return "the last layer" if number == study.manifest.model.layers - 1 else f"layer {number}"
