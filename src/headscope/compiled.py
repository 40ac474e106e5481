"""The compiled part, `linear.c` and `attention.c` of the model and `kernel.c` of the measures: which of its builds is
loaded.

It is built when headscope is installed (`setup.py`), on x86-64 for several generations of processors. It is called by
ctypes, which lets other threads run meanwhile.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.util import find_spec

import torch

BUILDS = {"AVX512": ("_compiled_avx512", "_compiled_avx2", "_compiled"), "AVX2": ("_compiled_avx2", "_compiled")}
"""What torch says of the processor -> the builds for it, the best first; for any other `_compiled` alone."""


@cache
def library() -> ctypes.CDLL:
    """Raises ImportError with the reason where it can't be had."""
    for build in BUILDS.get(torch.backends.cpu.get_cpu_capability(), ("_compiled",)):
        found = find_spec(f"headscope.{build}")
        if found is not None and found.origin is not None:
            try:
                return ctypes.CDLL(found.origin)
            except OSError as problem:
                raise ImportError(f"its compiled part can't be loaded: {problem}") from problem
    raise ImportError("it was installed without its compiled part, which takes a C compiler, gcc or clang")
