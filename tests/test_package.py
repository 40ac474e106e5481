"""What the package offers: these names, no others, at no cost until one is used."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import headscope

NAMES = [
    "Check",
    "Comparison",
    "Diagnosis",
    "HeadscopeError",
    "Model",
    "Options",
    "Segmentation",
    "Study",
    "View",
    "claims",
    "columns",
    "compare",
    "doctor",
    "inspect",
    "load",
    "merge",
    "nulls",
    "read",
    "read_texts",
    "sample_texts",
    "segment",
    "study",
    "study_images",
    "verify",
]


def test_these_names_are_exported_and_no_others() -> None:
    assert headscope.__all__ == NAMES
    assert dir(headscope) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_name_can_be_imported_and_says_what_it_is(name: str) -> None:
    exported = getattr(headscope, name)
    assert exported.__name__ == name
    # A dataclass that has no docstring is given its signature for one.
    assert inspect.getdoc(exported)
    assert not exported.__doc__.startswith(f"{name}(")


def test_a_name_that_is_not_there_is_missed_by_name() -> None:
    with pytest.raises(AttributeError, match="'headscope' has no attribute 'studdy'"):
        _ = headscope.studdy


def test_importing_the_package_imports_nothing_that_takes_long() -> None:
    slow = {"torch", "transformers", "pandas", "numpy", "pyarrow", "numba", "matplotlib"}
    code = f"import sys, headscope; print(sorted({slow} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
