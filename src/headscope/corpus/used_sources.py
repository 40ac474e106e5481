"""Which sources texts were really read from, with how many texts and windows of each."""

from __future__ import annotations

from dataclasses import dataclass

MOST_LISTED = 50
"""Sources: a folder may hold millions of files."""


@dataclass
class UsedSource:
    """One place that texts were read from: a file, standard input, a data set, or Python."""

    name: str
    texts: int = 0
    windows: int = 0


class UsedSources:
    """The first MOST_LISTED, in the order in which they were read, and how many more there were."""

    def __init__(self) -> None:
        self.listed: list[UsedSource] = []
        self.more = 0
        self._newest: int | None = None

    def add_text(self, number: int, name: str) -> None:
        """A text was read from the source of this number; it is the newest."""
        if number != self._newest:
            self._newest = number
            if len(self.listed) < MOST_LISTED:
                self.listed.append(UsedSource(name))
            else:
                self.more += 1
        if not self.more:
            self.listed[-1].texts += 1

    def add_window(self) -> None:
        """Of the newest text."""
        if not self.more:
            self.listed[-1].windows += 1
