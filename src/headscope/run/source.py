"""Where the windows of a run come from: texts, images, or anything else that can be cut into windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from headscope.corpus.windows import Window


class WindowSource(Protocol):
    """Windows in an order that depends on the source alone.

    unit: what a window is called in a count, "windows" or "images". windows_per_shard: the most that lie in memory
    together; part of what fixes the result to the last bit. made: windows there were so far, wanted or not.
    """

    @property
    def unit(self) -> str: ...

    @property
    def made(self) -> int: ...

    @property
    def windows_per_shard(self) -> int: ...

    def windows(self, wanted: Callable[[int], bool] | None) -> Iterator[Window]:
        """All windows; those whose number is not `wanted` are counted but not made."""

    @property
    def expected(self) -> int | None:
        """How many there will be, as far as can be told while they are made."""

    def changed(self) -> list[str]:
        """The files that changed since they were read."""

    def why_none(self) -> str:
        """One sentence for the user, where no window was found."""
