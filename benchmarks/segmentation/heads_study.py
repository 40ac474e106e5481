"""Which heads carry topic boundaries: a study with labels, used for nothing but to be read."""

from __future__ import annotations

from typing import Any

import numpy as np

from headscope.segments.space import contrast, part_of, unit

SHOWN = 8


def heads_table(model: Any, documents: list[Any]) -> list[str]:
    """For each head of the layers used: how often two neighbouring sentences of one segment are more alike than two on
    both sides of a boundary (AUC; 0.5: it tells nothing), and the contrast that is seen without labels."""
    found, seen = [], []
    for sentences, lengths in documents:
        vectors = model.vectors(sentences).heads
        boundary = np.isin(np.arange(1, len(sentences)), np.cumsum(lengths)[:-1])
        layers, heads = vectors.shape[1:3]
        areas, contrasts = np.zeros((layers, heads)), np.zeros((layers, heads))
        for layer in range(layers):
            for head in range(heads):
                _, (placed,) = part_of([vectors[:, layer, head]])
                alike = (unit(placed)[1:] * unit(placed)[:-1]).sum(1)
                areas[layer, head] = (alike[~boundary][:, None] > alike[boundary]).mean()
                contrasts[layer, head] = contrast([placed])
        found.append(areas)
        seen.append(contrasts)
    area, without = np.mean(found, 0), np.mean(seen, 0)
    order = np.argsort(-area, axis=None)
    rank = np.argsort(np.argsort(-without, axis=None))
    correlation = np.corrcoef(np.argsort(np.argsort(area, axis=None)), -rank)[0, 1]
    lines = [
        f"heads that carry boundaries: {len(documents)} synthetic documents of one category each, with labels, "
        f"layers {model.layers[0]} to {model.layers[-1]}",
        "",
        "| layer | head | AUC | contrast, without labels | its rank |",
        "|---|---|---|---|---|",
    ]
    for place in [*order[:SHOWN], order[-1]]:
        layer, head = divmod(int(place), area.shape[1])
        lines.append(
            f"| {model.layers[layer]} | {head} | {area[layer, head]:.3f} | {without[layer, head]:.2f} | "
            f"{rank[place] + 1} of {area.size} |"
        )
    return [*lines, "", f"Rank correlation of AUC and contrast over all {area.size} heads: {correlation:.2f}", ""]
