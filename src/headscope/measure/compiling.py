"""Functions that numba compiles, and keeps compiled from run to run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.cpu import CPUTargetOptions
from numba.core.options import TargetOptions

_FOR_OTHERS: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
compiled = numba.njit(error_model="numpy", **_FOR_OTHERS)
"""For what other compiled functions call, for every row. To hand over arrays, and to count who holds a part of which,
takes longer than a row itself; so these become part of whoever calls them and count nothing, and can't make arrays."""


def _apart() -> dict[str, Any]:
    """numba knows that arrays lie apart, but has no option for it; a version that does not is not told."""
    with suppress(AttributeError):
        CPUTargetOptions.noalias = TargetOptions.Mapping("noalias")
        return {"noalias": True}
    return {}


compiled_apart = numba.njit(error_model="numpy", **_FOR_OTHERS, **_apart())
"""The same for functions none of whose arrays overlap: loops that fill several become vector instructions then."""


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
