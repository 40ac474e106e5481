"""Finished shards on disk, so that a study can be killed at any moment and go on where it stopped.

A checkpoint is one safetensors file whose name carries its checksum, so a truncated or altered one is found and its
shard run again. `shard-I` holds one shard; `sum-K` holds shards 0 to K-1 added up in order. The newest two sums are
kept and every single shard since the older one: the disk never holds more than a few, and the loss of any one file
costs at most what was measured from one to the next. Where numbers of every window are kept, `rows-I` holds those of
one shard until the end; the loss of one costs the sums that hold its shard.

To write one takes a second of a core where windows are long, and as long as that the next shard has to wait. So shards
that come quickly are added up in memory until it has been `SECONDS` since all was on disk: that much a kill may cost,
beside the shards that are being measured. Whoever ends a study in another way, with an error or Ctrl-C, has it written.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open

from headscope.errors import HeadscopeError
from headscope.files import (
    DTYPES,
    Arrays,
    Piece,
    checksum,
    file_checksum,
    safetensors_pieces,
    write_atomically,
    write_under_checksum,
)
from headscope.measure.declaration import Specs
from headscope.run.sums import ExactSum, wide
from headscope.speaking import ELSEWHERE, option

FOLDER = "unfinished"
PLAN = "plan.json"
LOCK = ".lock"
FOLD = 4
"""Single shards on disk that a sum is made of."""
SECONDS = 30.0
"""Of measuring, that may be in memory alone."""

_NAME = re.compile(r"(sum|shard|rows)-(\d{6})-([0-9a-f]{64})\.safetensors")
_PART = re.compile(r"(sum|shard|rows)-\d{6}\.safetensors\.part")
_REST = "rest of "
"""Before the name of a float array: what rounding cut off its sum."""


@dataclass(frozen=True)
class _Found:
    """What a checkpoint says of itself."""

    path: Path
    fingerprints: list[str]
    batch_size: int


class Checkpoints:
    """The finished shards of an unfinished study; `specs` are those of one shard's arrays, `rows` of those among them
    that are not added up (see `Consumer.rows`).

    `fingerprints` says which windows each finished shard measured, `batch_size` is the smallest that any of them was
    measured with, `told` are sentences about what was damaged or missing when the study went on.
    """

    def __init__(self, study: Path, specs: Specs, rows: Specs | None = None) -> None:
        self._folder = study / FOLDER
        self._specs = specs
        self._row_specs = rows or {}
        self._rows: dict[int, Path] = {}
        self._identity = ""
        self.fingerprints: dict[int, str] = {}
        self.batch_size: int | None = None
        self.told: list[str] = []
        self._singles: dict[int, Path] = {}
        self._sums: dict[int, Path] = {}
        self._sum = ExactSum()
        self._summed = 0
        self._unwritten = False
        self._all_written_at = time.monotonic()
        self._writer: ThreadPoolExecutor | None = None
        self._writing: Future[None] | None = None

    def begin(self, identity: Mapping[str, Any]) -> None:
        """Start anew, or go on if there is an unfinished study of the same identity."""
        self._identity = checksum(json.dumps(identity, sort_keys=True).encode())
        plan = self._folder / PLAN
        if _holds_shards(self._folder):
            before = _read_plan(plan)
            differing = before is not None and _differences(before, identity)
            if differing:
                raise HeadscopeError(
                    f"{self._folder.parent} holds an unfinished study that differs in {differing}; "
                    f"give the same, or {ELSEWHERE}."
                )
            if before is None:
                self.told.append(f"{plan} was damaged or missing; it is written anew.")
            self._find()
        write_atomically(plan, json.dumps(identity, indent=1).encode())

    def add(self, index: int, fingerprint: str, arrays: Arrays, batch_size: int, last: bool = False) -> None:
        """Keep one finished shard; its arrays are handed over. This waits until they are let go, because the next shard
        takes as much memory again, but not until the disk has all of them. last: no other will come, so there is no
        time to wait for the disk in."""
        self.flush()
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, "checkpoints")
        let_go = threading.Event()
        self._writing = self._writer.submit(self._keep, index, fingerprint, arrays, batch_size, last, let_go)
        self._writing.add_done_callback(lambda _: let_go.set())
        let_go.wait()

    def check(self) -> None:
        """Raise if the newest shard turned out not to be writable."""
        if self._writing is not None and self._writing.done():
            self.flush()

    def flush(self) -> None:
        """Wait until everything given is on disk."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def superfluous(self) -> None:
        """The results are written: what is in memory alone need not be."""
        self._unwritten = False

    def close(self) -> None:
        """Write what is in memory alone."""
        if self._writer is not None:
            self._writer.shutdown()
        if self._unwritten:
            self._write_sum()

    def total(self, count: int) -> ExactSum:
        """The first `count` shards added up, in order; of nothing where there is none. They must be all there are."""
        self.flush()
        if sorted(self.fingerprints) != list(range(count)):
            raise HeadscopeError(
                f"The texts make {count} shards, but {self._folder} holds others from a longer run of texts; "
                f"give the same texts, or {ELSEWHERE}."
            )
        self._sum.settle()
        return self._sum

    def rows(self) -> Iterator[Arrays]:
        """Those of every shard, in order."""
        self.flush()
        return (_arrays(self._rows[index]) for index in sorted(self._rows))

    def _keep(
        self, index: int, fingerprint: str, arrays: Arrays, batch_size: int, last: bool, let_go: threading.Event
    ) -> None:
        if self._row_specs:
            rows = {name: arrays.pop(name) for name in self._row_specs}
            self._rows[index] = self._write("rows", index, self._pieces([fingerprint], batch_size, rows))
        is_next = index == self._summed
        if is_next and (self._unwritten or last or not self._due()):
            self._unwritten = False  # should adding fail, the sum is none
            self._sum.add(arrays)
            self._unwritten = True
            arrays.clear()
            let_go.set()
        else:
            pieces = self._pieces([fingerprint], batch_size, arrays)
            self._singles[index] = self._write("shard", index, self._letting_go(pieces, arrays, is_next, let_go))
        self._summed += is_next
        self._count_in(index, fingerprint, batch_size)
        self._add_waiting()
        if not self._unwritten:
            self._all_written_at = time.monotonic()
        newest = max(self._sums, default=0)
        singles = sum(newest <= single < self._summed for single in self._singles)
        if not last and (singles >= FOLD or (self._unwritten and self._due())):
            self._write_sum()
            self._prune()

    def _due(self) -> bool:
        """Whether enough was measured since all was on disk."""
        return time.monotonic() - self._all_written_at >= SECONDS

    def _letting_go(
        self, pieces: Iterator[Piece], arrays: Arrays, is_next: bool, let_go: threading.Event
    ) -> Iterator[Piece]:
        """The pieces of a shard. As soon as an array is written it is added, if it is its turn, and let go. The arrays
        that a sum begins with are its own: to wait for the disk would free nothing."""
        if is_next and not self._sum.whole:
            self._sum.add(arrays)
            let_go.set()
            yield from pieces
            return
        yield next(pieces)
        for name in sorted(arrays):
            yield next(pieces)
            part = {name: arrays.pop(name)}
            if is_next:
                self._sum.add(part)
        let_go.set()

    def _write_sum(self) -> None:
        rest = {_REST + name: array for name, array in self._sum.rest.items()}
        fingerprints = [self.fingerprints[i] for i in range(self._summed)]
        pieces = self._pieces(fingerprints, self.batch_size or 0, self._sum.whole | rest)
        self._sums[self._summed] = self._write("sum", self._summed, pieces)
        self._unwritten = False
        self._all_written_at = time.monotonic()

    def _count_in(self, index: int, fingerprint: str, batch_size: int) -> None:
        self.fingerprints[index] = fingerprint
        self.batch_size = min(batch_size, self.batch_size or batch_size)

    def _add_waiting(self) -> None:
        """Shards that were finished before one that comes earlier."""
        while self._summed in self._singles:
            self._sum.add(_arrays(self._singles[self._summed]))
            self._summed += 1

    def _prune(self) -> None:
        """Remove what the older of the two newest sums makes superfluous."""
        newest = sorted(self._sums)[-2:]
        stale = [self._sums.pop(count) for count in sorted(self._sums) if count not in newest]
        if len(newest) == 2:
            stale += [self._singles.pop(index) for index in sorted(self._singles) if index < newest[0]]
        for path in stale:
            path.unlink(missing_ok=True)

    def _write(self, kind: str, number: int, pieces: Iterator[Piece]) -> Path:
        return write_under_checksum(self._folder / f"{kind}-{number:06d}.safetensors", pieces)

    def _pieces(self, fingerprints: list[str], batch_size: int, arrays: Arrays) -> Iterator[Piece]:
        about = {"identity": self._identity, "fingerprints": fingerprints, "batch_size": batch_size}
        return safetensors_pieces(arrays, {"headscope": json.dumps(about)})

    def _find(self) -> None:
        """Take stock of what is on disk. What is damaged is removed, and its shards are measured again."""
        singles: dict[int, _Found] = {}
        sums: dict[int, _Found] = {}
        rows: dict[int, _Found] = {}
        kinds = {"shard": singles, "sum": sums, "rows": rows}
        damaged: list[tuple[str, int]] = []
        for path in sorted(self._folder.iterdir()):
            match = _NAME.fullmatch(path.name)
            if match is None:
                if path.name.endswith(".part"):
                    path.unlink()
                continue
            kind, number = match[1], int(match[2])
            found = self._read(path, match[3], kind, number)
            if found is None:
                damaged.append((kind, number))
                path.unlink()
            else:
                kinds[kind][number] = found
        if self._row_specs:
            self._rows = {index: found.path for index, found in rows.items()}
            unbroken = next(index for index in itertools.count() if index not in rows)
            for lacking in [number for number in singles if number not in rows]:
                singles.pop(lacking).path.unlink()
            for beyond in [count for count in sums if count > unbroken]:
                sums.pop(beyond).path.unlink()
        self._sums = {count: found.path for count, found in sums.items()}
        self._singles = {index: found.path for index, found in singles.items()}
        if sums:
            self._summed = max(sums)
            newest = sums[self._summed]
            arrays = _arrays(newest.path)
            rest = {name.removeprefix(_REST): arrays.pop(name) for name in list(arrays) if name.startswith(_REST)}
            self._sum = ExactSum(arrays, rest)
            for index, fingerprint in enumerate(newest.fingerprints):
                self._count_in(index, fingerprint, newest.batch_size)
        for index, found in singles.items():
            if index >= self._summed:
                self._count_in(index, found.fingerprints[0], found.batch_size)
        self._add_waiting()
        self._tell(damaged)

    def _tell(self, damaged: list[tuple[str, int]]) -> None:
        gaps = set(range(max(self.fingerprints, default=-1))) - set(self.fingerprints)
        for kind, number in damaged:
            again = set(range(number)) if kind == "sum" else {number}
            again -= set(self.fingerprints)
            gaps -= again
            what = f"of the first {number} shards" if kind == "sum" else f"of shard {number}"
            then = f"{_shards(again)} measured again" if again else "nothing was lost by it"
            self.told.append(f"The checkpoint {what} was damaged; {then}.")
        if gaps:
            self.told.append(f"There is no checkpoint of {_shards(gaps, plain=True)}; measured now.")

    def _read(self, path: Path, expected: str, kind: str, number: int) -> _Found | None:
        """None where the file is damaged or not of this study."""
        specs = {"shard": self._specs, "sum": _sum_specs(self._specs), "rows": self._row_specs}[kind]
        try:
            if file_checksum(path) != expected:
                return None
            with safe_open(path, framework="numpy") as file:
                about = json.loads((file.metadata() or {})["headscope"])
                names = set(file.keys())
                shapes = {name: tuple(file.get_slice(name).get_shape()) for name in names}
                kinds = {name: file.get_slice(name).get_dtype() for name in names}
            found = _Found(path, list(map(str, about["fingerprints"])), int(about["batch_size"]))
        except (OSError, SafetensorError, ValueError, KeyError, TypeError):
            return None
        if about.get("identity") != self._identity:
            raise HeadscopeError(f"{path} is a checkpoint of another study than the one asked for; {ELSEWHERE}.")
        of_one = 1 if kind == "rows" else 0
        whole = {name: (DTYPES.get(kinds[name]), shapes[name][of_one:]) for name in names}
        held = number if kind == "sum" else 1
        return found if whole == specs and len(found.fingerprints) == held else None


