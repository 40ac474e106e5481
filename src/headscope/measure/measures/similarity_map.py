"""Similarity map (Fig. 12): the sum of N over windows."""

from headscope.measure.declaration import Measure, State

MEASURE = Measure(states={"similarity_sum": State("LHSS", "float64", symmetric=True)})
