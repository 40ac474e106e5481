"""What a study costs, against a bare forward pass and against other ways to the same numbers.

    python benchmarks/bench.py [--quick | --smoke] [--out benchmarks/results]

--quick takes the ratios to a bare forward pass alone, of fewer windows, in six to eight minutes: to judge a change
before it lands. --smoke takes a few windows: to see that it runs.
Contenders alternate within one run, each in a process of its own; every claim is the median of the ratios of
neighbouring runs, with its spread.
Writes results.json and results.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import contenders
import torch
from stages import stages

import headscope
from headscope.corpus.windows import Batch, Counts, Cutter, cut_all, stack
from headscope.model.loading import Model
from headscope.options import Options
from headscope.run.checkpoints import Checkpoints
from headscope.run.shards import WINDOWS_PER_SHARD

HERE = Path(__file__).parent
SHARED = HERE.parents[1] / "shared"
CORPUS = SHARED / "corpora" / "kyoto-wikipedia.jsonl.gz"
FETCHED = Path.home() / ".cache" / "headscope-dev"
MPNET, SMOLLM2, GTE = FETCHED / "all-mpnet-base-v2", FETCHED / "smollm2-135m", SHARED / "models" / "gte-small"
"""Where scripts beside the project put real models; the rows of one that is absent are left out."""

BASE, REAL, BUILT_IN = "BERT-base shape, random weights", MPNET.name, "minilm"
BARE, STUDY, UNKEPT = "bare forward", "headscope study", "headscope study without checkpoints"
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
STUDIES: dict[str, dict[str, Any]] = {
    STUDY: {},
    UNKEPT: {},
    "one process": {"workers": 1, "threads": 1},
    "two processes": {"workers": 2, "threads": 1},
    "Ray": {"workers": min(4, CORES), "threads": 1, "engine": "ray"},
}
"""Contenders that are studies -> their arguments."""
BATCH = 8
"""Windows that the others run at once: the fastest size for a bare forward pass here. headscope has its own default."""

PROCESSES = multiprocessing.get_context("spawn")
Found = Iterator[dict[str, Any]]
"""Results, as they are found."""


def texts() -> Any:
    return headscope.read_texts([CORPUS]) if CORPUS.exists() else headscope.sample_texts()


def bert(hidden: int = 768, positions: int = 512) -> Model:
    """BERT-base's shape, or a narrower one with as many heads; random weights, the built-in model's tokenizer."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(hidden_size=hidden, intermediate_size=4 * hidden, max_position_embeddings=positions)
    network = BertModel(config).eval().requires_grad_(False)
    name = BASE if hidden == 768 else f"12 x 12 heads, {hidden} wide, random weights"
    return Model(network, headscope.load(BUILT_IN).tokenizer, name)


MODELS: dict[str, Callable[[], Model]] = {
    BASE: bert,
    REAL: lambda: headscope.load(str(MPNET)),
    BUILT_IN: lambda: headscope.load(BUILT_IN),
    GTE.name: lambda: headscope.load(str(GTE)),
    SMOLLM2.name: lambda: headscope.load(str(SMOLLM2)),
}


@dataclass(frozen=True)
class Effort:
    """How much is measured: a whole run, a quick one, or a smoke test."""

    name: str

    def of(self, whole: int, smoke: int, quick: int | None = None) -> int:
        """A number of windows or rounds."""
        return {"whole": whole, "quick": whole if quick is None else quick, "smoke": smoke}[self.name]

    @property
    def quick(self) -> bool:
        return self.name == "quick"


def windows_of(model: Model, options: Options) -> Batch:
    return stack(list(cut_all(texts(), Cutter(model.tokenizer, options), Counts(), options.max_windows)))


