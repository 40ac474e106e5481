"""Small studies of a tiny model, for the tests of how a study runs."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headscope
from headscope.files import Arrays
from headscope.measure.accumulate import AllMeasures
from headscope.measure.catalogue import SYMMETRIC
from headscope.measure.triangles import unpack
from headscope.model.capture import Capture
from headscope.model.loading import Model
from headscope.options import Options
from headscope.run.shards import Shard, ShardRunner
from headscope.run.sums import ExactSum
from headscope.show.objects import Study

WINDOWS_PER_SHARD = 16
RESULTS = ("arrays.safetensors", "heads.csv", "heads.parquet", "layers.csv", "layers.parquet", "example.safetensors")


def small_study(model: Model, out: Path, *, max_windows: int = 160, threads: int = 1, **more: Any) -> Study:
    """Ten shards, if the fixture `small_shards` is used."""
    asked = {"length": 32, "progress": False, **more}
    return headscope.study(model, out=out, max_windows=max_windows, threads=threads, **asked)


def added(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """States of several parts; adding is what merging means for every state."""
    return {name: sum(part[name] for part in parts[1:]) + parts[0][name] for name in parts[0]}


def digests(folder: Path) -> dict[str, str]:
    """Of all results but the manifest, which tells times and workers."""
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in RESULTS}


def digests_of(folder: Path) -> dict[str, str]:
    """Of all files of a folder but the manifest."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and file.name != "study.json")
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def started(*arguments: str | Path, **more: Any) -> subprocess.Popen[str]:
    """The real command, in a process group of its own, with small shards that are on disk at once."""
    code = (
        "from headscope.run import checkpoints, shards; "
        f"checkpoints.SECONDS, shards.WINDOWS_PER_SHARD = 0, {WINDOWS_PER_SHARD}; "
        "from headscope.cli import main; main()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **more,
    )


def study_arguments(model: Path, out: Path, windows: int = 160) -> list[str | Path]:
    return ["study", "--model", model, "--out", out, "--length", "32", "--max-windows", str(windows), "--threads", "1"]


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def group_is_empty(group: int) -> bool:
    """No process of a group that was started with `started` is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def interrupt(process: subprocess.Popen[str]) -> None:
    """Ctrl-C: a terminal sends it to all processes of the group."""
    os.killpg(process.pid, signal.SIGINT)


def measures(model: Model, options: Options) -> AllMeasures:
    """What a study of a model runs."""
    capture = Capture(model.network, options.stack)
    return AllMeasures(options, capture.chosen_layers(options.layers), capture.heads)


def whole(shard: Arrays) -> Arrays:
    """What a study of this shard alone keeps."""
    whole = ExactSum(shard).whole
    return {name: unpack(array) if name in SYMMETRIC else array for name, array in whole.items()}


def during(monkeypatch: pytest.MonkeyPatch, shard: int, action: Callable[[], None]) -> None:
    """Do something just before a shard is measured."""
    run = ShardRunner.run

    def running(runner: ShardRunner, given: Shard, tick: Any) -> Any:
        if given.index == shard:
            action()
        return run(runner, given, tick)

    monkeypatch.setattr(ShardRunner, "run", running)


def stop() -> None:
    raise KeyboardInterrupt
