"""What the viewer's script is given of a study: its table of heads, beside what it is held against, and its sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.null_kinds import CALLED
from headscope.errors import HeadscopeError
from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.insight.beside import ends_of, of_null
from headscope.insight.matching import nearest_heads
from headscope.insight.reach import windows_at
from headscope.measure.catalogue import columns
from headscope.measure.declaration import Column
from headscope.show.figures.role_marks import marked
from headscope.show.numbers import shown
from headscope.show.viewer.packing import ALIKE, deflated
from headscope.speaking import option
from headscope.wording import model_label

SUMS = ("similarity_sum", "high_count", "attention_sum")
"""The arrays that stand in for N, for high pairs and for A of one text."""
WIDEST = 2**16 - 1


def pack_study(study: StudyFolder) -> dict[str, Any]:
    """Every column of its heads; numbers as tables show them, and as they are, to sort by."""
    table = study.heads
    ends = ends_of(study, "heads")
    beside: dict[str, str] = {"chance": "chance", "given_distance": "by distance"}
    beside |= {null: CALLED[null] for null in study.nulls}
    return {
        "layers": list(study.manifest.layers),
        "heads": study.manifest.model.heads,
        "roles": table["role"].tolist(),
        "hasRoles": bool(table["role"].any()),
        "marks": marked(table["role"]),
        "beside": [{"name": name, "label": label} for name, label in beside.items()],
        "columns": [
            _column(study, term, ends.get(name))
            for name, term in columns(study.manifest.gives).items()
            if name in table and term.topic != "run"
        ],
        "alike": nearest_heads(table, ALIKE),
    }


def pack_sums(study: StudyFolder) -> dict[str, Any]:
    """The maps of every head, means over windows, in 16 bits each; without the diagonal, which has no pairs."""
    if not has_sums(study):
        raise HeadscopeError(
            f"{study.folder} keeps no maps of its heads; run the study again with {option('maps', 'all')}."
        )
    arrays = [np.asarray(study.arrays[name]) / windows_at(study) for name in SUMS]
    layers, heads, size = study.size
    packed = [[_maps([array[place, head] for array in arrays]) for head in range(heads)] for place in range(layers)]
    return {
        "kind": "sums",
        "model": model_label(study.model_name),
        "about": f"{model_label(study.model_name)} · all {study.extent}, added up · by position in the window",
        "layers": list(study.manifest.layers),
        "heads": heads,
        "size": size,
        "threshold": study.manifest.options.threshold,
        "similarity": study.manifest.options.similarity,
        "scales": [[scales for scales, _ in row] for row in packed],
        "measured": [[content for _, content in row] for row in packed],
    }


def has_sums(study: StudyFolder) -> bool:
    try:
        return all(name in study.arrays for name in SUMS)
    except AbsentError:
        return False


def _maps(maps: list[NDArray[Any]]) -> tuple[list[tuple[float, float]], str]:
    """The lowest number and the step of each map, and all maps as whole numbers."""
    scales, whole = [], []
    for each in maps:
        low, high = float(each.min()), float(each.max())
        step = (high - low) / WIDEST or 1.0
        scales.append((low, step))
        whole.append(np.rint((each - low) / step).astype("<u2").reshape(-1))
    return scales, deflated(np.concatenate(whole))


def _column(study: StudyFolder, term: Column, ends: tuple[NDArray[Any], NDArray[Any]] | None) -> dict[str, Any]:
    table = study.heads
    values = table[term.name].to_numpy(np.float64)
    against = {
        by: table[name].to_numpy(np.float64)
        for by, name in (("chance", term.chance), ("given_distance", term.given_distance))
        if name in table
    }
    against |= {str(null): of_null(study, null, "heads", term.name) for null in study.nulls}
    return {
        "name": term.name,
        "label": term.label,
        "unit": term.unit,
        "definition": term.definition,
        "overview": term.overview,
        "sorts": term.overview or term.profile,
        "values": [None if np.isnan(value) else float(f"{value:.6g}") for value in values],
        "texts": [shown(value, term) for value in values],
        "intervals": [""] * len(values)
        if ends is None
        else [
            "" if np.isnan(low) else f"{shown(low, term)} to {shown(high, term)}"
            for low, high in zip(*ends, strict=True)
        ],
        "beside": {
            by: ["" if np.isnan(value) else shown(value, term) for value in found] for by, found in against.items()
        },
    }