class Racer:
    """A contender in a process of its own: what the others did to an allocator's memory is not its concern."""

    def __init__(self, name: str, *race: Any) -> None:
        self._windows = race[1]
        self._here, there = PROCESSES.Pipe()
        self._process = PROCESSES.Process(target=_race, args=(there, name, *race))
        self._process.start()
        there.close()
        self._here.recv()

    def run(self, windows: int | None = None) -> float:
        """Seconds of one run over all windows, or over some."""
        self.begin(windows)
        return self.end()

    def begin(self, windows: int | None = None) -> None:
        self._here.send(windows or self._windows)

    def end(self) -> float:
        seconds: float = self._here.recv()
        return seconds

    def close(self) -> None:
        self._here.close()
        self._process.join()


def _race(pipe: Any, name: str, model: str, count: int, length: int) -> None:
    """In the process of a racer: get ready, then run whenever told to."""
    network = MODELS[model]()
    with tempfile.TemporaryDirectory() as folder:
        run = _runner(name, network, Path(folder) / "study", count, length)
        run(BATCH)
        pipe.send("ready")
        with suppress(EOFError):
            while True:
                windows = pipe.recv()
                began = time.perf_counter()
                run(windows)
                pipe.send(time.perf_counter() - began)


def _runner(name: str, model: Model, out: Path, count: int, length: int) -> Callable[[int], Any]:
    """A contender as a function of how many windows it takes."""
    if name == UNKEPT:
        Checkpoints._write = _only_read  # type: ignore[method-assign]
    if name in STUDIES:
        return lambda most: headscope.study(
            model, texts(), out=out, overwrite=True, progress=False, max_windows=most, length=length, **STUDIES[name]
        )
    options = Options(max_windows=count, length=length)
    windows = windows_of(model, options)
    contender = contenders.bare(model) if name == BARE else getattr(contenders, name)(model, options)
    return lambda most: contender(windows[:most], BATCH)


def _only_read(checkpoints: Checkpoints, kind: str, number: int, pieces: Iterator[Any]) -> Path:
    """Instead of writing a checkpoint: what is read of it is let go, as ever."""
    for _ in pieces:
        pass
    return Path("nowhere")


def alternate(racers: dict[str, Racer], rounds: int) -> dict[str, list[float]]:
    """Seconds of each run, in rounds: what slows the machine down for a while slows all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in racers}
    for _ in range(rounds):
        for name, racer in racers.items():
            seconds[name].append(racer.run())
            print(f"    {name}: {seconds[name][-1]:.2f} s", file=sys.stderr)
    return seconds


def ratio(seconds: dict[str, list[float]], name: str, to: str) -> dict[str, float]:
    ratios = [a / b for a, b in zip(seconds[name], seconds[to], strict=True)]
    return {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}


def race(model: str, count: int, rounds: int, names: list[str], length: int = 128) -> dict[str, list[float]]:
    """Seconds of each contender over the same windows, round by round."""
    with ExitStack() as stack:
        racers = {name: stack.enter_context(closing(Racer(name, model, count, length))) for name in names}
        return alternate(racers, rounds)


def time_per_window(model: str, count: int, rounds: int, others: list[str], length: int = 128) -> dict[str, Any]:
    """headscope study end to end, a bare forward pass, and other contenders."""
    seconds = race(model, count, rounds, [BARE, STUDY, *others], length)
    return {
        "model": model,
        "windows": count,
        "length": length,
        "milliseconds_per_window": {name: 1000 * statistics.median(s) / count for name, s in seconds.items()},
        "ratio_to_bare_forward": {name: ratio(seconds, name, BARE) for name in seconds},
        "ratio_to_headscope": {name: ratio(seconds, name, STUDY) for name in seconds},
    }


def in_new_process(code: str, *arguments: str, **environment: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=HERE,
        env=os.environ | environment,
    )
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


MEMORY = """
import json, re, sys, tempfile, time
import bench, headscope
count, hidden = int(sys.argv[1]), int(sys.argv[2])
model = bench.bert(hidden)
windows = bench.windows_of(model, headscope.Options(max_windows=8))
bench.contenders.bare(model)(windows, bench.BATCH)
# Of this process alone: the maximum that getrusage tells is handed down by the process that began this one.
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
loaded = peak()
with tempfile.TemporaryDirectory() as folder:
    began = time.perf_counter()
    headscope.study(model, bench.texts(), out=folder + "/s", progress=False, max_windows=count)
    print(json.dumps({"windows": count, "mb_above_loaded": peak() - loaded, "seconds": time.perf_counter() - began}))
