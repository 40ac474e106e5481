"""A second study into the same folder: the same one is there at once, another is told how."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headscope
from headscope.errors import HeadscopeError
from headscope.jobs.study_job import StudyJob

TEXTS = [f"Note {day}. The tide of day {day} was low, and the gulls came. Who fed the gulls?" for day in range(12)]


def measured(model, texts=TEXTS, **more):
    return headscope.study(model, texts, **{"length": 16, "progress": False, **more})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_same_study_is_returned_at_once(tiny, here: Path, monkeypatch, capsys):
    first = measured(tiny)
    monkeypatch.setattr(StudyJob, "run", None)
    for texts in (TEXTS, iter(TEXTS), tuple(TEXTS)):
        again = measured(tiny, texts, progress=True)
        assert again.manifest == first.manifest
        assert again.folder == Path("headscope-study")
    assert "headscope-study holds this study already" in capsys.readouterr().out


def test_another_study_is_refused_with_what_differs_and_what_to_do(tiny, tiny_folder, here: Path):
    measured(tiny)
    for differing, model, other in (
        ("threshold", tiny, {"threshold": 0.4}),
        ("length and seed", tiny, {"length": 24, "seed": 1}),
        ("max_windows", tiny, {"max_windows": 3}),
        ("example", tiny, {"example": 2}),
        ("shard", tiny, {"shard": "1/2"}),
        ("texts", tiny, {"texts": TEXTS[:-1]}),
        ("texts", tiny, {"texts": [*TEXTS, "One more."]}),
        ("texts", tiny, {"texts": TEXTS[::-1]}),
        ("model", headscope.load(f"random:{tiny_folder}", seed=7), {}),
    ):
        with pytest.raises(HeadscopeError) as caught:
            measured(model, **other)
        assert str(caught.value) == (
            f"headscope-study holds a finished study that differs in {differing}; read it with "
            "headscope.read('headscope-study'), or give another out=..., or overwrite=True."
        )
        assert "headscope report headscope-study, or give another --out, or --overwrite." in caught.value.typed


def test_with_windows_enough_what_follows_does_not_matter(tiny, here: Path):
    first = measured(tiny, max_windows=4)
    again = measured(tiny, [*TEXTS, "One more."], max_windows=4)
    assert again.manifest == first.manifest


def test_nulls_are_added_to_the_same_study(tiny, here: Path):
    first = measured(tiny)
    again = measured(tiny, nulls=True)
    assert again.manifest == first.manifest
    assert set(again.nulls) == {"tokens", "sentences", "weights"}


def test_ids_samples_and_open_options_are_the_same_again(tiny, here: Path):
    ids = tiny.tokenizer(TEXTS, padding=True)
    for out, texts, more in (("ids", ids, {}), ("sample", TEXTS, {"sample": 5, "length": 16})):
        first = headscope.study(tiny, texts, out=out, progress=False, **more)
        assert headscope.study(tiny, texts, out=out, progress=False, **more).manifest == first.manifest


@pytest.mark.parametrize("layers", [[2, 0], (2, 0, 2), np.array([0, 2]), range(0, 3, 2), {0, 2}])
def test_layers_are_the_same_however_they_are_given(tiny, sample, tmp_path, layers) -> None:
    asked = {"length": 32, "max_windows": 8, "progress": False, "out": tmp_path / "s"}
    first = headscope.study(tiny, sample[:4], layers=(0, 2), **asked)
    assert first.manifest.layers == [0, 2]
    assert (first.heads["windows"] > 0).all()
    again = headscope.study(tiny, sample[:4], layers=layers, **asked)
    assert again.manifest.finished == first.manifest.finished


@pytest.mark.parametrize("layers", [(-1,), (0, 99), 5, "0-2", (), (0.5,), (True,)])
def test_layers_that_are_none_are_refused_before_anything_is_measured(tiny, sample, tmp_path, layers) -> None:
    with pytest.raises(HeadscopeError, match="layers"):
        headscope.study(tiny, sample[:4], layers=layers, length=32, out=tmp_path / "s", progress=False)
    assert not (tmp_path / "s" / "study.json").exists()
