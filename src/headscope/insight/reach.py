"""How far windows reach: where they are padded, not every position is in all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.folder.study_folder import StudyFolder
from headscope.insight.chance import layer_attention
from headscope.measure.declaration import SETS


def windows_at(study: StudyFolder) -> NDArray[Any]:
    """(S, S): the windows that have both positions, by which sums over windows become means; 1 where there is none."""
    arrays, length = study.arrays, study.manifest.options.length
    windows = int(arrays["windows"][0, 0])
    if arrays["tokens"][0, 0] == windows * length:
        return np.full((length, length), max(windows, 1))
    if "pairs_by_distance" in arrays and study.manifest.options.special == "keep":
        pairs = arrays["pairs_by_distance"][SETS.index("all")]
        longer = pairs - np.append(
            pairs[1:], 0
        )  # by so many tokens: each has one pair more at a distance than at the next
        longer[0] = windows
    else:
        rows = layer_attention(study)[0].sum(-1)
        longer = np.rint(rows / rows[0] * windows).astype(np.int64)
    places = np.arange(length)
    both: NDArray[Any] = np.maximum(longer[np.maximum.outer(places, places)], 1)
    return both
