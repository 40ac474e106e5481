"""The command: what it prints, what it writes, and one sentence for what can't be done."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner

import headscope
from headscope.cli.app import app
from headscope.insight.comparing_importance import importance_in_words
from headscope.show.report import page
from headscope.show.report.pictures import Pictures

pytestmark = pytest.mark.usefixtures("unsynced")
SMALL = ["--length", "32", "--windows", "first", "--max-windows", "9", "--threads", "1", "--no-figures"]


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["ablate", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, " ".join(result.output.split())


def test_help_names_every_choice() -> None:
    code, shown = run("--help")
    assert code == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    for option in ("--by", "--heads", "--only", "--order", "--study", "--loss", "--no-loss"):
        assert option in plain


def test_a_run_writes_tables_and_says_what_was_found(tiny_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "a"
    code, shown = run("--model", tiny_folder, "--out", out, "--by", "zero", *SMALL)
    assert code == 0
    assert "3 layers x 4 heads, silenced by zero, over 9 windows of 32 tokens" in shown
    assert "No loss: " in shown
    assert "Heads that matter most, by embedding_drift" in shown
    facts = json.loads((out / "ablation.json").read_text())
    assert (facts["by"], facts["counts"]["windows"], facts["resumed"]) == ("zero", 9, [0, 1, 2])
    assert {"ablation.csv", "ablation.parquet", "intervals.csv", "intervals.parquet"} == set(facts["files"])
    code, shown = run("--model", tiny_folder, "--out", out, "--by", "zero", "--heads", "0:1, 2:2", *SMALL)
    assert code == 0
    assert "0:1,2:2" in shown


def test_beside_a_study_it_lands_in_its_folder_and_report(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headscope.show.report.content.drawing", lambda *given: nullcontext(Pictures))
    monkeypatch.setattr("headscope.show.report.content.at_thresholds", lambda study: None)
    study = tmp_path / "s"
    headscope.study(headscope.load(str(tiny_folder)), out=study, length=32, max_windows=40, progress=False)
    opened = headscope.read(study)
    assert "Does the head matter?" not in page(opened)
    code, shown = run("--model", tiny_folder, "--study", study, "--order", "importance", "--steps", "2", *SMALL)
    assert code == 0
    assert "Rank correlation with embedding_drift" in shown
    assert (study / "ablation" / "predictors.csv").is_file()
    told = page(headscope.read(study))
    assert "Does the head matter?" in told
    assert "Heads were silenced, their outputs replaced by their means over the corpus, over 9 windows" in told
    [sentence] = importance_in_words({"tiny": opened})
    assert sentence.startswith("tiny. Rank correlation with embedding_drift: all heads, ")
    common = importance_in_words({"tiny": opened, "again": opened})[-1]
    assert common.startswith("Within layers, what tells a head that matters in all 2 ablations: ")
    (study / "ablation" / "ablation.json").write_text("{}")
    assert "is damaged" in importance_in_words({"tiny": opened})[0]
    assert "ablation.json is damaged" in page(headscope.read(study))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--heads", "9:1"], "There is no head 9:1; the model has layers 0 to 2 with heads 0 to 3."),
        (["--heads", "nine"], "--heads is 'nine'; write layer:head of each, for example 3:1,5:7."),
        (["--only", "1:1", "--heads", "1:2"], "--heads and --only exclude each other; give one of them."),
        (["--loss"], "--loss can't be had: "),
        (["--by", "noise"], "--by is 'noise'; it must be mean, zero or shuffle."),
        (["--order", "best"], "--order is 'best'; it must be importance,"),
        (["--study", "/nowhere"], "There is no study folder /nowhere; check the path."),
        (["--batch-size", "0"], "--batch-size is 0; it must be a whole number of at least 1."),
        (["/nowhere.txt"], "/nowhere.txt"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    tiny_folder: Path, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    code, shown = run("--model", tiny_folder, "--out", tmp_path / "a", *SMALL, *arguments)
    assert code == 2
    assert "headscope: " in shown
    assert sentence in shown
    assert "Traceback" not in shown
    assert not (tmp_path / "a").exists()


def test_texts_that_can_be_read_once_are_silenced_by_zero_alone(tiny_folder: Path, tmp_path: Path) -> None:
    code, shown = run("-", "--model", tiny_folder, "--out", tmp_path / "a")
    assert code == 2
    assert "--by mean reads the texts twice" in shown
