"""Kills studies and lets them go on, for test_faults.py and `make faults`.

    python tests/killing.py MODEL FOLDER ROUNDS SEED STRIDE

Kills ROUNDS studies at random moments, then others before every STRIDE-th time that they sync, rename or remove a
file, then one that has workers; last, it lets one run out of memory. Everything is imported once and the studies are
forked, so that each takes a second. Every study must end with the same bytes as one that nothing disturbed; it is
printed how many did.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

import headscope
from headscope.model.loading import Model
from headscope.run import checkpoints, shards

shards.WINDOWS_PER_SHARD = 16
checkpoints.SECONDS = 0
RESULTS = ("arrays.safetensors", "heads.csv", "heads.parquet", "layers.csv", "layers.parquet", "example.safetensors")


def study(model: Model, out: Path, windows: int) -> None:
    headscope.study(model, out=out, length=32, max_windows=windows, threads=1, progress=False)


def forked(action: Callable[[], None]) -> int:
    """The process id of a child that does one thing and ends with code 0, or 3 after an error."""
    child = os.fork()
    if child:
        return child
    code = 3
    try:
        action()
        code = 0
    finally:
        os._exit(code)


def finish(model: Model, out: Path, windows: int) -> None:
    """Run the same study again. It goes on, or is there at once where the killed one had got to its end."""
    _, status = os.waitpid(forked(lambda: study(model, out, windows)), 0)
    assert os.waitstatus_to_exitcode(status) == 0, f"the study in {out} did not go on ({status})"


def digests(out: Path) -> dict[str, str]:
    return {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in RESULTS}


def at_random(model: Model, root: Path, rounds: int, seed: int) -> tuple[int, int]:
    """(identical, rounds). Half of the studies are killed a second time after they have gone on."""
    windows, chance = 640, random.Random(seed)
    study(model, root / "warm", windows)
    began = time.monotonic()
    study(model, root / "whole", windows)
    duration = time.monotonic() - began
    expected = digests(root / "whole")
    same = kept = 0
    for number in range(rounds):
        out = root / f"round-{number}"
        for _ in range(chance.choice((1, 2))):
            if (out / "study.json").exists():
                break
            child = forked(partial(study, model, out, windows))
            time.sleep(chance.uniform(0, duration))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        found = len(list(out.glob("unfinished/*.safetensors")))
        kept += bool(found)
        finish(model, out, windows)
        same += digests(out) == expected and not (out / "unfinished").exists()
        shutil.rmtree(out)
    print(f"an undisturbed study takes {duration:.1f} s; {kept} of {rounds} had checkpoints to go on from")
    return same, rounds


def at_steps(model: Model, root: Path, stride: int) -> tuple[int, int]:
    windows = 9 * shards.WINDOWS_PER_SHARD
    study(model, root / "whole", windows)
    expected = digests(root / "whole")
    same = rounds = 0
    for step in itertools.count(0, stride):
        out = root / f"step-{step}"
        child = forked(partial(killed_before, step, partial(study, model, out, windows)))
        _, status = os.waitpid(child, 0)
        if status == 0:
            break
        assert os.WIFSIGNALED(status), f"the study failed (status {status}) instead of being killed at step {step}"
        finish(model, out, windows)
        same += digests(out) == expected and not list(out.glob("**/*.part")) and not (out / "unfinished").exists()
        rounds += 1
        shutil.rmtree(out)
    print(f"a study of {windows} windows touches the disk {step - stride + 1} to {step} times")
    return same, rounds


def killed_before(step: int, action: Callable[[], None]) -> None:
    """Do something in a process that dies when it is about to touch the disk for the step-th time."""
    left = step

    def lethal(function: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return function(*args, **kwargs)

        return call

    for name in ("fsync", "replace", "unlink", "rmdir"):
        setattr(os, name, lethal(getattr(os, name)))
    action()


def workers_end(model: Model, out: Path) -> bool:
    """Kill a process that has two workers, and see whether they end as well."""

    def run() -> None:
        os.setsid()
        headscope.study(model, out=out, length=32, max_windows=1600, threads=1, workers=2, progress=False)

    child = forked(run)
    while not list(out.glob("unfinished/shard-*")):
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for _ in range(200):
        try:
            os.killpg(child, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def out_of_memory(model: Model, out: Path) -> None:
    """A batch that needs more memory than the process may have. Half of it, or half of that, fits."""
    room = 150 * 2**20
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))
    shards.WINDOWS_PER_SHARD = 2048
    headscope.study(model, out=out, length=64, batch_size=2048, threads=1, progress=False)


def main() -> None:
    torch.set_num_threads(1)
    model = headscope.load(sys.argv[1], device="cpu")
    root = Path(sys.argv[2])
    rounds, seed, stride = map(int, sys.argv[3:])
    print("at random moments: {} of {} identical".format(*at_random(model, root / "random", rounds, seed)))
    print("at steps: {} of {} identical".format(*at_steps(model, root / "steps", stride)))
    print(f"no worker outlives the first process: {workers_end(model, root / 'workers')}")
    _, status = os.waitpid(forked(lambda: out_of_memory(model, root / "memory")), 0)
    print(f"out of memory: status {status}")


if __name__ == "__main__":
    main()
