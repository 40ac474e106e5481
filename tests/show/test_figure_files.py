"""Figures as files: what is written, where to, in which formats, and what the command says."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from runs import small_study
from typer.testing import CliRunner

import headscope
from headscope import HeadscopeError, Study
from headscope.cli.app import app
from headscope.model.loading import Model
from headscope.show import figures
from headscope.show.figures import style


@pytest.fixture(scope="module")
def study(tiny: Model, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return small_study(tiny, tmp_path_factory.mktemp("figures") / "study", max_windows=24)


def test_all_figures_are_written(study: Study, tmp_path: Path) -> None:
    written = study.figures(tmp_path / "f", progress=False)
    names = [f"fig{number:02d}" for number in range(2, 14)] + ["spectrum", "signal", "thresholds", "atlas"]
    assert [path.name for path in written] == [f"{name}.{suffix}" for name in names for suffix in ("png", "svg")]
    for path in written:
        assert path.stat().st_size < 1_500_000
    svg = (tmp_path / "f" / "fig10.svg").read_text()
    assert svg.count("<image") >= 2
    from PIL import Image

    with Image.open(tmp_path / "f" / "fig02.png") as picture:
        assert picture.info["dpi"] == pytest.approx((200, 200), abs=1)
        assert picture.width == round(style.WIDTH * 200)


def test_figures_go_into_the_study_folder_and_need_nothing_else(study: Study) -> None:
    (path,) = figures.save_all(headscope.read(study.folder), only=[7], formats=["png"], progress=False)
    assert path == study.folder / "figures" / "fig07.png"


def test_drawing_depends_on_no_setting_and_changes_none(study: Study, tmp_path: Path) -> None:
    style.save(study.figure(8), tmp_path / "one.svg", "t")
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "black", "xtick.labelsize": 30}):
        before = dict(matplotlib.rcParams)
        style.save(study.figure(8), tmp_path / "two.svg", "t")
        assert dict(matplotlib.rcParams) == before
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_several_threads_may_draw(study: Study, tmp_path: Path) -> None:
    def drawn(number: int) -> bytes:
        path = tmp_path / f"{number}.svg"
        style.save(study.figure(7 if number % 2 else 13), path, "t")
        return path.read_bytes()

    with ThreadPoolExecutor(4) as pool:
        files = list(pool.map(drawn, range(6)))
    assert len(set(files[0::2])) == 1
    assert len(set(files[1::2])) == 1


def test_a_study_without_an_example_has_the_other_figures(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needing = {number for number, module in figures.FIGURES.items() if getattr(module, "NEEDS_EXAMPLE", False)}
    assert needing == {"4", "5", "9", "12"}
    monkeypatch.setattr(figures, "FIGURES", {number: figures.FIGURES[number] for number in ("7", "9", "13")})
    bare = headscope.read(study.folder)
    bare.manifest = replace(study.manifest, example=None)
    written = figures.save_all(bare, tmp_path, formats=["png"], progress=False)
    assert [path.name for path in written] == ["fig07.png", "fig13.png"]


@pytest.mark.parametrize("number", list(figures.FIGURES))
def test_a_figure_explains_itself(number: str) -> None:
    module = figures.FIGURES[number]
    assert module.TITLE
    assert len(module.CAPTION) > 150
    assert module.CAPTION.endswith(".")


def call(*arguments: Any) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def test_the_command_draws_what_is_asked_for(study: Study, tmp_path: Path) -> None:
    code, output = call(
        "figures", study.folder, "--only", "7, atlas", "--layers", "0,2", "--head", 3,
        "--out", tmp_path / "f", "--format", "png",
    )  # fmt: skip
    assert code == 0
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == ["atlas.png", "fig07.png"]
    assert f"2 files in {tmp_path / 'f'}" in output.replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--only", "1"], "There is no figure '1'; there are 2, 3,"),
        (["--only", ","], "There is nothing to draw"),
        (["--layers", "9"], "Layer 9 was not measured"),
        (["--head", "4"], "There is no head 4"),
        (["--format", "bmp"], "the formats are png, svg, pdf"),
        (["--only", "atlas", "--map", "street"], "it must be location or similarity"),
    ],
)
def test_the_command_says_what_is_wrong(study: Study, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    code, output = call("figures", study.folder, "--out", tmp_path / "f", *arguments)
    assert code == 2
    assert sentence in " ".join(output.split())


def test_a_file_in_the_way_is_named(study: Study, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(HeadscopeError, match="can't be written to"):
        figures.save_all(study, tmp_path / "f", only=[7], progress=False)


def test_a_choice_that_a_figure_lacks_is_refused(study: Study) -> None:
    with pytest.raises(HeadscopeError, match="Figure 13 has no choice 'heads'; it has layers"):
        study.figure(13, heads=[1])


def test_the_study_command_draws_figures_unless_told_not_to(
    tiny_folder: Path, tmp_path: Path, sample: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "FIGURES", {number: figures.FIGURES[number] for number in ("7", "9")})
    (tmp_path / "a.txt").write_text(sample[0])
    common = ["study", tmp_path / "a.txt", "--model", tiny_folder, "--length", 16, "--max-windows", 3, "-q", "--out"]
    assert call(*common, tmp_path / "without", "--no-figures")[0] == 0
    assert not (tmp_path / "without" / "figures").exists()
    assert call(*common, tmp_path / "with")[0] == 0
    drawn = sorted(path.name for path in (tmp_path / "with" / "figures").iterdir())
    assert drawn == ["fig07-findings.png", "fig07.png", "fig07.svg", "fig09.png", "fig09.svg"]


def test_figures_leave_pyplot_alone() -> None:
    import subprocess

    code = "import sys, headscope.show.figures; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
