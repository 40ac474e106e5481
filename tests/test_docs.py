"""What the documentation says follows from the code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_the_list_of_columns_is_that_of_the_measures() -> None:
    spec = importlib.util.spec_from_file_location("make_columns", DOCS / "make_columns.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (DOCS / "columns.md").read_text("utf-8") == module.page(), "run: python docs/make_columns.py"


def test_the_rules_of_roles_are_those_of_the_code() -> None:
    spec = importlib.util.spec_from_file_location("make_roles", DOCS / "make_roles.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (DOCS / "roles.md").read_text("utf-8") == module.page(), "run: python docs/make_roles.py"
