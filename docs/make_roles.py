"""Writes the table of rules in docs/roles.md from the rules themselves: python docs/make_roles.py"""

from __future__ import annotations

from pathlib import Path

from headscope.insight.roles import RULES

PAGE = Path(__file__).with_name("roles.md")
BEGIN, END = "<!-- rules: made by docs/make_roles.py -->\n", "<!-- end of rules -->\n"


def page() -> str:
    """The page with the rules as they are now."""
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    rows = [f"| {rule.role} | {rule} |" for rule in RULES]
    return before + BEGIN + "\n".join(["| role | rule |", "|---|---|", *rows]) + "\n" + END + after


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
