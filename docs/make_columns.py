"""Writes docs/columns.md from what the measures declare: python docs/make_columns.py"""

from __future__ import annotations

from pathlib import Path

from headscope.corpus.traits import IMAGE, TEXT
from headscope.measure.catalogue import columns
from headscope.measure.declaration import Column

HEAD = """# The columns of `heads` and `layers`

Made from the declarations of the measures (`src/headscope/measure/measures/`) by `docs/make_columns.py`; in Python,
`headscope.columns()` has the same. A share is a number from 0 to 1. [The method](method.md) says how everything is
defined.

| column | unit | chance beside it | what it is |
|---|---|---|---|
"""


def page() -> str:
    of_texts, of_images = columns(TEXT), columns(IMAGE)
    rows = [_row(column, "") for column in of_texts.values()]
    rows += [
        _row(column, "Of images: ")
        for name, column in of_images.items()
        if name not in of_texts or of_texts[name].definition != column.definition
    ]
    return HEAD + "\n".join(rows) + "\n"


def _row(column: Column, before: str) -> str:
    where = "" if column.heads else " Only in `layers`."
    chance = f"`{column.chance}`" if column.chance else ""
    return f"| `{column.name}` | {column.unit} | {chance} | {before}{column.definition}{where} |"


if __name__ == "__main__":
    Path(__file__).with_name("columns.md").write_text(page(), "utf-8")
