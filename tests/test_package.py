"""What the package offers: these names, no others, at no cost until one is used."""

from __future__ import annotations

import inspect
import subprocess
import sys
from functools import cached_property

import pytest

import headscope

NAMES = [
    "Ablation",
    "Check",
    "Comparison",
    "Diagnosis",
    "HeadscopeError",
    "Model",
    "Options",
    "Segmentation",
    "Study",
    "View",
    "ablate",
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
    "silenced",
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


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_shown_by_an_example(name: str) -> None:
    assert ">>> " in getattr(headscope, name).__doc__


@pytest.mark.parametrize("name", ["Comparison", "Model", "Segmentation", "Study", "View"])
def test_what_an_object_has_is_said(name: str) -> None:
    kind = getattr(headscope, name)
    for member in vars(kind) | {key: value for base in kind.__mro__[1:-1] for key, value in vars(base).items()}:
        found = inspect.getattr_static(kind, member)
        described = isinstance(found, (property, cached_property)) or inspect.isfunction(found)
        if described and not member.startswith("_"):
            assert inspect.getdoc(found), f"{name}.{member}"


def test_a_name_that_is_not_there_is_missed_by_name() -> None:
    with pytest.raises(AttributeError, match="'headscope' has no attribute 'studdy'"):
        _ = headscope.studdy


def test_importing_the_package_imports_nothing_that_takes_long() -> None:
    slow = {"torch", "transformers", "pandas", "numpy", "pyarrow", "matplotlib"}
    code = f"import sys, headscope; print(sorted({slow} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.slow
def test_measuring_takes_no_memory_for_tables() -> None:
    """They are made when all is measured, and what was measured is let go."""
    code = "import sys, headscope; headscope.study; print(sorted({'pandas', 'pyarrow'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
