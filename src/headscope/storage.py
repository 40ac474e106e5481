"""Large arrays, in memory that is given back, and files that are either whole or not there."""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import mmap
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.errors import HeadscopeError

Arrays = dict[str, NDArray[Any]]
Piece = bytes | memoryview
Pieces = Iterable[Piece]

KINDS = {"F64": "float64", "I64": "int64"}
"""The types of arrays in a study, by their names in a safetensors file."""
_CODES = {name: code for code, name in KINDS.items()}


_LARGE = 2**20


def zeros(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Zeros. Large ones lie in pages of their own, which cost nothing until they are written to and go back to the
    system when they are freed; the usual allocator keeps what it once had."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _LARGE:
        return np.zeros(shape, dtype)
    return np.frombuffer(mmap.mmap(-1, size), dtype).reshape(shape)


def give_back() -> None:
    """Hand free memory that the usual allocator keeps back to the system, where it can be asked to (glibc)."""
    if sys.platform == "linux" and hasattr(system := ctypes.CDLL(None), "malloc_trim"):
        system.malloc_trim(0)


def safetensors_pieces(
    arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None
) -> Iterator[Piece]:
    """A safetensors file of float64 and int64 arrays: its head, then the arrays by name. They are not copied, and an
    array may be taken away once the piece after its own is asked for."""
    names = sorted(arrays)
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for name in names:
        end = offset + arrays[name].nbytes
        code = _CODES[arrays[name].dtype.name]
        header[name] = {"dtype": code, "shape": arrays[name].shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for name in names:
        yield np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data


def checksum(content: bytes | Pieces) -> str:
    digest = hashlib.sha256()
    for piece in _pieces(content):
        digest.update(piece)
    return digest.hexdigest()


def file_checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path: Path, content: bytes | Pieces) -> None:
    """Either the whole file is there under its name, or it is not: written aside, synced, renamed."""
    _write(path, content, lambda: path)


def write_under_checksum(path: Path, content: Pieces) -> Path:
    """The same, with the checksum of the content put into the name: a.b becomes a-CHECKSUM.b.

    The system is not asked to keep the file in memory. It will hardly be read again; and what the system lets go of,
    the next file is written into, which is cheaper than into memory never used before.
    """
    digest = hashlib.sha256()

    def hashed() -> Iterator[Piece]:
        for piece in content:
            digest.update(piece)
            yield piece

    return _write(path, hashed(), lambda: path.with_stem(f"{path.stem}-{digest.hexdigest()}"), cached=False)


def _write(path: Path, content: bytes | Pieces, name: Callable[[], Path], cached: bool = True) -> Path:
    """`path` is for messages and for the file aside; `name` is asked when all is written."""
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            for piece in _pieces(content):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
            if not cached and hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.replace(part, name())
        _sync_folder(path.parent)
    except OSError as problem:
        with suppress(OSError):
            part.unlink()
        raise HeadscopeError(
            f"{path} can't be written: {problem.strerror or problem}; what is finished is kept, "
            "and the same command goes on from there."
        ) from None
    return name()


def _pieces(content: bytes | Pieces) -> Pieces:
    return (content,) if isinstance(content, bytes) else content


def _sync_folder(folder: Path) -> None:
    """A rename outlives a power cut only once its folder is synced; not every system can open a folder."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
