"""What is measured: a model by name, A and Z of its heads while it runs, and the proof that they are right."""

import importlib
import sys
import warnings

if "ipykernel" in sys.modules:
    # In a notebook without widgets the bars of other libraries warn when they are imported; ours need none.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("tqdm.auto")
