"""Numbers of every window: those that a study of the window alone gives, the same bytes however they came about, and
tables of any windows put together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from runs import digests_of, during, small_study, stop

import headscope
from headscope.errors import HeadscopeError
from headscope.measure.row_layout import known_columns

FILE = "windows.parquet"
RUN = {"max_windows": None, "sample": 40, "keep_windows": True}


@pytest.fixture(scope="module")
def kept(tiny, tmp_path_factory) -> headscope.Study:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 16)
        return small_study(tiny, tmp_path_factory.mktemp("kept") / "whole", **RUN)


def columns_of(study: headscope.Study) -> list[str]:
    return [name for name in known_columns(study.manifest.gives) if name in study.heads]


def test_the_numbers_of_a_window_are_those_of_a_study_of_it_alone(tiny, sample, tmp_path: Path) -> None:
    asked = {"length": 32, "windows": "first", "progress": False}
    study = headscope.study(tiny, sample[:6], out=tmp_path / "all", keep_windows=True, **asked)
    table = study.windows_table
    assert len(table) == 6 * 12
    for number in range(6):
        rows = table[table["window"] == number]
        alone = headscope.study(tiny, [sample[number]], out=tmp_path / f"{number}", **asked)
        assert alone.windows == 1
        for name in columns_of(study):
            np.testing.assert_allclose(rows[name], alone.heads[name], rtol=1e-5, atol=1e-7, err_msg=name)


def test_what_is_known_of_a_window(kept, tiny) -> None:
    table = kept.windows_table
    known = ["window", "text", "origin", "start", "end", "tokens", "layer", "head", "focal_token"]
    assert list(table.columns[:9]) == known
    assert set(table["tokens"]) == {32}
    assert table["origin"].iloc[0].startswith("sample/")
    vocabulary = tiny.tokenizer.get_vocab()
    assert set(table["focal_token"].dropna()) <= set(vocabulary)
    assert (table["focal_token"].isna() == (table["pairs"] == 0)).all()
    assert "same_sentence_auc" not in table


def test_all_windows_put_together_are_the_study(kept) -> None:
    together = kept.by(["all"] * kept.manifest.counts.texts)
    assert together.values == ["all"]
    for name in ("heads", "layers"):
        made, own = getattr(together, name), getattr(kept, name)
        for column in made.columns[1:]:
            np.testing.assert_allclose(made[column], own[column], rtol=1e-12, atol=1e-15, err_msg=column)
    both = together.intervals.merge(kept.intervals, on=["layer", "head", "column"], suffixes=("", "_own"))
    assert len(both) == len(together.intervals)
    for name in ("value", "low", "high", "groups"):
        np.testing.assert_allclose(both[name], both[f"{name}_own"], rtol=1e-9, atol=1e-12)


def test_what_is_no_value_for_each_text_is_refused(kept) -> None:
    with pytest.raises(HeadscopeError, match="Tables by None can't be made; give the name of a column"):
        kept.by(None)


def test_tables_by_a_column_add_up(kept) -> None:
    by_text = kept.by("text")
    pairs = by_text.heads.groupby(["layer", "head"])["pairs"].sum().to_numpy()
    np.testing.assert_array_equal(pairs, kept.heads["pairs"])
    assert by_text.values == sorted(kept.windows_table["text"].unique())
    assert "text" in by_text._repr_html_()
    odd = kept.by(pd.Series([None if number % 2 else number for number in range(200)], name="even"))
    assert odd.column == "even"
    assert set(odd.values) == {number for number in by_text.values if number % 2 == 0}


@pytest.mark.parametrize("how", [{"threads": 2}, {"workers": 2}, {"batch_size": 3}])
def test_bytes_do_not_depend_on_how_it_ran(tiny, kept, tmp_path: Path, how, small_shards) -> None:
    other = small_study(tiny, tmp_path / "o", **RUN, **how)
    if "batch_size" in how:  # which changes the last digits of sums, as of all else
        pd.testing.assert_frame_equal(other.windows_table, kept.windows_table, rtol=1e-4, atol=1e-6)
    else:
        assert digests_of(other.folder) == digests_of(kept.folder)


def test_a_stopped_study_goes_on_and_a_damaged_checkpoint_of_rows_is_measured_again(
    tiny, kept, tmp_path: Path, monkeypatch, small_shards
) -> None:
    for number, damage in enumerate(("none", "flip", "delete")):
        out = tmp_path / f"{number}"
        with monkeypatch.context() as patch:
            during(patch, 2, stop)
            with pytest.raises(KeyboardInterrupt):
                small_study(tiny, out, **RUN)
        rows = sorted((out / "unfinished").glob("rows-*.safetensors"))
        assert rows
        if damage == "flip":
            rows[0].write_bytes(rows[0].read_bytes()[:-1] + b"\1")
        elif damage == "delete":
            rows[0].unlink()
        assert digests_of(small_study(tiny, out, **RUN).folder) == digests_of(kept.folder)
        assert not (out / "unfinished").exists()


def test_parts_merge_into_the_whole(tiny, kept, tmp_path: Path, small_shards) -> None:
    parts = [small_study(tiny, tmp_path / f"{n}", shard=f"{n}/4", **RUN) for n in range(1, 5)]
    assert [part.windows for part in parts] == [16, 16, 8, 0]
    assert not (parts[3].folder / FILE).exists()
    merged = headscope.merge([part.folder for part in parts], out=tmp_path / "m")
    pd.testing.assert_frame_equal(merged.windows_table, kept.windows_table)
    assert digests_of(merged.folder)[FILE] == digests_of(kept.folder)[FILE]
    assert not [check for check in headscope.verify(merged.folder) if check.problem]


def test_studies_of_other_texts_are_numbered_on(tiny, sample, tmp_path: Path) -> None:
    made = [
        headscope.study(tiny, [text], out=tmp_path / f"{n}", length=32, keep_windows=True, progress=False)
        for n, text in enumerate(sample[:2])
    ]
    merged = headscope.merge([one.folder for one in made], out=tmp_path / "m").windows_table
    assert merged["window"].is_monotonic_increasing
    assert merged["window"].max() == sum(one.windows for one in made) - 1
    assert list(merged["text"].unique()) == [0, 1]


def test_a_study_without_them_says_how_to_have_them(tiny, tmp_path: Path, kept, small_shards) -> None:
    plain = small_study(tiny, tmp_path / "p", max_windows=4)
    assert not (plain.folder / FILE).exists()
    for ask in (lambda: plain.windows_table, lambda: plain.by("text")):
        with pytest.raises(HeadscopeError, match="keeps no numbers of every window"):
            ask()
    with pytest.raises(HeadscopeError, match="keeps no column 'lable' of its windows, only text, origin"):
        kept.by("lable")
    with pytest.raises(HeadscopeError, match="2 values for"):
        kept.by(["a", "b"])
    with pytest.raises(HeadscopeError, match="merg"):
        headscope.merge([plain.folder, kept.folder], out=tmp_path / "m")
    with pytest.raises(HeadscopeError, match="is for texts"):
        headscope.study_images(tiny, [np.zeros((8, 8, 3), np.uint8)], keep_windows=True, out=tmp_path / "i")


def test_null_studies_keep_no_windows(tiny, sample, tmp_path: Path) -> None:
    asked = {"length": 32, "max_windows": 8, "progress": False, "keep_windows": True}
    study = headscope.study(tiny, sample, out=tmp_path / "s", nulls=True, **asked)
    assert study.roles is not None
    assert not list((study.folder / "nulls").rglob(FILE))


def test_the_file_is_one_that_others_open(kept) -> None:
    file = pyarrow.parquet.ParquetFile(kept.folder / FILE)
    assert file.num_row_groups == 3
    assert len(pd.read_parquet(kept.folder / FILE)) == 40 * 12
