"""What a docstring shows is what happens."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import headscope

SOURCE = Path(headscope.__file__).parents[1]


def module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SHOWING = sorted(module_name(file) for file in SOURCE.rglob("headscope/**/*.py") if ">>> " in file.read_text("utf-8"))


@pytest.mark.parametrize("name", SHOWING)
def test_examples_in_docstrings_hold(name: str) -> None:
    # Imported here, not when tests are collected: most of these modules import torch.
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
