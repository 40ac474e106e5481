"""What C declares, so that tests can hold ctypes to it."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

KINDS = {"int64_t": ctypes.c_int64, "double": ctypes.c_double}


def fields_of(source: Path, structure: str) -> list[tuple[str, type]]:
    """The fields of a structure: names and types."""
    [body] = re.findall(rf"typedef struct \{{([^}}]*)\}} {structure};", source.read_text("utf-8"))
    found: list[tuple[str, type]] = []
    for line in re.sub(r"/\*.*?\*/", "", body, flags=re.S).split(";"):
        if match := re.fullmatch(r"\s*(?:const )?(\w+) (.*)", line, flags=re.S):
            for name in match[2].split(","):
                kind = ctypes.c_void_p if "*" in name else KINDS[match[1]]
                found.append((name.strip(" *\n"), kind))
    return found
