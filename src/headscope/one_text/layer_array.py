"""Arrays of several layers, indexed by the layers' own numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.errors import HeadscopeError
from headscope.wording import ranges

Array = NDArray[Any]
MOST_KEPT = 2**25


class LayerArray:
    """An array (L, H, ...) that is indexed by the number of a layer, not by its place among those measured.

    `array[11, 8]` is head 8 of layer 11, `array[11]` all heads of layer 11, `array[-1]` the last layer
    measured; `np.asarray(array)` is the whole. With `function`, what is asked for goes through it first; heads are
    remembered up to MOST_KEPT bytes, since several questions about one head come in a row.
    """

    def __init__(self, layers: list[int], stored: Array, function: Callable[[Array], Array] | None = None) -> None:
        self.layers = layers
        self._stored = stored
        self._function = function
        self._kept: dict[tuple[int, int], Array] = {}

    def __getitem__(self, key: int | tuple[Any, ...]) -> Array:
        layer, *rest = key if isinstance(key, tuple) else (key,)
        place = self.place(layer)
        if not rest:
            return self._through(self._stored[place])
        head, *within = rest
        heads = self._stored.shape[1]
        if not isinstance(head, (int, np.integer)):
            several: Array = self._through(self._stored[place, head])[:, *within]
            return several
        if not -heads <= head < heads:
            raise HeadscopeError(f"There is no head {head}: a layer has {heads}, 0 to {heads - 1}.")
        value: Array = self._of_head(place, int(head) % heads)[tuple(within)]
        return value

    def place(self, layer: int) -> int:
        """Where a layer stands among those measured."""
        if isinstance(layer, (int, np.integer)) and -len(self.layers) <= layer < 0:
            return len(self.layers) + int(layer)
        if layer not in self.layers:
            raise HeadscopeError(f"Layer {layer} was not measured; there are layers {ranges(self.layers)}.")
        return self.layers.index(layer)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        whole = self._through(self._stored)
        return np.array(whole, dtype=dtype) if copy else np.asarray(whole, dtype=dtype)

    def _of_head(self, place: int, head: int) -> Array:
        if self._function is None:
            return self._stored[place, head]  # type: ignore[no-any-return]
        if (place, head) not in self._kept:
            made = self._function(self._stored[place, head])
            if (len(self._kept) + 1) * made.nbytes > MOST_KEPT:
                self._kept.clear()
            self._kept[place, head] = made
        return self._kept[place, head].copy()

    def _through(self, chosen: Array) -> Array:
        return self._function(chosen) if self._function else chosen

    def __len__(self) -> int:
        return len(self.layers)

    def __repr__(self) -> str:
        return f"LayerArray(layers {ranges(self.layers)}, {self._stored.shape[1]} heads)"
