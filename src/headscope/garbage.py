"""What makes a start quick."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """Around imports and the making of models: they make millions of objects, none of which becomes garbage, and to
    look for garbage among them over and over is a sixth of the time. They end among the oldest objects, as if it had
    been done."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
