"""Functions that numba compiles, and keeps compiled from run to run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numba
from numba.core.caching import FunctionCache

compiled = numba.njit(error_model="numpy")
inlined = numba.njit(error_model="numpy", inline="always")
"""Where a structure of many arrays goes in for every window: handing it over takes longer than counting a row."""


def compiled_for_good(function: Callable[..., Any], signature: Any) -> Any:
    """Compiled for these types, and kept on disk for the next run. Where nothing can be kept, it is compiled for this
    run alone; where what was kept is damaged too, and the next run keeps it anew."""
    compiling = partial(numba.njit, signature, nogil=True, error_model="numpy")
    try:
        return compiling(cache=True)(function)
    except Exception:  # of whatever kind damaged bytes cause; what is wrong with the function itself is raised below
        with suppress(RuntimeError, OSError):
            FunctionCache(function).flush()
        return compiling()(function)
