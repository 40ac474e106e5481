"""Two versions of headscope beside each other: the time, memory and folder of a study.

    git worktree add ../before v0.1.0
    python benchmarks/against.py ../before [--model NAME] [--windows 256] [--rounds 3]

Runs alternate, each in a process of its own that has measured a few windows before; what the other version needs must
be installed here. Ratios are this version to the other, of neighbouring runs: the median, the least and the most.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import bench

HERE = Path(__file__).parents[1]
STUDY = """
import json, re, sys, tempfile, time
from pathlib import Path
import headscope
name, texts, windows = sys.argv[1], sys.argv[2], int(sys.argv[3])
def study(count, out):
    read = headscope.read_texts([texts]) if texts else headscope.sample_texts()
    headscope.study(model, read, out=out, progress=False, max_windows=count)
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
model = headscope.load(name)
model.network(**model.tokenizer(["word " * 126] * 8, return_tensors="pt"))
loaded = peak()
with tempfile.TemporaryDirectory() as folder:
    study(8, folder + "/few")
    began, used = time.perf_counter(), time.process_time()
    study(windows, folder + "/s")
    told = {"seconds": time.perf_counter() - began, "processor seconds": time.process_time() - used}
    told["MB above the loaded model"] = peak() - loaded
    told["MB of the folder"] = sum(file.stat().st_size for file in Path(folder, "s").rglob("*") if file.is_file()) / 1e6
print(json.dumps(told))
"""


def run(checkout: Path, model: str, windows: int) -> dict[str, float]:
    """One study by the version in a checkout. model: a folder, or the built-in one."""
    texts = str(bench.CORPUS) if bench.CORPUS.exists() else ""
    done = subprocess.run(
        [sys.executable, "-c", STUDY, model, texts, str(windows)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(checkout / "src")},
    )
    if done.returncode:
        sys.exit(done.stderr)
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="a checkout of the other version")
    parser.add_argument("--model", help="a folder, or minilm; by default BERT-base's shape with random weights")
    parser.add_argument("--windows", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        if asked.model is None:
            base = bench.bert()
            base.network.save_pretrained(folder)
            base.tokenizer.save_pretrained(folder)
        for number in range(asked.rounds):
            checkouts = asked.other.resolve(), HERE
            other, this = (run(checkout, asked.model or folder, asked.windows) for checkout in checkouts)
            rounds.append((other, this))
            for name in this:
                print(f"{number + 1}. {name}: {other[name]:.1f}, here {this[name]:.1f}", file=sys.stderr)
    for name in rounds[0][0]:
        ratios = [this[name] / other[name] for other, this in rounds]
        print(f"{name}: {statistics.median(ratios):.3f} x ({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
