"""One file a measure: the states it keeps, how a batch adds to them, and all that is known of the columns they give.

Every state is a sum, so two states merge by adding. A new measure is one new file and its name in `MEASURES`.
"""

from headscope.measure.declaration import Measure
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

MEASURES: tuple[Measure, ...] = tuple(
    module.MEASURE
    for module in (
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
)
"""In the order of their columns in the tables."""
