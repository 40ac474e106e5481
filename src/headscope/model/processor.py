"""What a processor says that it can do, and can't."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

LIMIT = "ONEDNN_MAX_CPU_ISA"
_TRY = "import torch; torch.nn.Linear(32, 32).bfloat16()(torch.ones(8, 32, dtype=torch.bfloat16))"


@cache
def keep_off_tiles() -> None:
    """Some virtual machines say that they have tiles (AMX) and end whatever process uses them, as products of bfloat16
    do. Where a process of its own is ended so, torch's library for them is told to do without, before it is used."""
    if LIMIT not in os.environ and _says_tiles() and _is_ended():
        os.environ[LIMIT] = "AVX512_CORE_BF16"


def _says_tiles() -> bool:
    try:
        return "amx_bf16" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


def _is_ended() -> bool:
    return subprocess.run([sys.executable, "-c", _TRY], capture_output=True).returncode < 0
