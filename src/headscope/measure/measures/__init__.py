"""One file a measure: the states it keeps, how a batch adds to them, and the table columns they give.

Every state is a sum, so two states merge by adding. A new measure is one new file and its name in `MEASURES`.
"""

from headscope.measure.measures import (
    attention,
    blocks,
    distance,
    focal,
    lines,
    location,
    repeats,
    sentences,
    similarity_map,
    spectrum,
)
from headscope.measure.measures.base import Measure, State

MEASURES: tuple[Measure, ...] = (
    location,
    distance,
    repeats,
    sentences,
    focal,
    attention,
    lines,
    blocks,
    similarity_map,
    spectrum,
)
"""In the order of their columns in the tables."""

STATES: dict[str, State] = {name: state for measure in MEASURES for name, state in measure.STATES.items()}
"""Of all measures, by name."""
