"""`headscope verify` finds what is wrong with a study folder, and finds nothing wrong with a right one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from runs import small_study
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

import headscope
from headscope.cli.app import app
from headscope.errors import HeadscopeError
from headscope.files import file_checksum
from headscope.folder.manifest import FORMAT, manifest_checksum
from headscope.model.loading import Model


@pytest.fixture(scope="module")
def sound(tiny: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_study(tiny, tmp_path_factory.mktemp("verify") / "s", max_windows=40).folder


@pytest.fixture
def study(sound: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(sound, tmp_path / "s"))


def wrong(folder: Path) -> dict[str, str]:
    return {check.what: check.problem for check in headscope.verify(folder) if check.problem is not None}


def sign(folder: Path, **fields: Any) -> None:
    """Make the checksums right again, as a careful forger would."""
    path = folder / "study.json"
    manifest = json.loads(path.read_text())
    manifest["files"] = {name: file_checksum(folder / name) for name in manifest["files"]}
    changed = manifest | fields
    path.write_text(json.dumps(changed | {"checksum": manifest_checksum(changed)}))


def spoil(folder: Path, change: Callable[[dict[str, np.ndarray]], None]) -> None:
    """Counts are widened first: the narrow type that they are kept in would wrap around."""
    arrays = load_file(folder / "arrays.safetensors")
    arrays |= {name: array.astype(np.int64) for name, array in arrays.items() if array.dtype.kind == "u"}
    change(arrays)
    save_file(arrays, folder / "arrays.safetensors")
    sign(folder)


def test_a_sound_study_has_nothing_wrong(sound: Path) -> None:
    assert wrong(sound) == {}
    assert len(headscope.verify(sound)) == 11
    assert headscope.read(sound).manifest.model.carried_by == "projection"


@pytest.mark.parametrize(
    "options",
    [
        {"special": "drop"},
        {"layers": (0, 2)},
        {"short": "pad", "texts": ["One. Two, three! Four?"], "max_windows": None},
        {"shard": "1/2", "max_windows": 2000},
    ],
)
def test_every_kind_of_study_is_found_sound(tiny: Model, tmp_path: Path, options: dict[str, Any]) -> None:
    assert wrong(small_study(tiny, tmp_path / "s", **{"max_windows": 24, **options}).folder) == {}


@pytest.mark.parametrize(
    "name",
    [
        *("arrays.safetensors", "heads.csv", "heads.parquet", "layers.csv", "layers.parquet"),
        *("groups.safetensors", "intervals.csv", "intervals.parquet"),
        *("example.json", "example.safetensors"),
    ],
)
def test_every_altered_or_missing_file_is_noticed(study: Path, name: str) -> None:
    content = bytearray((study / name).read_bytes())
    content[len(content) // 2] ^= 4
    (study / name).write_bytes(content)
    assert wrong(study)["files and their checksums"] == f"{name} is not what it was when the study was finished"
    (study / name).unlink()
    assert wrong(study)["files and their checksums"] == f"{name} is missing"


@pytest.mark.parametrize(
    ("change", "what", "problem"),
    [
        (lambda a: a.update(high_count=np.ones((3, 4, 32, 32), int).cumsum(2)), "symmetric maps", "is not symmetric"),
        (lambda a: a.update(similarity_sum=np.ones((3, 4, 32, 32))), "symmetric maps", "not 0 on its diagonal"),
        (lambda a: a["windows"].__iadd__(1), "sums and counts", "other than the 40 windows"),
        (lambda a: a["high_count"].__isub__(99), "sums and counts", "high_count counts below zero"),
        (lambda a: a["attention_sum"].__setitem__((0, 0, 0, 0), np.nan), "sums and counts", "NaN or infinity"),
        (lambda a: a["attention_sum"].__imul__(2), "sums and counts", "other attention than attention_sum"),
        (lambda a: a["attention_sum_without_lines"].__imul__(3), "sums and counts", "that attention_sum does not"),
        (lambda a: a["attention_sum_without_lines"].__isub__(1), "sums and counts", "that attention_sum does not"),
        (lambda a: a.update(attention_sum_without_lines=a["attention_sum"]), "sums and counts", "without a line"),
        (lambda a: a["token_kind_count"].__iadd__(1), "sums and counts", "token_kind_count does not add up"),
        (lambda a: a["line_kind_count"].__imul__(1000), "sums and counts", "more lines of a kind than there are"),
        (lambda a: a["tokens"].__imul__(99), "sums and counts", "more tokens than the windows hold"),
        (lambda a: a["similarity_sum"].__imul__(1000), "totals of the histograms", "more than 1 for each window"),
        (lambda a: a["repeat_histogram"].__iadd__(1), "totals of the histograms", "does not add up to repeat_windows"),
        (lambda a: a["distance_histogram"].__iadd__(1), "totals of the histograms", "does not follow from high_count"),
        (lambda a: a["unique_focal_histogram"].__iadd__(1), "totals of the histograms", "add up to the windows"),
        (lambda a: a["similarity_histogram"].__iadd__(10**9), "totals of the histograms", "more pairs than there are"),
        (lambda a: a["repeat_share_sum"].__imul__(0.5), "heads follows from the arrays", "repeat_probability in heads"),
        (
            lambda a: a.update(similarity_histogram=np.flip(a["similarity_histogram"], 2).copy()),
            "totals of the histograms",
            "does not follow from the states",
        ),
        (lambda a: a["pairs"].__iadd__(1), "totals of the histograms", "pairs does not follow from the other arrays"),
        (lambda a: a["diagonal_sum"].__imul__(2), "totals of the histograms", "diagonal_sum does not follow"),
        (lambda a: a["focal_chance_sum"].__imul__(2), "groups of texts add up", "focal_chance_sum of the groups does"),
        (lambda a: a["spectrum"].__iadd__(1), "groups of texts add up", "spectrum_of_groups does not add up"),
        (lambda a: a.pop("tokens"), "shapes and types of the arrays", "other arrays than study.json lists ('tokens')"),
        (
            lambda a: a.update(windows=a["windows"].astype(np.float64)),
            "shapes and types of the arrays",
            "windows is not int64 of shape (3, 4)",
        ),
        (lambda a: a.update(tokens=a["tokens"][:2]), "shapes and types of the arrays", "tokens is not int64 of shape"),
    ],
)
def test_arrays_that_can_not_be_are_noticed_even_with_right_checksums(
    study: Path, change: Callable[[dict[str, np.ndarray]], None], what: str, problem: str
) -> None:
    spoil(study, change)
    found = wrong(study)
    assert problem in found[what]
    assert "files and their checksums" not in found


@pytest.mark.parametrize(("name", "column"), [("heads", "focal_share"), ("layers", "mean_distance")])
def test_tables_that_do_not_follow_from_the_arrays_are_noticed(study: Path, name: str, column: str) -> None:
    table = pd.read_parquet(study / f"{name}.parquet")
    table.loc[1, column] += 1e-12
    table.to_parquet(study / f"{name}.parquet", index=False)
    sign(study)
    assert wrong(study) == {
        f"{name} follows from the arrays": f"{column} in {name}.parquet does not follow from the arrays"
    }
    table.loc[1, column] -= 1e-12
    table.drop(columns=column).to_parquet(study / f"{name}.parquet", index=False)
    sign(study)
    assert "rows or columns" in wrong(study)[f"{name} follows from the arrays"]


def test_a_csv_that_differs_is_noticed(study: Path) -> None:
    lines = (study / "heads.csv").read_text().splitlines()
    (study / "heads.csv").write_text("\n".join(lines[:-1]))
    sign(study)
    assert wrong(study) == {"heads follows from the arrays": "heads.csv has other rows or columns"}
    (study / "heads.csv").write_text("layer,head\n0,none\n")
    sign(study)
    assert "heads.csv can't be read" in wrong(study)["heads follows from the arrays"]


def test_the_command_has_an_exit_code_for_right_wrong_and_not_a_study(sound: Path, study: Path, tmp_path: Path) -> None:
    right = CliRunner().invoke(app, ["verify", str(sound)])
    assert right.exit_code == 0
    assert right.output.count("right") == 11
    (study / "heads.csv").write_text("layer\n")
    bad = CliRunner().invoke(app, ["verify", str(study)])
    assert bad.exit_code == 1
    assert "wrong" in bad.output
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert CliRunner().invoke(app, ["verify", str(folder)]).exit_code == 2


def test_a_study_of_a_newer_version_says_so(study: Path) -> None:
    sign(study, format=FORMAT + 1)
    with pytest.raises(HeadscopeError, match="written by a newer headscope"):
        headscope.verify(study)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every single value of a manifest."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inside is None:
        yield path
        return
    for key, inner in inside:
        yield from leaves(inner, (*path, key))


def test_every_single_edit_of_study_json_is_noticed(study: Path) -> None:
    path = study / "study.json"
    said = path.read_text()
    edits = list(leaves(json.loads(said)))
    assert len(edits) > 80
    for way in edits:
        changed = json.loads(said)
        place = changed
        for key in way[:-1]:
            place = place[key]
        value = place[way[-1]]
        place[way[-1]] = not value if isinstance(value, bool) else value + 1 if isinstance(value, (int, float)) else "x"
        path.write_text(json.dumps(changed))
        try:
            assert wrong(study), way
        except HeadscopeError:
            continue  # so wrong that it is not read at all


def test_an_example_that_does_not_fit_the_study_is_noticed(study: Path) -> None:
    example = json.loads((study / "example.json").read_text())
    for field, value in (("layers", [0]), ("end", [10**6] * len(example["end"])), ("threshold", 0.9)):
        (study / "example.json").write_text(json.dumps(example | {field: value}))
        sign(study)
        assert "the example text" in wrong(study), field


def test_lengths_that_are_not_those_of_the_examples_tokens_are_noticed(study: Path) -> None:
    path = study / "example.safetensors"
    arrays = load_file(path)
    for lengths in (-arrays["lengths"], arrays["lengths"][:, :, 1:].copy(), arrays["lengths"] * np.nan):
        save_file(arrays | {"lengths": lengths}, path)
        sign(study)
        assert "lengths of the example's value vectors" in wrong(study)["the example text"]


def test_what_a_stopped_run_left_behind_is_told_but_is_not_wrong(study: Path) -> None:
    (study / "unfinished").mkdir()
    checks = headscope.verify(study)
    assert not [check for check in checks if check.problem]
    assert "left over" in str(checks[-1].note)
    told = CliRunner().invoke(app, ["verify", str(study)])
    assert told.exit_code == 0
    assert "left over" in told.output
