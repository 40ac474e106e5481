"""Study folders are read for ever: what version 0.1.0 wrote opens, and what it lacks is absent, not damage."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import headscope
from headscope.cli.app import app
from headscope.corpus.grid import Grid
from headscope.errors import HeadscopeError
from headscope.insight.findings import findings
from headscope.measure.catalogue import columns
from headscope.measure.declaration import Column, Measure, Ratio

OLD = Path(__file__).parents[1] / "data" / "version-0.1.0"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Copies, since figures and reports are written into them."""
    return Path(shutil.copytree(OLD, tmp_path / "old"))


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_folders_are_small() -> None:
    assert sum(path.stat().st_size for path in OLD.rglob("*") if path.is_file()) < 200_000


def test_a_study_of_texts_opens_with_all_that_it_says(old: Path) -> None:
    study = headscope.read(old / "texts")
    assert (study.model_name, study.windows, study.manifest.kind) == ("random-bert", 24, "texts")
    assert study.manifest["model"]["heads"] == study.manifest.model.heads == 2
    assert study.manifest.arrays is study.manifest.tables is None
    assert len(study.heads) == 4
    assert study.arrays["high_count"].shape == (2, 2, 10, 10)
    assert study.example.size == 10
    assert study.example.lengths is study.manifest.model.carried_by is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["texts", "images"])
def test_every_reading_command_works_on_it(old: Path, kind: str, tmp_path: Path) -> None:
    assert "files in" in run("figures", old / kind, "--format", "png")
    assert "Report" in run("report", old / kind)
    assert "wrong" not in run("verify", old / kind)


def test_studies_of_texts_are_compared_reproduced_and_merged(old: Path, tmp_path: Path) -> None:
    texts, others = old / "texts", old / "other-texts"
    assert "claims" in run("compare", texts, others, "--out", tmp_path / "compare.html")
    assert "claims" in run("reproduce", texts)
    run("merge", texts, others, "--out", tmp_path / "both")
    both = headscope.read(tmp_path / "both")
    assert both.windows == 40
    assert "wrong" not in run("verify", tmp_path / "both")


def test_a_study_of_images_opens_as_a_study_like_all_others(old: Path) -> None:
    study = headscope.read(old / "images")
    assert (study.manifest.kind, study.windows, study.grid) == ("images", 6, Grid(3, 3, before=1))
    assert "attention_to_patch" in study.heads
    assert study.manifest.model.weights_sha256 is None
    assert findings(study)


def test_a_study_does_not_merge_with_one_of_another_version(old: Path, tmp_path: Path) -> None:
    path = old / "other-texts" / "study.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"headscope": "0.0.9"}))
    with pytest.raises(HeadscopeError, match="differ in version of headscope"):
        headscope.merge([old / "texts", old / "other-texts"], out=tmp_path / "no")


@pytest.mark.slow
def test_a_column_that_came_later_is_absent_and_said_so_when_it_is_asked_for(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if this version had one measure more."""
    late = Column(
        "late_share", "late", "share", "pairs", "Came later.", lambda arrays: Ratio(arrays["late"], arrays["windows"])
    )
    from headscope.measure import catalogue

    monkeypatch.setattr(catalogue, "MEASURES", (*catalogue.MEASURES, Measure(columns=(late,))))
    assert "late_share" in columns()
    study = headscope.read(old / "texts")
    assert "late_share" not in study.heads
    with pytest.raises(HeadscopeError, match=r"The table heads of .* has no column late_share; run the study again"):
        study.column("heads", "late_share")
    with pytest.raises(HeadscopeError, match="has no array late"):
        study.arrays["late"]
    assert findings(study)
    assert not [check for check in headscope.verify(old / "texts") if check.problem]
    assert "late_share" not in study.report(old / "report.html").read_text()


def test_what_contradicts_itself_is_refused(old: Path) -> None:
    path = old / "texts" / "study.json"
    said = json.loads(path.read_text())
    path.write_text(json.dumps(said | {"layers": [1]}))
    study = headscope.read(old / "texts")
    with pytest.raises(HeadscopeError, match="damaged"):
        _ = study.heads
    with pytest.raises(HeadscopeError, match="damaged"):
        _ = study.arrays
    path.write_text(json.dumps(said | {"layers": "all"}))
    with pytest.raises(HeadscopeError, match="its field layers"):
        headscope.read(old / "texts")