@contextmanager
def locked(study: Path) -> Iterator[None]:
    """Hold the study folder for one run; the next one is refused. A run that leaves no shard leaves no folder."""
    folder = study / FOLDER
    fresh = not study.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        # Some network file systems have no locks: there, nothing keeps two runs apart but their user.
        with suppress(NotImplementedError):
            lock.acquire(timeout=0)
    except Timeout:
        raise HeadscopeError(
            f"Another run is writing to {study}; wait for it, or give another {option('out')}."
        ) from None
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise HeadscopeError(
            f"The folder {study} can't be written to ({reason}); give another {option('out')}."
        ) from None
    try:
        yield
    finally:
        if not _holds_shards(folder):
            remove(study)
        lock.release()
        if fresh:
            with suppress(OSError):
                study.rmdir()


def clear(study: Path) -> None:
    """Remove the checkpoints of a study; the folder stays with the run that holds it."""
    _remove(study / FOLDER, PLAN)


def remove(study: Path) -> None:
    """Remove the folder of the checkpoints with all of them, but nothing else that may lie in it."""
    folder = study / FOLDER
    _remove(folder, PLAN, LOCK)
    with suppress(OSError):
        folder.rmdir()


def _remove(folder: Path, *names: str) -> None:
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        ours = path.name.removesuffix(".part") in names or _NAME.fullmatch(path.name) or _PART.fullmatch(path.name)
        if ours:
            path.unlink(missing_ok=True)


def _holds_shards(folder: Path) -> bool:
    return folder.is_dir() and any(_NAME.fullmatch(path.name) for path in folder.iterdir())


def _sum_specs(shard: Specs) -> Specs:
    """Of sums of shards, with what rounding cut off them."""
    specs = {name: (wide(dtype), shape) for name, (dtype, shape) in shard.items()}
    return specs | {_REST + name: spec for name, spec in specs.items() if spec[0] == "float64"}


def _arrays(path: Path) -> Arrays:
    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def _read_plan(path: Path) -> dict[str, Any] | None:
    try:
        plan = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return plan if isinstance(plan, dict) else None


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """In words; of hashes, which tell a reader nothing, the names alone."""
    return " and ".join(
        key
        if any(_is_hash(values.get(key)) for values in (before, now))
        else f"{key} ({before.get(key)!r} there, {now.get(key)!r} now)"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key)
    )


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{16}", value) is not None


def _shards(indices: set[int], plain: bool = False) -> str:
    names = ", ".join(map(str, sorted(indices)))
    if plain:
        return f"shard {names}" if len(indices) == 1 else f"shards {names}"
    return f"shard {names} is" if len(indices) == 1 else f"shards {names} are"
