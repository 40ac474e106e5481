"""`headscope.merge`: the parts of a study, or several studies, added up."""

from __future__ import annotations

import os
from collections.abc import Iterable

from headscope.arguments import naming_typos
from headscope.folder.merging import merge_folders
from headscope.show.objects import Study


@naming_typos()
def merge(folders: Iterable[str | os.PathLike[str]], *, out: str | os.PathLike[str], overwrite: bool = False) -> Study:
    """Add up the parts of one study (`shard="3/16"`), or studies of different texts, and write a study folder.

    All parts of a study must be there, each once; merged, they are the whole, to the last bit.
    Studies of different texts are added in the order given.

    >>> import headscope
    >>> headscope.merge(["part-1", "part-2"], out="whole")  # doctest: +SKIP
    """
    return Study(merge_folders(folders, out=out, overwrite=overwrite))
