"""How well a text is cut: headscope against what people use already, as the field measures it.

    pip install 'headscope[bench-segmentation]'
    python benchmarks/segmentation [--quick] [--model NAME ...] [--documents N] [--out FOLDER]

Pk and WindowDiff (windows of half the mean reference segment), F1 of boundaries; means over documents, and 95 %
intervals of paired differences. Every contender sees the same sentences and, in one table each, the same knowledge of
the number of segments. Writes results-MODEL.md and results-MODEL.json. Data that are not at hand are left out, which
is said.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from contenders import WITHOUT_MODEL, lengths_of
from cost import cost_of
from documents import KYOTO, WIKI, Document, sections, synthetic
from heads_study import heads_table
from sentence_level import sentence_table

import headscope
from headscope.corpus.alone import Alone
from headscope.model.capture import Capture
from headscope.model.loading import Model
from headscope.segments.change_points import Sums, cut_into, cut_with_penalty
from headscope.segments.how_many import penalty_of
from headscope.segments.scoring import scores_of
from headscope.segments.sentence_vectors import Reader, Vectors, last_third
from headscope.segments.space import space_of

OURS = ("pooled", "heads", "both")
STATISTICS = ("pk", "window_diff", "f1")


class Vectorised:
    """The vectors of documents under one model; `cut` is what `headscope.segment` does with them."""

    def __init__(self, model: Model) -> None:
        self._capture = Capture(model.network)
        self._model = model
        self.layers = last_third(self._capture.measurable)

    def vectors(self, sentences: list[str]) -> Vectors:
        model = self._model
        alone = Alone(model.tokenizer, min(512, model.longest or 512), model.embedding_rows)
        ids = alone.ids(sentences)
        some = [place for place, tokens in enumerate(ids) if tokens][:8]
        reader = Reader(self._capture, alone, self.layers, "both", alone.group(ids, some))
        return reader.read(ids, lambda count: None)


def cut(vectors: Vectors, using: str, segments: int | None) -> list[int]:
    heads, pooled = vectors.heads, vectors.pooled
    if using == "pooled":
        heads = heads[:, :0]
    elif using == "heads":
        pooled = pooled[:, :0]
    chosen = Vectors(heads, pooled, vectors.known)
    placed = space_of([chosen], whole=True).place(chosen)
    sums = Sums(placed)
    found = cut_with_penalty(sums, penalty_of([placed], len(placed))) if segments is None else cut_into(sums, segments)
    return lengths_of(found, len(vectors))


def measured(documents: list[Document], model: Vectorised, told: Callable[[str], None]) -> dict[str, Any]:
    """Knowledge of the number -> contender -> a row of Pk, WindowDiff and F1 for each document."""
    mean_length = sum(len(one.sentences) for one in documents) / sum(len(one.lengths) for one in documents)
    found: dict[str, dict[str, list[Any]]] = {"known": {}, "unknown": {}}
    for number, (sentences, lengths) in enumerate(documents):
        vectors = model.vectors(sentences)
        for knowledge, rows in found.items():
            segments = len(lengths) if knowledge == "known" else None
            for name, contender in WITHOUT_MODEL.items():
                rows.setdefault(name, []).append(scores_of(contender(sentences, segments, mean_length), lengths))
            for using in OURS:
                rows.setdefault(using, []).append(scores_of(cut(vectors, using, segments), lengths))
        if number % 10 == 9:
            told(f"  {number + 1} of {len(documents)} documents")
    return found


def interval(one: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
    """Mean of paired differences, and its 95 % interval (Student's t over documents)."""
    difference = one - other
    quantile = _student(len(difference) - 1)
    half = quantile * difference.std(ddof=1) / np.sqrt(len(difference))
    return float(difference.mean()), float(difference.mean() - half), float(difference.mean() + half)


def _student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t, by Cornish and Fisher's expansion: right to 0.001 from 8 on."""
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def table(kinds: dict[str, Any], statistic: str) -> list[str]:
    column = STATISTICS.index(statistic)
    lines = [
        "| | " + " | ".join(f"{kind} ({len(found['known']['both'])})" for kind, found in kinds.items()) + " | mean |"
    ]
    lines.append("|---" * (len(kinds) + 2) + "|")
    for name in (*WITHOUT_MODEL, *OURS):
        cells, means = [], []
        for found in kinds.values():
            values = [float(np.mean([row[column] for row in found[what][name]])) for what in ("known", "unknown")]
            means.append(values)
            cells.append(" / ".join(f"{value:.3f}"[1:] if value < 1 else "1.00" for value in values))
        mean = " / ".join(f"{value:.3f}"[1:] for value in np.mean(means, 0))
        lines.append(f"| {name} | {' | '.join(cells)} | {mean} |")
    return lines


def differences(kinds: dict[str, Any]) -> list[str]:
    """Paired, over the documents of each kind; negative: the first is better."""
    lines = ["| Pk, paired | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    for one, other in (("both", "pooled"), ("heads", "pooled"), ("both", "C99"), ("both", "TextTiling (nltk)")):
        for what in ("known", "unknown"):
            cells = []
            for found in kinds.values():
                pk = [np.array([row[0] for row in found[what][name]]) for name in (one, other)]
                mean, low, high = interval(*pk)
                cells.append(f"{mean:+.3f} ({low:+.3f} to {high:+.3f})")
            lines.append(f"| {one} less {other}, {what} | {' | '.join(cells)} |")
    return lines


def documents_of(count: int, told: Callable[[str], None]) -> dict[str, list[Document]]:
    kinds = {}
    if WIKI.is_dir():
        every = sections()
        # Spread over the folder, whatever its order is.
        kinds["wiki sections"] = every[:: max(1, len(every) // count)][:count]
    else:
        told(f"left out: wiki sections, {WIKI} is not there")
    if KYOTO.is_file():
        kinds["synthetic"] = synthetic("reporting", count, seed=11)
        kinds["synthetic, one category"] = synthetic("reporting", count, seed=12, alike=True)
    else:
        told(f"left out: synthetic documents, {KYOTO} is not there")
    return kinds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", help="may be given several times; minilm")
    parser.add_argument("--documents", type=int, default=100, help="of each kind")
    parser.add_argument("--quick", action="store_true", help="6 documents of each kind, nothing else")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)

    def told(sentence: str) -> None:
        print(sentence, file=sys.stderr, flush=True)

    asked.out.mkdir(parents=True, exist_ok=True)
    kinds = documents_of(6 if asked.quick else asked.documents, told)
    for name in asked.model or ["minilm"]:
        loaded = headscope.load(name)
        model = Vectorised(loaded)
        found = {}
        for kind, documents in kinds.items():
            began = time.perf_counter()
            found[kind] = measured(documents, model, told)
            told(f"{name}, {kind}: {len(documents)} documents in {time.perf_counter() - began:.0f} s")
        lines = [f"# {Path(name).name}", ""]
        if found:
            for statistic in STATISTICS:
                lines += [f"{statistic}, number of segments known / unknown", "", *table(found, statistic), ""]
            lines += [*differences(found), ""]
        if not asked.quick:
            if KYOTO.is_file():
                lines += heads_table(model, synthetic("choosing", 20, seed=21, alike=True))
            lines += sentence_table(loaded)
            lines += cost_of(loaded)
        written = "\n".join(lines)
        print(written)
        file = asked.out / f"results-{Path(name).name}"
        file.with_suffix(".md").write_text(written + "\n", "utf-8")
        file.with_suffix(".json").write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main()
