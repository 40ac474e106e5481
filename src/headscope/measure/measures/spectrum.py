"""Value spectrum: the histogram of N over pairs. A gap about the threshold justifies it."""

from headscope.measure.declaration import Measure, State

MEASURE = Measure(states={"similarity_histogram": State("LHV", "int64")})
