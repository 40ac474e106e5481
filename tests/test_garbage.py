"""Starts are quick, and leave the garbage collector as it was."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest

from headscope.garbage import without_collecting


class Knot:
    """Garbage that only the collector can find."""

    def __init__(self) -> None:
        self.itself = self


def test_the_collector_is_at_rest_inside_and_as_it_was_outside() -> None:
    with without_collecting():
        assert not gc.isenabled()
        with without_collecting():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with without_collecting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_garbage_made_meanwhile_is_collected_later() -> None:
    frozen = gc.get_freeze_count()
    with without_collecting():
        knot = weakref.ref(Knot())
        assert knot() is not None
    assert gc.get_freeze_count() == frozen
    gc.collect()
    assert knot() is None


def test_what_somebody_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with without_collecting():
            pass
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()


@pytest.mark.slow
def test_the_runner_imports_neither_pandas_nor_a_sentence_splitter() -> None:
    code = "import sys, headscope.run.runner; print(sorted({'pandas', 'pyarrow', 'nupunkt'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
