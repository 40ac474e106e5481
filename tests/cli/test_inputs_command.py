"""Texts and options as they are typed: tables with --field, samples, short texts, and typos."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

TEXTS = [f"Note {day}. The tide of day {day} was low, and the gulls came. Who fed the gulls?" for day in range(20)]


def test_the_command_reads_a_column_of_a_table(call, tiny_folder: Path, tmp_path: Path) -> None:
    pd.DataFrame({"day": range(20), "note": TEXTS}).to_csv(tmp_path / "notes.csv", index=False)
    asked = ("study", tmp_path / "notes.csv", "-m", tiny_folder, "--length", 16, "-o", tmp_path / "s", "--no-figures")
    code, _, err = call(*asked)
    assert code == 2
    assert "no column 'text', only day, note; name the right one with --field." in err
    assert err.count("\n") == 1
    code, out, _ = call(*asked, "--field", "note")
    assert code == 0
    assert "from 20 texts" in out
