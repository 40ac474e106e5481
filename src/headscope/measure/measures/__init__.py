"""One file a measure: the states it keeps, how a batch adds to them, and all that is known of the columns they give.

Every state is a sum, so two states merge by adding. A new measure is one new file and its name in this list.
"""

from importlib import import_module

from headscope.measure.declaration import Measure

NAMES = (
    "location",
    "distance",
    "repeats",
    "sentences",
    "focal",
    "attention",
    "lines",
    "blocks",
    "given_distance",
    "focal_chance",
    "signal",
    "spectrum",
    "mean_vector",
    "carried",
    "similarity_map",
)
"""In the order of their columns in the tables."""

MEASURES: tuple[Measure, ...] = tuple(import_module(f"{__name__}.{name}").MEASURE for name in NAMES)
