"""Draws results.json: time per window by contender, and memory over windows.

python benchmarks/plot.py [benchmarks/results/results.json] [docs/performance.png]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

HERE = Path(__file__).parent
BLUE, GREY, ORANGE = "#0072B2", "#999999", "#D55E00"
NAMES = {
    "bare forward": "bare forward pass",
    "headscope study": "headscope study",
    "nnsight": "nnsight + torch measures",
    "transformer_lens": "TransformerLens + torch measures",
    "plain_script": "plain script",
}


def draw(results: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    bars = [
        (f"{NAMES[name]}\n({short(row)})", values["median"], values["least"], values["most"], name)
        for row in sorted(results["time"], key=lambda row: len(row["ratio_to_bare_forward"]))
        for name, values in row["ratio_to_bare_forward"].items()
        if name != "bare forward"
    ]
    for place, (_, median, least, most, name) in enumerate(bars):
        colour = BLUE if name == "headscope study" else GREY
        left.barh(place, median, color=colour, xerr=[[median - least], [most - median]], ecolor="black", capsize=2)
        shown = left.annotate(
            f"{median:.2f} ×", (most, place), (6, 0), textcoords="offset points", va="center", fontsize=8
        )
        shown.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
    left.axvline(1, color=ORANGE, linewidth=1, zorder=0)
    left.set_yticks(range(len(bars)), [bar[0] for bar in bars], fontsize=8)
    left.invert_yaxis()
    left.set_xlim(0, max(bar[3] for bar in bars) * 1.18)
    left.set_xlabel("time per window / bare forward pass (line: 1)")
    runs = sorted(results["memory"]["runs"], key=lambda run: run["windows"])
    right.plot([run["windows"] for run in runs], [run["mb_above_loaded"] for run in runs], "o-", color=BLUE)
    base = results["memory_base"]
    right.plot(base["windows"], base["mb_above_loaded"], "s", color=BLUE, markerfacecolor="none")
    right.annotate(
        "BERT-base",
        (base["windows"], base["mb_above_loaded"]),
        (6, 0),
        textcoords="offset points",
        fontsize=8,
        va="center",
    )
    right.annotate(
        results["memory"]["model"],
        (runs[-1]["windows"], runs[-1]["mb_above_loaded"]),
        (0, -20),
        textcoords="offset points",
        fontsize=8,
        ha="right",
    )
    right.set_xscale("log")
    counts = sorted({run["windows"] for run in runs})
    right.set_xticks(counts, [f"{count:,}" for count in counts])
    right.minorticks_off()
    right.margins(x=0.15)
    right.set_ylim(0, 1.2 * max(run["mb_above_loaded"] for run in (*runs, base)))
    right.set_xlabel("windows")
    right.set_ylabel("peak memory above\nthe loaded model (MB)")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def short(row: dict[str, Any]) -> str:
    model = Path(row["model"]).name.replace(", random weights", "")
    tokens = "" if row["length"] == 128 else f" of {row['length']} tokens"
    return f"{model}, {row['windows']:,} windows{tokens}"


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "results" / "results.json"
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE.parent / "docs" / "performance.png"
    draw(json.loads(source.read_text())).savefig(target, dpi=200)
    print(target)


if __name__ == "__main__":
    main()
