"""Finished shards on disk, so that a study can be killed at any moment and go on where it stopped.

A checkpoint is one safetensors file, written aside, synced and renamed; its name carries its checksum, so a truncated
or altered one is found and its shard run again. `sum-K` holds shards 0 to K-1 added up in order: the disk never holds
more than a few single shards, and the order of adding is always the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from headscope.errors import HeadscopeError
from headscope.tally import add_into

FOLDER = "unfinished"
FOLD = 8
"""Single shards that wait before they are added to the sum."""

Arrays = dict[str, NDArray[Any]]


class Checkpoints:
    """The folder of an unfinished study. `fingerprints` says which windows each finished shard measured."""

    def __init__(self, study: Path) -> None:
        self._folder = study / FOLDER
        self.fingerprints: dict[int, str] = {}
        self.damaged: list[int] = []
        self._summed = 0
        self._waiting: dict[int, Path] = {}
        self._sum: Path | None = None

    def begin(self, identity: dict[str, Any]) -> bool:
        """Start anew, or go on if there is an unfinished study of the same identity. True if it goes on."""
        plan = self._folder / "plan.json"
        if plan.is_file():
            try:
                before = json.loads(plan.read_text("utf-8"))
            except ValueError:
                before = None
            if not isinstance(before, dict):
                raise HeadscopeError(f"{plan} is damaged; start anew with --overwrite.")
            differing = sorted(key for key in {*before, *identity} if before.get(key) != identity.get(key))
            if differing:
                raise HeadscopeError(
                    f"{self._folder.parent} holds an unfinished study that differs in {_told(differing, before, identity)}; "
                    "give the same, another --out, or --overwrite."
                )
            self._find()
            return True
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(plan, json.dumps(identity, indent=1).encode())
        return False

    def add(self, index: int, fingerprint: str, arrays: Arrays) -> None:
        """Keep one finished shard."""
        path = self._write("shard", index, [fingerprint], arrays)
        self._waiting[index] = path
        self.fingerprints[index] = fingerprint
        ready = [i for i in range(self._summed, self._summed + FOLD) if i in self._waiting]
        if len(ready) == FOLD:
            self._fold(FOLD)

    def total(self) -> Arrays:
        """All shards added up, in order."""
        count = len(self.fingerprints)
        whole = self._load_sum()
        for index in range(self._summed, count):
            whole = _added(whole, _load(self._waiting[index])[1])
        if whole is None:
            raise HeadscopeError(f"{self._folder} holds no finished shard.")
        return whole

    def remove(self) -> None:
        shutil.rmtree(self._folder)

    def _fold(self, count: int) -> None:
        whole = self._load_sum()
        for index in range(self._summed, self._summed + count):
            whole = _added(whole, _load(self._waiting[index])[1])
        assert whole is not None
        summed = self._summed + count
        path = self._write("sum", summed, [self.fingerprints[i] for i in range(summed)], whole)
        stale = [self._waiting.pop(i) for i in range(self._summed, summed)]
        if self._sum is not None:
            stale.append(self._sum)
        self._sum, self._summed = path, summed
        for old in stale:
            old.unlink()

    def _load_sum(self) -> Arrays | None:
        return _load(self._sum)[1] if self._sum is not None else None

    def _write(self, kind: str, number: int, fingerprints: list[str], arrays: Arrays) -> Path:
        content = save(arrays, {"fingerprints": json.dumps(fingerprints)})
        checksum = hashlib.sha256(content).hexdigest()
        path = self._folder / f"{kind}-{number:06d}-{checksum}.safetensors"
        write_atomically(path, content)
        return path

    def _find(self) -> None:
        """Take stock of what is on disk; what is damaged is removed and its shards are measured again."""
        found: dict[str, dict[int, Path]] = {"sum": {}, "shard": {}}
        for path in sorted(self._folder.iterdir()):
            match = re.fullmatch(r"(sum|shard)-(\d{6})-([0-9a-f]{64})\.safetensors", path.name)
            if match is None:
                if path.name.endswith(".part"):
                    path.unlink()
                continue
            if _checksum(path) != match[3]:
                path.unlink()
                self.damaged.append(int(match[2]))
                continue
            found[match[1]][int(match[2])] = path
        if found["sum"]:
            self._summed = max(found["sum"])
            self._sum = found["sum"].pop(self._summed)
            self.fingerprints.update(enumerate(_load(self._sum)[0]))
        for old in found["sum"].values():
            old.unlink()
        for index, path in found["shard"].items():
            if index < self._summed:
                path.unlink()
            else:
                self._waiting[index] = path
                self.fingerprints[index] = _load(path)[0][0]


def write_atomically(path: Path, content: bytes) -> None:
    """Either the whole file is there under its name, or it is not."""
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as problem:
        with suppress(OSError):
            part.unlink()
        raise HeadscopeError(
            f"{path} can't be written: {problem.strerror or problem}; what is finished is kept, "
            "and the same command goes on from there."
        ) from None


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _load(path: Path) -> tuple[list[str], Arrays]:
    """The fingerprints of the shards in a checkpoint, and its arrays."""
    content = path.read_bytes()
    try:
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return json.loads(header["__metadata__"]["fingerprints"]), load(content)
    except (SafetensorError, ValueError, KeyError) as problem:
        raise HeadscopeError(f"{path} is not a checkpoint of headscope ({problem}); remove it and go on.") from None


def _added(whole: Arrays | None, part: Arrays) -> Arrays:
    if whole is None:
        return {name: np.array(array) for name, array in part.items()}
    add_into(whole, part)
    return whole


def _told(differing: list[str], before: dict[str, Any], now: dict[str, Any]) -> str:
    return " and ".join(f"{key} ({before.get(key)!r} there, {now.get(key)!r} now)" for key in differing)


