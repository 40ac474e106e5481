"""Whole jobs, from the model to the result: what `headscope.study`, `inspect` and `merge` do."""
