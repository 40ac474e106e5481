"""`headscope nulls` and `headscope study --nulls`, as they are typed."""

from __future__ import annotations

from pathlib import Path

import pytest

import headscope


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("texts") / "notes.txt"
    lines = (f"Day {day}. The tide of day {day} was low, and the gulls came. Who fed the gulls?" for day in range(40))
    file.write_text("\n".join(lines))
    return file


def test_a_study_with_nulls_says_which_heads_have_a_role(call, notes: Path, tiny_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "s"
    asked = ("--model", tiny_folder, "--out", out, "--length", "24", "--short", "pad", "--lines", "--no-figures")
    code, told, _ = call("study", notes, *asked, "--nulls")
    assert code == 0
    assert "None of 12 heads has a role" in told
    for file in ("roles.csv", "roles.parquet", "beside.csv", "nulls/tokens/study.json", "nulls/weights/heads.csv"):
        assert (out / file).is_file()


def test_nulls_of_a_study_that_is_there(call, notes: Path, tiny_folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = tmp_path / "s"
    asked = ("--model", tiny_folder, "--out", out, "--length", "24", "--short", "pad", "--lines", "--no-figures", "-q")
    assert call("study", notes, *asked)[0] == 0
    code, told, _ = call("nulls", out, "--max-windows", "20")
    assert code == 0
    assert "tokens 20, sentences 20, weights 20" in told
    assert max(map(len, told.splitlines())) <= 80 or str(out) in told
    assert {one.windows for one in headscope.read(out).nulls.values()} == {20}
    code, _, error = call("nulls", out)
    assert code == 2
    assert "--overwrite" in error


def test_a_study_that_is_replaced_has_new_nulls(call, notes: Path, tiny_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "s"
    asked = ("--model", tiny_folder, "--out", out, "--short", "pad", "--lines", "--no-figures", "-q", "--nulls")
    assert call("study", notes, *asked, "--length", "24")[0] == 0
    assert call("study", notes, *asked, "--length", "20", "--overwrite")[0] == 0
    assert list(headscope.read(out).nulls) == ["tokens", "sentences", "weights"]


def test_texts_that_moved_can_be_named(call, notes: Path, tiny_folder: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.txt"
    moved.write_bytes(notes.read_bytes())
    out = tmp_path / "s"
    asked = ("--model", tiny_folder, "--out", out, "--length", "24", "--short", "pad", "--lines", "--no-figures", "-q")
    assert call("study", moved, *asked)[0] == 0
    moved.unlink()
    code, _, error = call("nulls", out, "-q")
    assert code == 2
    assert "give them: headscope nulls FOLDER TEXTS..." in error
    code, _, error = call("nulls", out, notes, "--lines", "--only", "tokens", "-q")
    assert (code, error) == (0, "")


def test_what_has_no_nulls_is_refused_in_one_sentence(call, notes: Path, tmp_path: Path) -> None:
    for arguments in (
        ("nulls", tmp_path / "nowhere"),
        ("nulls", notes),
        ("study", "-", "--nulls", "--out", tmp_path / "a"),
        ("study", notes, "--nulls", "--shard", "1/2", "--out", tmp_path / "b"),
        ("study", notes, "--maps", "some", "--out", tmp_path / "c"),
    ):
        code, _, error = call(*arguments)
        assert code == 2, arguments
        assert len(error.strip().splitlines()) == 1, error
        assert "Traceback" not in error


def test_a_study_without_maps_is_small_whole_and_drawn_as_far_as_it_goes(
    call, notes: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    sizes = {}
    for maps in ("all", "location", "none"):
        out = tmp_path / maps
        asked = ("--model", tiny_folder, "--out", out, "--length", "24", "--short", "pad", "--lines", "-q")
        assert call("study", notes, *asked, "--maps", maps)[0] == 0
        assert call("verify", out)[0] == 0
        assert (out / "report.html").is_file()
        sizes[maps] = (out / "arrays.safetensors").stat().st_size
    assert sizes["all"] > sizes["location"] > sizes["none"]
    assert (tmp_path / "location" / "figures" / "fig10.png").is_file()
    assert not (tmp_path / "none" / "figures" / "fig10.png").exists()
    whole, without = headscope.read(tmp_path / "all"), headscope.read(tmp_path / "none")
    assert whole.heads.equals(without.heads)
    assert call("merge", tmp_path / "none", tmp_path / "none", "--out", tmp_path / "twice")[0] == 2
