"""Studies of short texts: padded by default, which is said, with the tokens that there really are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import headscope
from headscope.insight import judges
from headscope.insight.chance import layer_attention
from headscope.insight.notices import notices
from headscope.insight.reach import windows_at
from headscope.model.proof import prove
from headscope.show.figures import fig02, fig10, fig12

NOTES = [f"Note {day}. The tide of day {day} was low." + day * " The gulls came." for day in range(3)]


def measured(model, texts, out: Path, **more):
    return headscope.study(model, texts, out=out, length=64, progress=False, **more)


def test_where_most_texts_are_short_they_are_padded_and_it_is_said(tiny, tmp_path: Path) -> None:
    study = measured(tiny, NOTES, tmp_path / "s")
    assert study.windows == 3
    assert study.manifest.options.short == "pad"
    said = " ".join(notices(study))
    assert "3 of the 3 texts are shorter than a window of 64 tokens, so short windows were padded" in said
    assert "A small sample: 3 texts" in said
    longest = max(len(tiny.tokenizer(note)["input_ids"]) for note in NOTES)
    assert study.manifest.options.length == longest < 64
    assert "windows are as long as the longest text" in said
    padded = measured(tiny, NOTES, tmp_path / "p", short="pad")
    assert padded.manifest.options.length == 64
    pd.testing.assert_frame_equal(padded.heads, study.heads, rtol=1e-5)
    assert not [notice for notice in notices(padded) if "were padded" in notice]


def test_where_most_texts_are_long_short_windows_are_left_out(tiny, sample, tmp_path: Path) -> None:
    study = measured(tiny, [*sample[:2], NOTES[0]], tmp_path / "s")
    assert study.manifest.options.short == "drop"
    assert study.manifest.counts.short_windows_left_out == 3


def test_a_study_of_three_notes_is_small(minilm, tmp_path: Path) -> None:
    study = headscope.study(minilm, NOTES, out=tmp_path / "s", progress=False)
    assert sum(file.stat().st_size for file in study.folder.iterdir()) < 10_000_000


def test_maps_that_are_very_large_are_kept_where_they_are_asked_for(tiny, sample, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("headscope.jobs.studying.MOST_MAPS", 1000)
    study = measured(tiny, sample[:1], tmp_path / "s")
    assert study.manifest.options.maps == "location"
    assert "attention_sum" not in study.arrays
    assert "Of the maps of every head only that of high pairs is kept" in " ".join(notices(study))
    assert "attention_sum" in measured(tiny, sample[:1], tmp_path / "a", maps="all").arrays


def test_texts_that_can_be_read_only_once_are_all_measured(tiny, tmp_path: Path) -> None:
    assert measured(tiny, iter(NOTES), tmp_path / "s").heads.equals(measured(tiny, NOTES, tmp_path / "t").heads)


def test_sentences_give_the_tokens_that_there_are(tiny, tmp_path: Path) -> None:
    three, one = measured(tiny, NOTES, tmp_path / "3"), measured(tiny, NOTES[:1], tmp_path / "1")
    sizes = [len(tiny.tokenizer(note)["input_ids"]) for note in NOTES]
    assert three.manifest.counts.window_tokens == sum(sizes)
    assert three.extent == f"3 windows of {sum(sizes) / 3:.0f} tokens on average"
    assert one.extent == f"1 window of {sizes[0]} tokens"
    assert "1 window)" in repr(one)
    one.report()
    page = (one.folder / "report.html").read_text()
    assert "1 windows" not in page
    assert one.extent in page


def test_whole_windows_are_of_their_length(tiny, sample, tmp_path: Path) -> None:
    study = measured(tiny, sample[:2], tmp_path / "s", max_windows=7)
    assert study.extent == "7 windows of 64 tokens"


def test_parts_of_short_texts_merge(tiny, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 2)
    parts = [measured(tiny, NOTES, tmp_path / f"{n}", shard=f"{n}/2") for n in (1, 2)]
    merged = headscope.merge([part.folder for part in parts], out=tmp_path / "m")
    assert merged.extent == measured(tiny, NOTES, tmp_path / "w").extent
    assert "were padded" in " ".join(notices(merged))


def test_padding_that_comes_late_is_proved_when_it_comes(tiny, sample, tmp_path, monkeypatch, small_shards) -> None:
    proved = []

    def noted(capture, inputs, mask, types=None):
        proved.append(bool(mask.all()))
        return prove(capture, inputs, mask, types)

    monkeypatch.setattr("headscope.run.runner.prove", noted)
    asked = {"length": 32, "short": "pad", "progress": False}
    texts = [" ".join(sample[:3]), "A short one.", "Another."]
    study = headscope.study(tiny, texts, out=tmp_path / "late", **asked)
    assert study.windows > 32
    assert proved == [True, False]
    proof = study.manifest.model.proof
    assert (proof.windows, proof.attention is not None) == (4, True)


def test_claims_of_padded_windows_leave_out_what_no_window_has(tiny, tmp_path) -> None:
    texts = [f"Note {day}. The tide of day {day} was low, and the gulls came." for day in range(12)]
    exact, padded = (
        headscope.study(tiny, texts, out=tmp_path / str(length), length=length, short="pad", progress=False)
        for length in (32, 64)
    )
    assert exact.windows == padded.windows == 12
    assert judges.near_diagonal(layer_attention(padded)) == pytest.approx(
        judges.near_diagonal(layer_attention(exact)), abs=0.1
    )
    assert judges.far(padded) == pytest.approx(judges.far(exact))
    assert judges.far(padded) < 50 * 32 / 128


@pytest.mark.parametrize("special", ["keep", "drop"])
def test_maps_of_padded_windows_are_means_over_those_that_have_the_position(tiny, tmp_path, special) -> None:
    texts = [NOTES[0] + " The gulls came." * more for more in (0, 1, 3)]
    asked = {"short": "pad", "special": special, "progress": False, "length": 48}
    every = headscope.study(tiny, texts, out=tmp_path / "all", **asked)
    alone = headscope.study(tiny, texts[2:], out=tmp_path / "long", **asked)
    sizes = [len(tiny.tokenizer(text)["input_ids"]) for text in texts]
    reach = windows_at(every)
    for i, j in ((0, 0), (3, sizes[0]), (sizes[1], 2), (sizes[2] - 1, sizes[2] - 1)):
        assert reach[i, j] == sum(size > max(i, j) for size in sizes)
    assert reach[-1, -1] == 1
    beyond = slice(sizes[1], sizes[2])
    for drawn in (fig12.mean_normalised(every, 1), fig10.location(every, 1, 2), fig02.mean_attention(every, 1)):
        assert np.isfinite(drawn).all()
    for of in (fig12.mean_normalised, fig02.mean_attention):
        mine, its = (of(study, 1)[..., beyond, :] for study in (every, alone))
        np.testing.assert_allclose(mine, its, rtol=1e-5, atol=1e-7)


def test_at_another_threshold_nothing_is_told_of_single_windows(tiny, tmp_path) -> None:
    study = measured(tiny, NOTES, tmp_path / "kept", keep_windows=True)
    with pytest.raises(headscope.HeadscopeError, match="known at the study's own threshold"):
        _ = study.at(0.2).windows_table
    with pytest.raises(headscope.HeadscopeError, match="known at the study's own threshold"):
        study.at(0.2).by(["a", "b", "a"])
