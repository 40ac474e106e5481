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
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from headscope.errors import HeadscopeError

Arrays = dict[str, NDArray[Any]]
Piece = bytes | memoryview
Pieces = Iterable[Piece]

DTYPES = {
    "F64": "float64",
    "I64": "int64",
    "F32": "float32",
    "I32": "int32",
    "I16": "int16",
    "U16": "uint16",
    "U8": "uint8",
}
"""The types of arrays in a study, its shards and its example, by their names in a safetensors file."""
_CODES = {name: code for code, name in DTYPES.items()}


_LARGE = 2**20
_PRIVATE: dict[str, int] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}
"""Pages of memory that no other process is to see: the system hands them out faster than those of the default."""
SYNCED_AT_ONCE = 2**25
"""Bytes that a file may be ahead of the disk. What the system then lets go of, the next bytes are written into: many
times cheaper than memory never used before."""


def zeros(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Zeros. Large ones lie in pages of their own, which cost nothing until they are written to and go back to the
    system when they are freed; the usual allocator keeps what it once had."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _LARGE:
        return np.zeros(shape, dtype)
    return np.frombuffer(mmap.mmap(-1, size, **_PRIVATE), dtype).reshape(shape)


def give_back() -> None:
    """Hand free memory that the usual allocator keeps back to the system, where it can be asked to (glibc)."""
    if system := _glibc():
        system.malloc_trim(0)


def hold_on() -> None:
    """From now on, have the usual allocator keep what is freed until `give_back` (glibc). By itself it returns what a
    layer freed and asks for it again in the next: where a model is narrow, the system's work to hand out fresh pages
    was a tenth of a pass."""
    if system := _glibc():
        system.mallopt(_M_MMAP_THRESHOLD, _KEPT_BELOW)
        system.mallopt(_M_TRIM_THRESHOLD, _KEPT_FREE)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BELOW = 2**25
"""Bytes of a block above which it has pages of its own: the most that glibc takes."""
_KEPT_FREE = 2**27
"""Free bytes in a row above which some go back."""


def _glibc() -> ctypes.CDLL | None:
    system = ctypes.CDLL(None) if sys.platform == "linux" else None
    return system if system is not None and hasattr(system, "malloc_trim") else None


def check_name(path: str | os.PathLike[str], what: str) -> None:
    """Parquet, safetensors and tokenizers open only what has a name in UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise HeadscopeError(f"{what} {path} has a name that is not UTF-8; give it another.") from None


def safetensors_pieces(
    arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None
) -> Iterator[Piece]:
    """A safetensors file of arrays: its head, then the arrays by name. They are not copied, and an array may be taken
    away once the piece after its own is asked for."""
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
    """The same, with the checksum of the content put into the name: a.b becomes a-CHECKSUM.b."""
    digest = hashlib.sha256()

    def hashed() -> Iterator[Piece]:
        for piece in content:
            digest.update(piece)
            yield piece

    return _write(path, hashed(), lambda: path.with_stem(f"{path.stem}-{digest.hexdigest()}"))


def _write(path: Path, content: bytes | Pieces, name: Callable[[], Path]) -> Path:
    """`path` is for messages and for the file aside; `name` is asked when all is written."""
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            unsynced = 0
            for piece in _pieces(content):
                for begin in range(0, len(piece), SYNCED_AT_ONCE):
                    unsynced += file.write(piece[begin : begin + SYNCED_AT_ONCE])
                    if unsynced >= SYNCED_AT_ONCE:
                        _sync(file)
                        unsynced = 0
            _sync(file)
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


def _sync(file: BinaryIO) -> None:
    """Put on disk what was written, and tell the system that it need not keep it in memory, where it can be told."""
    file.flush()
    os.fsync(file.fileno())
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


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
