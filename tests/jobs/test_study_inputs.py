"""A study of the inputs that people have is the study of the same strings in a list."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pandas as pd
import pytest
from runs import digests_of

import headscope
from headscope.errors import HeadscopeError

TEXTS = [f"Note {day}. The tide of day {day} was low, and the gulls came. Who fed the gulls?" for day in range(20)]


def measured(model, texts, out: Path, **more):
    return headscope.study(model, texts, out=out, length=16, progress=False, **more)


def test_a_table_in_python_or_in_a_file_gives_the_bytes_of_the_list(tiny, tmp_path: Path) -> None:
    frame = pd.DataFrame({"day": range(20), "text": TEXTS})
    with open(tmp_path / "notes.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["day", "note"], *enumerate(TEXTS)])
    (tmp_path / "notes.tsv.gz").write_bytes(
        gzip.compress(frame.rename(columns={"text": "note"}).to_csv(sep="\t", index=False).encode())
    )
    expected = measured(tiny, TEXTS, tmp_path / "list")
    for name, texts, more in (
        ("series", frame["text"], {}),
        ("frame", frame, {}),
        ("renamed", frame.rename(columns={"text": "note"}), {"field": "note"}),
        ("dicts", frame.to_dict("records"), {}),
        ("csv", headscope.read_texts(tmp_path / "notes.csv", field="note"), {}),
        ("tsv", tmp_path / "notes.tsv.gz", {"field": "note"}),
    ):
        found = measured(tiny, texts, tmp_path / name, **more)
        assert found.manifest.source.sha256 == expected.manifest.source.sha256, name
        assert found.heads.equals(expected.heads), name
        assert digests_of(found.folder)["heads.parquet"] == digests_of(expected.folder)["heads.parquet"]


def test_a_frame_without_the_column_leaves_no_folder(tiny, tmp_path: Path) -> None:
    with pytest.raises(HeadscopeError, match="no column 'text', only note"):
        measured(tiny, pd.DataFrame({"note": TEXTS}), tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_nulls_take_the_same_table(tiny, tmp_path: Path) -> None:
    frame = pd.DataFrame({"note": TEXTS})
    study = measured(tiny, frame, tmp_path / "s", field="note")
    found = headscope.nulls(study, tiny, frame, field="note", only=["tokens"], progress=False)
    assert list(found.nulls) == ["tokens"]
