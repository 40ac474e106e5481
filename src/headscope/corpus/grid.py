"""The grid that the patches of an image stand on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Grid:
    """rows x columns of patches, after `before` tokens that are no patches: [CLS], registers.

    >>> Grid(2, 2, before=1).distance[1].round(2).tolist()
    [nan, 0.0, 1.0, 1.0, 1.41]
    """

    rows: int
    columns: int
    before: int

    @property
    def tokens(self) -> int:
        return self.before + self.rows * self.columns

    @cached_property
    def distance(self) -> NDArray[np.float64]:
        """(S, S): how far apart two patches are, in patches; NaN where one token is no patch."""
        place = np.stack(np.divmod(np.arange(self.rows * self.columns), self.columns), -1)
        apart = np.full((self.tokens, self.tokens), np.nan)
        apart[self.before :, self.before :] = np.linalg.norm(place[:, None] - place[None], axis=-1)
        return apart

    @property
    def mean_distance(self) -> float:
        """Of all pairs of patches; NaN where there is but one patch."""
        apart = self.distance[np.triu_indices(self.tokens, 1)]
        apart = apart[np.isfinite(apart)]
        return float(apart.mean()) if len(apart) else float("nan")