"""

BY_HAND = """
import json, time
began = time.perf_counter()
import sys, torch, transformers
tokenizer = transformers.AutoTokenizer.from_pretrained(sys.argv[1])
network = transformers.AutoModel.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
inputs = tokenizer(sys.argv[2], return_tensors="pt", truncation=True, max_length=128)
with torch.inference_mode():
    network(**inputs)
print(json.dumps({"seconds": time.perf_counter() - began}))
"""

BY_STUDY = """
import json, sys, tempfile, time
began = time.perf_counter()
import headscope
model = headscope.load(sys.argv[1])
from headscope.run import runner
class Until(runner.Bar):
    def advance(self, count):
        print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
        super().advance(count)
runner.Bar = Until
with tempfile.TemporaryDirectory() as folder:
    headscope.study(model, [sys.argv[2]], out=folder + "/s", progress=False)
"""

BY_INSPECT = """
import json, sys, time
began = time.perf_counter()
import headscope
headscope.inspect(headscope.load(sys.argv[1]), sys.argv[2]).telling_heads()
print(json.dumps({"seconds": time.perf_counter() - began}))
"""
WINDOW = "word " * 126
SENTENCE = "The ferryman sat on the steps, and the women waited for the ferryman."

FIRST_RUN = """
import json, tempfile, time
began = time.perf_counter()
import headscope
with tempfile.TemporaryDirectory() as folder:
    headscope.study("minilm", headscope.sample_texts(), out=folder + "/s", progress=False, max_windows=16)
print(json.dumps({"seconds": time.perf_counter() - began}))
"""


def memory(few: int, many: int, hidden: int) -> dict[str, Any]:
    """A small run before a large one and after it: so a change of the machine's speed is seen for what it is."""
    runs = [in_new_process(MEMORY, str(count), str(hidden)) for count in (few, many, few)]
    before, large, after = runs
    small = statistics.mean([before["seconds"], after["seconds"]]) / few
    return {
        "model": f"12 x 12 heads, {hidden} wide",
        "runs": runs,
        "large_to_small": large["mb_above_loaded"] / max(before["mb_above_loaded"], after["mb_above_loaded"]),
        "cost_growth": large["seconds"] / many / small,
    }


