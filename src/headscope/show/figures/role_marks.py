"""How roles are marked in figures and on pages: a colour and a letter each, so that colour is not all there is."""

from __future__ import annotations

from collections.abc import Iterable

from headscope.insight.roles import ROLES

MARKS: dict[str, tuple[str, str]] = {
    "previous token": ("#0072b2", "P"),
    "next token": ("#2f8cc0", "N"),
    "repeated token": ("#d55e00", "R"),
    "itself": ("#cc79a7", "I"),
    "sentence": ("#009e73", "S"),
    "focal": ("#e69f00", "F"),
    "separator, carrying": ("#5e3c99", "C"),
    "separator": ("#3f3f3f", "x"),
    "near": ("#b8a400", "n"),
    "broad": ("#8c510a", "b"),
}
"""Role -> colour, letter. The colours are told apart with any kind of colour vision (after Okabe and Ito)."""
assert tuple(MARKS) == ROLES


def marked(roles: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The marks of those roles that occur, in the order of the rules."""
    there = set(roles)
    return {role: mark for role, mark in MARKS.items() if role in there}
