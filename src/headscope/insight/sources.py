"""Where the texts of a study are from, as it is said: each file that was really used, with its texts and windows."""

from __future__ import annotations

from headscope.folder.manifest import SourceFacts
from headscope.wording import counted

SHOWN = 5
"""Files that a terminal lists."""


def sources_used(source: SourceFacts, most: int | None = SHOWN) -> list[str]:
    """A line for each file, at most so many, then what is not listed. Empty where an older version did not say.

    >>> from headscope.folder.manifest import FileFacts
    >>> sources_used(SourceFacts("a b", files=[FileFacts("a.txt", 1, 31)], files_not_reached=1))
    ['a.txt: 1 text, 31 windows', 'not reached: 1 file']
    """
    files = source.files or []
    shown = files[:most]
    lines = [f"{file.name}: {counted(file.texts, 'text')}, {counted(file.windows, 'window')}" for file in shown]
    more = len(files) - len(shown) + source.more_files
    if more:
        lines.append(f"and {counted(more, 'file')} more")
    if source.files_not_reached:
        lines.append(f"not reached: {counted(source.files_not_reached, 'file')}")
    return lines
