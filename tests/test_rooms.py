"""The road of the data is the order of the packages: each imports only from those above it, lazily or not."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import headscope

ROOT = Path(headscope.__file__).parent
ROOMS = (
    "corpus",
    "model",
    "measure",
    "one_text",
    "segments",
    "run",
    "folder",
    "insight",
    "show",
    "jobs",
    "server",
    "cli",
)
"""In the order of the road. What lies beside them, errors and the like, every room may use."""
VERBS = ("study", "inspect", "compare", "segment", "ablate", "doctor", "merge", "verify", "read", "load")


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in ("headscope", *parts) if part != "__init__")


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(path: Path, types_too: bool) -> set[str]:
    """The modules of headscope that a file imports, wherever in it; those for types alone only if asked for."""
    found: set[str] = set()
    for node in walk(ast.parse(path.read_text("utf-8")), types_too):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            module = node.module or ""
            found |= {
                f"{module}.{alias.name}" if f"{module}.{alias.name}" in MODULES else module for alias in node.names
            }
    return found & MODULES.keys()


def walk(node: ast.AST, types_too: bool):
    yield node
    for child in ast.iter_child_nodes(node):
        for_types = isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"
        if types_too or not for_types:
            yield from walk(child, types_too)


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ROOMS else None


def test_every_package_is_a_room_with_its_place_on_the_road() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages == set(ROOMS)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_rooms_above_its_own(module: str) -> None:
    if module in ("headscope", "headscope.__main__"):
        return
    room = room_of(module)
    here = ROOMS.index(room) if room else -1
    for other in imported(MODULES[module], types_too=True):
        there = room_of(other)
        assert (ROOMS.index(there) if there else -1) <= here, f"{module} imports {other}, which comes after it"


def test_no_two_modules_import_each_other_by_any_way() -> None:
    graph = {name: imported(path, types_too=False) - {name} for name, path in MODULES.items() if name != "headscope"}
    list(TopologicalSorter(graph).static_order())


def test_no_module_hides_a_public_verb() -> None:
    """`headscope.study` must be the function; the command line has a file a verb, two steps down."""
    assert not [name for name in MODULES if name.removeprefix("headscope.") in VERBS]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_says_what_it_is(module: str) -> None:
    assert ast.get_docstring(ast.parse(MODULES[module].read_text("utf-8"))), f"{module} has no docstring"
