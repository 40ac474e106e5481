"""Studies of a sample: spread over all texts, the same bytes however they ran, and with nulls of the same windows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from runs import digests, digests_of, during, stop

import headscope
from headscope.corpus.null_kinds import NULLS
from headscope.errors import HeadscopeError

SAMPLE = 48


def sampled(model, texts, out: Path, **more):
    asked = {"length": 32, "sample": SAMPLE, "progress": False, "threads": 1, **more}
    return headscope.study(model, texts, out=out, **asked)


@pytest.fixture(scope="module")
def undisturbed(tiny, sample, tmp_path_factory) -> headscope.Study:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 16)
        return sampled(tiny, sample, tmp_path_factory.mktemp("sampled") / "whole")


def test_a_sample_is_spread_over_all_texts_and_the_head_is_not(tiny, sample, undisturbed, tmp_path: Path) -> None:
    head = headscope.study(tiny, sample, out=tmp_path / "h", length=32, max_windows=SAMPLE, progress=False)
    holding = [int((study.groups["windows"][0, 0] > 0).sum()) for study in (undisturbed, head)]
    assert holding[0] > 30 > 5 > holding[1]
    counts = undisturbed.manifest.counts
    assert (undisturbed.windows, counts.texts) == (SAMPLE, len(sample))
    assert counts.windows_drawn_from > 500
    assert head.manifest.counts.windows_drawn_from is None
    assert not [check for check in headscope.verify(undisturbed.folder) if check.problem]


def test_the_seed_draws(tiny, sample, undisturbed, tmp_path: Path) -> None:
    other = sampled(tiny, sample, tmp_path / "o", seed=1)
    assert other.manifest.source.sha256 == undisturbed.manifest.source.sha256
    assert other.manifest.source.windows_sha256 != undisturbed.manifest.source.windows_sha256


def test_workers_and_threads_change_no_bit(tiny, sample, undisturbed, tmp_path: Path, small_shards) -> None:
    for number, how in enumerate(({"threads": 2}, {"workers": 2})):
        assert digests(sampled(tiny, sample, tmp_path / f"{number}", **how).folder) == digests(undisturbed.folder)


def test_a_stopped_sample_goes_on(tiny, sample, undisturbed, tmp_path: Path, monkeypatch, small_shards) -> None:
    during(monkeypatch, 1, stop)
    with pytest.raises(KeyboardInterrupt):
        sampled(tiny, sample, tmp_path / "s")
    monkeypatch.undo()
    monkeypatch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 16)
    with pytest.raises(HeadscopeError, match=r"differs in sample \(48 there, 32 now\)"):
        sampled(tiny, sample, tmp_path / "s", sample=32)
    assert digests(sampled(tiny, sample, tmp_path / "s").folder) == digests(undisturbed.folder)


def test_parts_of_a_sample_merge_into_it(tiny, sample, undisturbed, tmp_path: Path, small_shards) -> None:
    parts = [sampled(tiny, sample, tmp_path / f"{n}", shard=f"{n}/2") for n in (1, 2)]
    assert [part.windows for part in parts] == [32, 16]
    merged = headscope.merge([part.folder for part in parts], out=tmp_path / "m")
    assert digests(merged.folder) == digests(undisturbed.folder)
    one, other = merged.manifest, undisturbed.manifest
    assert one.counts == other.counts
    assert one.source == other.source


def test_nulls_are_of_the_same_windows(tiny, sample, undisturbed, tmp_path: Path) -> None:
    study = sampled(tiny, sample, tmp_path / "s")
    found = headscope.nulls(study, tiny, sample, progress=False)
    assert {one.windows for one in found.nulls.values()} == {SAMPLE}
    where = study.groups["windows"][0, 0]
    for null in ("tokens", "weights"):
        np.testing.assert_array_equal(found.nulls[null].groups["windows"][0, 0], where)
        assert found.nulls[null].manifest.source.sha256 == study.manifest.source.sha256
    assert found.nulls["weights"].manifest.source.windows_sha256 == study.manifest.source.windows_sha256
    assert found.roles is not None


def test_nulls_of_some_windows_of_a_sample(tiny, sample, tmp_path: Path) -> None:
    study = sampled(tiny, sample, tmp_path / "s")
    found = headscope.nulls(study, tiny, sample, max_windows=16, only=["tokens"], progress=False)
    null = found.nulls["tokens"]
    assert null.windows == 16
    assert (null.groups["windows"][0, 0] <= study.groups["windows"][0, 0]).all()


def test_a_study_with_nulls_takes_a_sample_too(tiny, sample, tmp_path: Path) -> None:
    study = sampled(tiny, sample, tmp_path / "s", nulls=True)
    assert list(study.nulls) == list(NULLS)


def test_a_sample_of_more_windows_than_there_are_is_all_of_them_and_says_so(tiny, sample, tmp_path: Path) -> None:
    few = sampled(tiny, sample[:2], tmp_path / "few", sample=10_000)
    every = headscope.study(tiny, sample[:2], out=tmp_path / "all", length=32, progress=False)
    assert few.heads.equals(every.heads)
    assert digests_of(few.folder)["arrays.safetensors"] == digests_of(every.folder)["arrays.safetensors"]
    assert f"and the texts have {every.windows}: all of them" in few.manifest.notices[-1]


def test_what_can_be_read_only_once_has_no_sample(tiny, sample, tmp_path: Path) -> None:
    with pytest.raises(HeadscopeError, match="sample reads the texts twice"):
        sampled(tiny, iter(sample), tmp_path / "s")
    with pytest.raises(HeadscopeError, match="sample is for texts"):
        headscope.study_images(tiny, [np.zeros((8, 8, 3), np.uint8)], sample=2, out=tmp_path / "s")
    with pytest.raises(HeadscopeError, match="example is 48"):
        sampled(tiny, sample, tmp_path / "s", example=48)
    assert not (tmp_path / "s").exists()


def test_the_example_is_numbered_within_the_sample(tiny, sample, tmp_path: Path) -> None:
    study = sampled(tiny, sample, tmp_path / "s", example=SAMPLE - 1)
    assert study.manifest.example.window == SAMPLE - 1
    assert any(study.example.text in text for text in sample[-len(sample) // 4 :])


def test_the_manifest_lists_the_files_really_used(tiny, sample, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.txt" for name in "abc"]
    for path, text in zip(paths, sample, strict=False):
        path.write_text(text)
    head = headscope.study(
        tiny, headscope.read_texts(paths), out=tmp_path / "head", length=32, max_windows=5, progress=False
    )
    spread = sampled(tiny, headscope.read_texts(paths), tmp_path / "spread", sample=9)
    assert [(file.name, file.texts, file.windows) for file in head.manifest.source.files] == [(str(paths[0]), 1, 5)]
    assert head.manifest.source.files_not_reached == 2
    used = spread.manifest.source
    assert [file.texts for file in used.files] == [1, 1, 1]
    assert sum(file.windows for file in used.files) == 9
    assert min(file.windows for file in used.files) >= 2
    assert used.files_not_reached == 0
    kept = json.loads((spread.folder / "study.json").read_text())["texts"]["files"]
    assert kept[0] == {"name": str(paths[0]), "texts": 1, "windows": used.files[0].windows}
    spread.report()
    page = (spread.folder / "report.html").read_text()
    assert f"{paths[2]}: 1 text, {used.files[2].windows} windows" in page
    assert "Drawn by seed from" in page
    head.report()
    assert "not reached: 2 files" in (head.folder / "report.html").read_text()


def test_merged_studies_list_the_files_of_both(tiny, sample, tmp_path: Path) -> None:
    studies = []
    for number in range(2):
        path = tmp_path / f"{number}.txt"
        path.write_text(sample[number])
        studies.append(headscope.study(tiny, path, out=tmp_path / f"s{number}", length=32, progress=False))
    merged = headscope.merge([study.folder for study in studies], out=tmp_path / "m")
    assert merged.manifest.source.files == [*studies[0].manifest.source.files, *studies[1].manifest.source.files]