def start_up(folder: Path, code: str, text: str, repeats: int) -> dict[str, Any]:
    """From a cold interpreter to the first window, as the code times it, against the same by hand."""
    seconds: dict[str, list[float]] = {"by hand": [], "headscope": []}
    for _ in range(repeats):
        seconds["by hand"].append(in_new_process(BY_HAND, str(folder), text)["seconds"])
        seconds["headscope"].append(in_new_process(code, str(folder), text)["seconds"])
    return {"seconds": {k: statistics.median(v) for k, v in seconds.items()}, **ratio(seconds, "headscope", "by hand")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quick", dest="effort", action="store_const", const="quick", help="the ratios alone, in minutes")
    how.add_argument("--smoke", dest="effort", action="store_const", const="smoke", help="to see that it runs")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    asked = parser.parse_args()
    effort = Effort(asked.effort or "whole")
    results: dict[str, Any] = {
        "date": date.today().isoformat(),
        "machine": {"processor": processor(), "cores": os.cpu_count(), "threads": torch.get_num_threads()},
        "versions": {
            "python": platform.python_version(),
            **{n: metadata.version(n) for n in ("headscope", "torch", "transformers")},
        },
        "effort": effort.name,
    }
    asked.out.mkdir(parents=True, exist_ok=True)
    table = ""
    for part, run in PARTS.items():
        if effort.quick and run is not measure_time:
            continue
        print(part, file=sys.stderr)
        for found in run(effort, results):
            results |= found
            (asked.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
            table = as_table(results)
            (asked.out / "results.md").write_text(table)
    print(table)


def measure_time(effort: Effort, results: dict[str, Any]) -> Found:
    rounds = effort.of(3, 1)
    others = [name for name in ("nnsight", "transformer_lens") if has(name.replace("_", "-"))]
    rows: list[dict[str, Any]] = []

    def row(*arguments: Any, **more: Any) -> dict[str, Any]:
        rows.append(time_per_window(*arguments, **more))
        return {"time": rows}

    yield row(BASE, effort.of(384, 16, quick=64), rounds, [])
    if MPNET.is_dir():
        yield row(REAL, effort.of(384, 16, quick=64), rounds, [])
    if MPNET.is_dir() and not effort.quick:
        yield row(REAL, effort.of(64, 8), rounds, ["plain_script"])
    if others and not effort.quick:
        yield row(BASE, effort.of(64, 16), rounds, others)
    if GTE.is_dir():
        yield row(GTE.name, effort.of(1000, 16, quick=200), rounds, [])
    yield row(BUILT_IN, effort.of(1000, 16, quick=400), rounds, [])
    if SMOLLM2.is_dir():
        yield row(SMOLLM2.name, effort.of(400, 8, quick=96), rounds, [])
    yield row(BASE, effort.of(224, 8, quick=32), rounds, [], length=512)


def measure_checkpoints(effort: Effort, results: dict[str, Any]) -> Found:
    """What it costs to keep what is measured, by the clock, in a study that is long enough for it."""
    seconds = race(BUILT_IN, effort.of(3000, 16), effort.of(3, 1), [STUDY, UNKEPT])
    yield {"checkpoints": {name: value - 1 for name, value in ratio(seconds, STUDY, UNKEPT).items()}}


def measure_processes(effort: Effort, results: dict[str, Any]) -> Found:
    """Windows a second of several processes, as a share of as many times that of one; what each takes to begin is not
    counted. Beside it what the machine allows: two studies at once that know nothing of each other."""
    names = {"one process": 1, "two processes": 2} | ({"Ray": min(4, CORES)} if has("ray") else {})
    few = effort.of(WINDOWS_PER_SHARD, 8) * max(names.values())  # as many shards for each
    many = 3 * few
    shares: dict[str, list[float]] = {}
    with ExitStack() as stack:
        racers = {name: stack.enter_context(closing(Racer(name, BUILT_IN, many, 128))) for name in names}
        another = stack.enter_context(closing(Racer("one process", BUILT_IN, many, 128)))
        for _ in range(effort.of(3, 1)):
            one = racers["one process"].run(many) - racers["one process"].run(few)
            for name, count in names.items():
                if count > 1:
                    seconds = racers[name].run(many) - racers[name].run(few)
                    shares.setdefault(name, []).append(one / seconds / count)
            beside = _at_once(racers["one process"], another, many) - _at_once(racers["one process"], another, few)
            shares.setdefault("two studies at once", []).append(one / beside)
            print("   ", *(f"{name}: {values[-1]:.2f} x" for name, values in shares.items()), file=sys.stderr)
    yield {"processes": {name: statistics.median(values) for name, values in shares.items()}}


def _at_once(one: Racer, other: Racer, windows: int) -> float:
    """Seconds until both are done."""
    one.begin(windows)
    other.begin(windows)
    return max(one.end(), other.end())


def measure_peak(effort: Effort, results: dict[str, Any]) -> Found:
    """The share of the time that plain matrix products would take for the same arithmetic, measured side by side."""
    row = time_per_window(BASE, effort.of(128, 16), effort.of(3, 1), ["matrix_product"])
    base = bert()
    whole = contenders.arithmetic(base, 128)
    computed = {BARE: whole, STUDY: whole - contenders.arithmetic_of_tail(base, 128)}
    ratios = {BARE: row["ratio_to_bare_forward"], STUDY: row["ratio_to_headscope"]}
    yield {
        "peak": {
            "gflops": whole / row["milliseconds_per_window"]["matrix_product"] / 1e6,
            "share": {name: ratios[name]["matrix_product"]["median"] * computed[name] / whole for name in computed},
        }
    }


def measure_stages(effort: Effort, results: dict[str, Any]) -> Found:
    base = bert()
    windows = windows_of(base, Options(max_windows=effort.of(64, 16)))
    machine = contenders.machine()
    yield {
        "machine_at_best": machine,
        "stages_ms_per_window": stages(base, windows, texts),
        "stages_at_best": contenders.stages_at_best(base, 128, Options().windows_at_once, machine),
    }


def measure_memory(effort: Effort, results: dict[str, Any]) -> Found:
    yield {
        "memory": memory(effort.of(1000, 64), effort.of(10000, 128), 192),
        "memory_base": in_new_process(MEMORY, str(effort.of(1000, 16)), "768"),
    }


def measure_start_up(effort: Effort, results: dict[str, Any]) -> Found:
    folder = MPNET if MPNET.is_dir() else Path(headscope.model.places.built_in_folder(BUILT_IN))
    yield {"start_up": start_up(folder, BY_STUDY, WINDOW, effort.of(7, 1))}
    built_in = Path(headscope.model.places.built_in_folder(BUILT_IN))
    yield {"inspect": start_up(built_in, BY_INSPECT, SENTENCE, effort.of(7, 1))}


def measure_first_run(effort: Effort, results: dict[str, Any]) -> Found:
    """A run on a machine where no library has kept anything yet, and the next one."""
    seconds: dict[str, list[float]] = {"first": [], "later": []}
    for _ in range(effort.of(3, 1)):
        with tempfile.TemporaryDirectory() as kept:
            for name in seconds:
                seconds[name].append(in_new_process(FIRST_RUN, XDG_CACHE_HOME=kept, MPLCONFIGDIR=kept)["seconds"])
    yield {"first_run": {name: statistics.median(values) for name, values in seconds.items()}}


def measure_sample(effort: Effort, results: dict[str, Any]) -> Found:
    """What `make study` does after the set-up, on a machine where no library has kept anything yet."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {"XDG_CACHE_HOME": folder, "MPLCONFIGDIR": folder}
        command = [sys.executable, "-m", "headscope", "study", "--out", f"{folder}/s"]
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, env=os.environ | kept)
        whole = time.perf_counter() - began
        yield {"sample": {"whole": whole, "measuring": headscope.read(f"{folder}/s").manifest.seconds}}


def measure_drawing(effort: Effort, results: dict[str, Any]) -> Found:
    """Figures and report of a study of 12 x 12 heads, each as a command."""
    with tempfile.TemporaryDirectory() as folder:
        headscope.study(bert(192), texts(), out=f"{folder}/s", progress=False, max_windows=effort.of(256, 16))
        seconds = {}
        for verb in ("figures", "report"):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-m", "headscope", verb, f"{folder}/s"], check=True, capture_output=True)
            seconds[verb] = time.perf_counter() - began
    yield {"drawing": seconds}


PARTS = {
    "time per window": measure_time,
    "checkpoints": measure_checkpoints,
    "processes": measure_processes,
    "matrix-product peak": measure_peak,
    "stages": measure_stages,
    "memory": measure_memory,
    "start-up": measure_start_up,
    "first run": measure_first_run,
    "the sample": measure_sample,
    "figures and report": measure_drawing,
}
"""In this order; what is found is written at once."""


def has(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def as_table(results: dict[str, Any]) -> str:
    lines = ["| what | against | ratio (median; least to most) |", "|---|---|---|"]
    for row in results["time"]:
        what = f"{row['model']}, {row['length']} tokens, {row['windows']} windows"
        for name, values in row["ratio_to_bare_forward"].items():
            if name == BARE:
                continue
            spread = f"{values['median']:.3f} x; {values['least']:.3f} to {values['most']:.3f}"
            lines.append(f"| {name.replace('_', ' ')}: {what} | bare forward | {spread} |")
        for name, values in row["ratio_to_headscope"].items():
            if name in (BARE, STUDY):
                continue
            spread = f"{values['median']:.2f} x; {values['least']:.2f} to {values['most']:.2f}"
            lines.append(f"| {name.replace('_', ' ')}: {what} | headscope study | {spread} |")
    if "memory" in results:
        lines += _memory_rows(results["memory"], results["memory_base"])
    if "start_up" in results:
        lines.append(f"| start-up to the first window | by hand | {results['start_up']['median']:.2f} x |")
    if "inspect" in results:
        lines.append(f"| inspect of one sentence | by hand | {results['inspect']['median']:.2f} x |")
    if "first_run" in results:
        more = results["first_run"]["first"] - results["first_run"]["later"]
        lines.append(f"| a first run, 16 windows of the built-in model | a later one | +{more:.1f} s |")
    if "sample" in results:
        whole, measuring = (results["sample"][name] for name in ("whole", "measuring"))
        lines.append(
            f"| headscope study of the sample texts, first run | | {whole:.1f} s, measuring {measuring:.1f} s |"
        )
    if "drawing" in results:
        told = " and ".join(f"{name} {seconds:.1f} s" for name, seconds in results["drawing"].items())
        lines.append(f"| drawing a study of 12 x 12 heads | | {told} |")
    if "checkpoints" in results:
        told = results["checkpoints"]
        lines.append(f"| checkpoints, the built-in model | none | {told['median']:+.1%} |")
    for name, share in results.get("processes", {}).items():
        lines.append(f"| {name}, windows a second | as many times one process | {share:.2f} x |")
    if "peak" in results:
        gflops, shares = results["peak"]["gflops"], results["peak"]["share"]
        for name, share in shares.items():
            lines.append(f"| {name}, of torch's matrix products alone ({gflops:.0f} GFLOP/s) | | {share:.0%} |")
    if "stages_ms_per_window" in results:
        best, machine = results["stages_at_best"], results["machine_at_best"]
        lines += [
            "",
            f"One thread at best: {machine['gflops']:.0f} GFLOP/s (torch {machine['torch_gflops']:.0f}), "
            f"{machine['gb_per_second']:.1f} GB/s copied.",
        ]
        lines += ["", "| stage | ms a window | at best |", "|---|---|---|"]
        for name, value in results["stages_ms_per_window"].items():
            lines.append(f"| {name} | {value:.2f} | {f'{best[name]:.2f}' if name in best else ''} |")
    return "\n".join(lines) + "\n"


def _memory_rows(grown: dict[str, Any], base: dict[str, Any]) -> list[str]:
    small, large, _ = grown["runs"]
    growth = f"{large['windows']:,} against {small['windows']:,} windows"
    return [
        *(f"| peak memory, {run['windows']:,} windows, {grown['model']} | {_above(run)} |" for run in grown["runs"]),
        f"| the same, {growth} | | {grown['large_to_small']:.3f} x |",
        f"| peak memory, {base['windows']:,} windows, BERT-base shape | {_above(base)} |",
        f"| time a window, {growth} | | {grown['cost_growth']:.3f} x |",
    ]


def _above(run: dict[str, Any]) -> str:
    return f"loaded model | +{run['mb_above_loaded']:.0f} MB"


if __name__ == "__main__":
    main()
