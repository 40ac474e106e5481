"""What a user keeps of the texts: from every kind of table, in `windows.parquet`, and as tables for each value."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

import headscope
from headscope.errors import HeadscopeError

LABELS = ["calm", "rough", None]


@pytest.fixture(scope="module")
def frame(sample) -> pd.DataFrame:
    rows = 24
    return pd.DataFrame(
        {
            "body": [text[:400] for text in sample[:rows]],
            "label": [LABELS[number % 3] for number in range(rows)],
            "year": [1990 + number % 4 for number in range(rows)],
        }
    )


def measured(model, texts, out: Path, **more):
    asked = {"length": 32, "progress": False, "meta": ("label", "year"), "windows": "first", **more}
    return headscope.study(model, texts, out=out, **asked)


@pytest.fixture(scope="module")
def study(tiny, frame, tmp_path_factory) -> headscope.Study:
    return measured(tiny, frame, tmp_path_factory.mktemp("meta") / "frame", field="body")


def test_every_window_carries_what_was_kept_of_its_text(study, frame) -> None:
    table = study.windows_table
    each = table.drop_duplicates("window")
    assert each["year"].tolist() == frame["year"].tolist()
    assert each["year"].dtype == np.int64
    assert each["label"].astype(object).fillna("").tolist() == frame["label"].fillna("").tolist()


def test_files_of_every_kind_give_the_same(tiny, frame, study, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_json(tmp_path / "a.json", orient="records")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    expected = study.windows_table.drop(columns="origin")
    for name in ("a.csv", "a.tsv", "a.parquet", "a.json", "a.jsonl"):
        texts = headscope.read_texts(tmp_path / name, field="body")
        found = measured(tiny, texts, tmp_path / f"{name}-study").windows_table.drop(columns="origin")
        pd.testing.assert_frame_equal(found, expected, check_categorical=False, obj=name)
    dicts = measured(tiny, frame.to_dict("records"), tmp_path / "dicts", field="body")
    pd.testing.assert_frame_equal(dicts.windows_table.drop(columns="origin"), expected, check_categorical=False)


def test_tables_by_label_are_those_of_a_study_of_its_texts(tiny, frame, study, tmp_path: Path) -> None:
    by = study.by("label")
    assert by.values == ["calm", "rough"]
    for label in by.values:
        alone = measured(tiny, frame[frame["label"] == label], tmp_path / label, field="body")
        mine = by.heads[by.heads["label"] == label].reset_index(drop=True)
        for name in mine.columns[1:]:
            np.testing.assert_allclose(mine[name], alone.heads[name], rtol=1e-4, atol=1e-6, err_msg=name)
    given = study.by(frame["label"])
    pd.testing.assert_frame_equal(given.heads, by.heads)
    rows = by.intervals.query("label == 'calm' and column == 'pairs_per_window'")
    assert (rows["groups"] == 8).all()
    assert (rows["low"] <= rows["value"]).all()


def test_the_tables_lie_in_the_folder(study) -> None:
    for name in ("label", "year"):
        written = pd.read_csv(study.folder / f"by_{name}.csv")
        assert list(written.columns) == [name, "layer", "head", "column", "value", "low", "high", "groups"]
        assert len(written) == len(study.by(name).intervals)
        assert (study.folder / f"by_{name}.parquet").is_file()


def test_what_can_not_be_kept_is_refused_before_anything_is_measured(tiny, sample, frame, tmp_path: Path) -> None:
    rows = [{"text": "The tide was low. " * 40, "label": None}] * 3
    (tmp_path / "a.txt").write_text(sample[0])
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    for texts, more, said in (
        (frame, {"field": "body", "meta": ("lable",)}, "The DataFrame has no column 'lable', only body, label, year"),
        (sample[:2], {}, "text 0 has no columns or fields to keep label, year of"),
        (tmp_path / "a.txt", {}, "a.txt has no columns or fields to keep label, year of"),
        (tmp_path / "a.jsonl", {}, "None of the first 3 texts has a value of 'label'"),
        (frame, {"field": "body", "meta": ("layer",)}, "has a column of that name already"),
        (frame, {"field": "body", "meta": "label"}, "it must name columns"),
    ):
        with pytest.raises(HeadscopeError, match=said):
            measured(tiny, texts, tmp_path / "s", **more)
        assert not (tmp_path / "s").exists()


def test_pairs_keep_what_stands_beside_them(tiny, tmp_path: Path) -> None:
    rows = [
        {
            "a": f"The tide of day {day} was low. Gulls came",
            "b": f"Nobody fed them. Day {day} was grey.",
            "label": day % 2,
        }
        for day in range(12)
    ]
    study = headscope.study(
        tiny, rows, out=tmp_path / "pairs", field=("a", "b"), meta=("label",), progress=False, length=32
    )
    each = study.windows_table.drop_duplicates("window")
    assert each["label"].tolist() == [day % 2 for day in range(12)]
    assert study.by("label").values == [0, 1]


def test_the_same_texts_are_measured_again_without_what_was_kept(tiny, frame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "a.csv", index=False)
    texts = headscope.read_texts(tmp_path / "a.csv", field="body")
    measured(tiny, texts, tmp_path / "with", meta=("label",))
    again = measured(tiny, texts, tmp_path / "without", meta=(), keep_windows=True)
    assert "label" not in again.windows_table


MIXED = {
    "whole numbers, then words": ([4] * 16 + ["n/a"] * 8, {"int64", "string"}),
    "nothing, then whole numbers": ([None] * 16 + [7] * 8, {"string", "int64"}),
    "whole numbers, then nothing": ([7] * 16 + [None] * 8, {"int64", "string"}),
    "whole numbers, then numbers": ([4] * 16 + [4.5] * 8, {"int64", "double"}),
    "numbers, then words": ([4, 4.5] * 8 + ["n/a"] * 8, {"double", "string"}),
    "truth, then words": ([True, False] * 8 + ["n/a"] * 8, {"bool", "string"}),
    "large whole numbers, then numbers": ([2**60 + 1] * 16 + [0.5] * 8, {"int64", "double"}),
    "the same everywhere": (["calm", "rough"] * 12, {"string"}),
}


@pytest.mark.parametrize("which", MIXED)
def test_parts_whose_values_are_of_other_types_merge_into_the_whole(
    tiny, frame, tmp_path: Path, which, small_shards
) -> None:
    values, types = MIXED[which]
    rows = [{"text": text, "cell": value} for text, value in zip(frame["body"], values, strict=True)]

    def run(name: str, **more) -> headscope.Study:
        return measured(tiny, rows, tmp_path / name, meta=("cell",), **more)

    def type_of(study: headscope.Study) -> str:
        kind = pyarrow.parquet.read_schema(study.folder / "windows.parquet").field("cell").type
        return str(getattr(kind, "value_type", kind))

    whole = run("whole")
    parts = [run(f"part-{n}", shard=f"{n}/2") for n in (1, 2)]
    assert set(map(type_of, parts)) == types
    merged = headscope.merge([part.folder for part in parts], out=tmp_path / "merged")
    assert type_of(merged) == type_of(whole)
    pd.testing.assert_frame_equal(merged.windows_table, whole.windows_table, check_categorical=False)
    mine, its = ({file.name for file in one.folder.glob("by_*")} for one in (merged, whole))
    assert mine == its


def test_a_row_that_is_too_short_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text,label\n1,One.,calm\n2,Two.\n3,Three.,rough\n")
    texts = headscope.read_texts(tmp_path / "a.csv", skip_bad=True)
    texts.keep(("label",))
    assert [(text.text, text.meta) for text in texts] == [("One.", ("calm",)), ("Three.", ("rough",))]
    assert texts.bad == 1


def test_values_that_no_table_can_hold_are_written_in_words(tiny, frame, tmp_path: Path) -> None:
    rows = [{"text": text, "label": "\ud83d", "number": 2**64} for text in frame["body"]]
    study = measured(tiny, rows, tmp_path / "odd", meta=("label", "number"))
    assert set(study.windows_table["label"]) == {"\\ud83d"}
    assert set(study.windows_table["number"]) == {str(2**64)}


def test_columns_that_differ_in_what_files_can_not_be_called_have_a_file_each(tiny, frame, tmp_path: Path) -> None:
    table = frame.assign(**{"a b": ["x"] * 24, "a_b": ["y"] * 24})
    study = measured(tiny, table, tmp_path / "named", field="body", meta=("a b", "a_b"))
    assert {file.name for file in study.folder.glob("by_*.csv")} == {"by_a_b.csv", "by_a_b_.csv"}


def test_a_column_is_named_once(tiny, frame, tmp_path: Path) -> None:
    with pytest.raises(HeadscopeError, match="meta names label twice"):
        measured(tiny, frame, tmp_path / "twice", field="body", meta=("label", "label"))
