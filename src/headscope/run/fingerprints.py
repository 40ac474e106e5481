"""What tells one set of windows from another: hashes that add up over the parts of a study."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping


def windows_hash(fingerprints: Mapping[int, str]) -> str:
    """One number for all shards, by their place in the whole; those of several parts add up (see `add_hashes`)."""
    return add_hashes(hashlib.sha256(f"{index} {value}".encode()).hexdigest() for index, value in fingerprints.items())


def add_hashes(hashes: Iterable[str]) -> str:
    return f"{sum(int(value, 16) for value in hashes) % 2**256:064x}"
