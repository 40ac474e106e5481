"""Texts as a Python user has them: what is taken, and what is refused instead of being iterated by accident."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from headscope.corpus.texts import as_texts, read_texts
from headscope.errors import HeadscopeError

TEXTS = ["The kettle sang.", "Rain fell on the harbour."]


def strings(texts, **how) -> list[str]:
    return [text.text for text in as_texts(texts, **how)]


class Rows:
    """What headscope sees of a `datasets.Dataset`."""

    def __init__(self, columns: list[str] | None, rows: list[dict]) -> None:
        self.column_names = columns
        self._rows = rows

    def __iter__(self):
        return iter(self._rows)


class DatasetDict(dict):
    @property
    def column_names(self) -> dict:
        return {name: part.column_names for name, part in self.items()}


FRAME = pd.DataFrame({"label": [0, 1], "text": TEXTS, "review": ["a", "b"]}, index=["first", "second"])
ROWS = [{"id": number, "text": text} for number, text in enumerate(TEXTS)]


@pytest.mark.parametrize(
    "texts",
    [
        TEXTS,
        tuple(TEXTS),
        iter(TEXTS),
        (text for text in TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        pd.Series(TEXTS),
        pd.Series(TEXTS, dtype="string"),
        pd.Series(TEXTS, dtype="category"),
        pd.Index(TEXTS),
        FRAME,
        FRAME["text"],
        ROWS,
        Rows(["id", "text"], ROWS),
        Rows(None, ROWS),
        dict(enumerate(TEXTS)).values(),
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_strings_tables_rows_and_data_sets_are_taken(texts):
    assert strings(texts) == TEXTS


def test_another_column_or_field_is_named_by_field():
    assert strings(FRAME, field="review") == ["a", "b"]
    assert strings([{"review": "a"}], field="review") == ["a"]
    assert strings(Rows(["review"], [{"review": "a"}]), field="review") == ["a"]


def test_paths_take_a_field_too(tmp_path: Path):
    (tmp_path / "a.csv").write_text("review\nGood.\n")
    assert strings(tmp_path / "a.csv", field="review") == ["Good."]
    assert strings([tmp_path / "a.csv"], field="review") == ["Good."]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (FRAME.drop(columns="text"), r"The DataFrame has no column 'text', only label, review; .* with field\."),
        (pd.DataFrame({0: TEXTS}), "no column 'text', only <0>;"),
        (pd.DataFrame([["a", "b"]], columns=["text", "text"]), "several columns 'text'"),
        (Rows(["label", "review"], []), "The Rows has no column 'text', only label, review;"),
        (Rows(None, [{"review": "a"}]), "text 0 has no field 'text', only review;"),
        (DatasetDict(train=Rows(["text"], ROWS), test=Rows(["text"], ROWS)), r"splits train, test; .*texts\['train'\]"),
        ({"a": "one"}, "texts is of type dict; give a list"),
        ({"one", "two"}, "texts is of type set"),
        ("a text", "texts is of type str"),
        (b"a text", "texts is of type bytes"),
        (5, "texts is of type int"),
        (np.array("a text"), "texts is of type ndarray"),
        ([b"a text"], "text 0 is of type bytes"),
        ([1.5], "text 0 is of type float"),
        (range(3), "text 0 is of type int"),
        (["a", None], r"text 1 is missing \(None\)"),
        (pd.Series(["a", np.nan]), r"text 1 is missing \(nan\)"),
        (pd.Series(["a", None], dtype="string", index=["x", "y"]), r"text 1 \(index 'y'\) is missing"),
        (pd.Series([pd.NA]), "text 0 is missing"),
        (pd.DataFrame({"text": ["a", None]}, index=[7, 9]), r"row 1 \(index 9\) is missing"),
        ([{"text": "a"}, {"body": "b"}], "text 1 has no field 'text', only body;"),
        ([{"text": None}], "text 0, field 'text', is missing"),
        ([{"text": 5}], "text 0, field 'text', is of type int"),
        (["\ud800"], "lone surrogate"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_name_and_place(texts, message):
    with pytest.raises(HeadscopeError, match=message) as caught:
        strings(texts)
    assert "\n" not in str(caught.value)


def test_the_name_of_a_file_is_not_taken_for_a_text(tmp_path: Path):
    file = tmp_path / "reviews.csv"
    file.write_text("text\nGood.\n")
    with pytest.raises(HeadscopeError, match=r"text 0 is the name of a file, .*reviews\.csv; give "):
        strings([str(file)])
    with file.open() as opened, pytest.raises(HeadscopeError, match="open file; give its Path"):
        strings(opened)
    assert strings(["I wrote reviews.csv"]) == ["I wrote reviews.csv"]


def test_a_field_of_files_belongs_to_where_they_are_read(tmp_path: Path):
    (tmp_path / "a.txt").write_text("A text.")
    with pytest.raises(HeadscopeError, match="field is for tables and dicts"):
        as_texts(read_texts([tmp_path / "a.txt"]), field="review")
