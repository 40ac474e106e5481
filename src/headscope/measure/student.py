"""Student's t distribution for whole degrees of freedom, by its closed form."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray


def two_sided(t: NDArray[np.float64], freedom: int) -> NDArray[np.float64]:
    """The chance that |T| exceeds |t|, for `freedom` degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4).

    >>> two_sided(np.array([0.0, 2.2622]), 9).round(4)
    array([1.  , 0.05])
    """
    angle = np.arctan(np.abs(t) / math.sqrt(freedom))
    sine, cosine = np.sin(angle), np.cos(angle)
    odd = freedom % 2
    term = cosine if odd else np.ones_like(sine)
    total = np.zeros_like(sine)
    for k in range(odd, freedom - 1, 2):
        total = total + term
        term = term * cosine**2 * (k + 1) / (k + 2)
    inside = (angle + sine * total) * 2 / math.pi if odd else sine * total
    outside: NDArray[np.float64] = np.clip(1 - inside, 0, 1)
    return outside


@cache
def quantile(freedom: int, inside: float = 0.95) -> float:
    """The t that |T| stays below with this chance.

    >>> round(quantile(7), 3), round(quantile(63), 3)
    (2.365, 1.998)
    """
    low, high = 0.0, 1000.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if two_sided(np.array([middle]), freedom)[0] > 1 - inside:
            low = middle
        else:
            high = middle
    return high
