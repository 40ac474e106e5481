"""CSV, TSV and arrays of JSON: a text a row, in the column that is named; what does not fit is refused by its line."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from headscope.corpus import tables
from headscope.corpus.texts import read_texts
from headscope.errors import HeadscopeError

ROWS = [
    ("1", 'She said "no", and left.'),
    ("2", "Two lines,\nand a comma."),
    ("3", "Tab\there; ünïcode."),
]


def strings(path: Path, **how) -> list[str]:
    return [text.text for text in read_texts([path], **how)]


def written(path: Path, delimiter: str, column: str = "text") -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["id", column])
        writer.writerows(ROWS)
    return path


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_a_table_holds_a_text_a_row_quotes_and_new_lines_within_them_included(tmp_path, suffix, delimiter):
    path = written(tmp_path / f"a{suffix}", delimiter)
    expected = [text for _, text in ROWS]
    assert strings(path) == expected
    zipped = tmp_path / f"b{suffix}.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert strings(zipped) == expected
    assert strings(tmp_path) == expected * 2


def test_another_column_is_named_by_field_and_a_missing_one_names_those_there_are(tmp_path):
    path = written(tmp_path / "a.csv", ",", column="review")
    assert strings(path, field="review") == [text for _, text in ROWS]
    with pytest.raises(
        HeadscopeError, match=r"first line of .*a\.csv has no column 'text', only id, review; .* with field"
    ):
        strings(path)
    (tmp_path / "twice.csv").write_text("text,text\na,b\n")
    with pytest.raises(HeadscopeError, match="several columns 'text'"):
        strings(tmp_path / "twice.csv")


def test_a_row_is_known_by_the_line_it_begins_on(tmp_path):
    path = written(tmp_path / "a.csv", ",")
    assert [text.origin.partition(", ")[2] for text in read_texts([path])] == ["line 2", "line 3", "line 5"]


def test_a_table_as_spreadsheets_write_it(tmp_path):
    """A byte order mark, carriage returns, blanks in the header, empty cells and lines."""
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfid, text \r\n1,One.\r\n\r\n2,\r\n3,  \r\n4,Four.\r\n")
    assert strings(tmp_path / "a.csv") == ["One.", "Four."]


def test_a_cell_may_be_longer_than_the_csv_module_allows_by_itself(tmp_path):
    limit = csv.field_size_limit()
    (tmp_path / "a.csv").write_text("text\n" + "word " * limit + "\n")
    assert len(strings(tmp_path / "a.csv")[0]) > limit
    assert csv.field_size_limit() == limit


BAD_TABLES = {
    "empty.csv": (b"\n\n", "is empty"),
    "nul.csv": ("id\ttext\n1\ta".encode("utf-16"), "line 1 is not text: it holds NUL bytes"),
    "latin.csv": (b"text\nok\ncaf\xe9\n", "line 3 is not UTF-8: it holds the byte 0xe9"),
    "ragged.csv": (b"id,text\n1,ok\n2,a,b\n", "line 3 has 3 fields where the first line has 2"),
    "few.csv": (b"id,text\n1\n", "line 2 has 1 field where"),
    "quoted.tsv": (b'id\ttext\n1\t"No" she said\n', "line 2 is not a row of CSV"),
    "open.csv": (b'id,text\n1,ok\n2,"never closed\n3,x\n', "line 3 is not a row of CSV"),
    "bars.csv": (b"id|text\n1|ok\n", r"no column 'text', only id\|text;"),
    "cut.csv.gz": (gzip.compress(b"text\n" + b"Hello\n" * 999)[:-20], "not a whole gzip file"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_what_does_not_fit_is_named_in_one_sentence(tmp_path, name):
    content, message = BAD_TABLES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(HeadscopeError, match=message) as caught:
        strings(tmp_path / name)
    assert name in str(caught.value)


def test_bad_rows_are_counted_when_asked(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'id,text\n1,one\n2\n3,"a"b\n4,\xff\n5,two\n')
    source = read_texts([tmp_path / "a.csv"], skip_bad=True)
    assert [text.text for text in source] == ["one", "two"]
    assert source.bad == 3


def test_a_line_too_long_for_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "LONGEST_TEXT", 1000)
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"text\n" + b"a" * 100_000))
    with pytest.raises(HeadscopeError, match=r"bomb\.csv\.gz, line 2 is longer than"):
        strings(tmp_path / "bomb.csv.gz")


def test_the_share_of_a_table_that_was_read_grows_to_one(tmp_path):
    (tmp_path / "a.csv").write_text("text\n" + "word word\n" * 5000)
    source = read_texts([tmp_path / "a.csv"])
    shares = [source.read_share for _ in source]
    assert shares == sorted(shares)
    assert shares[0] < 0.9
    assert source.read_share == 1


def test_a_json_array_holds_strings_or_objects(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(["One.", "Two."]))
    assert strings(path) == ["One.", "Two."]
    path.write_text(json.dumps([{"body": "One."}, {"body": "Two."}]))
    assert strings(path, field="body") == ["One.", "Two."]
    with pytest.raises(HeadscopeError, match=r"a\.json, element 0 has no string field 'text', only body;"):
        strings(path)
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert strings(tmp_path / "b.json.gz", field="body") == ["One.", "Two."]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a"}\n{"text": "b"}\n', "if it holds an object a line, call it .jsonl"),
        ('{"text": "a"}', "holds no JSON array"),
        ("[]", "is empty"),
        ("[1]", "element 0 has no string field"),
        ("[" * 100_000, "is not one JSON array"),
    ],
)
def test_other_json_is_refused_by_name(tmp_path, content, message):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(HeadscopeError, match=message) as caught:
        strings(tmp_path / "a.json")
    assert "a.json" in str(caught.value)


def test_a_json_line_without_the_field_names_those_there_are(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"title": "x", "body": "y"}\n')
    with pytest.raises(HeadscopeError, match=r"line 1 has no string field 'text', only title, body; .* with field"):
        strings(tmp_path / "a.jsonl")


def test_rows_after_one_with_a_nul_byte_are_read(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"id,text\n1,one\n2,t\0wo\n3,three\n4,\xff\n5,five\n")
    source = read_texts([tmp_path / "a.csv"], skip_bad=True)
    assert [(text.text, text.origin.partition(", ")[2]) for text in source] == [
        ("one", "line 2"), ("three", "line 4"), ("five", "line 6"),
    ]  # fmt: skip
    assert source.bad == 2


def test_an_empty_text_is_none_whatever_table_it_stands_in(tmp_path):
    rows = [{"text": "One."}, {"text": ""}, {"text": "  "}, {"text": "Two."}]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "b.json").write_text(json.dumps([row["text"] for row in rows]))
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "a.csv").write_text("id,text\n1,One.\n2,\n3,  \n4,Two.\n")
    for name in ("a.json", "b.json", "a.jsonl", "a.csv"):
        assert strings(tmp_path / name) == ["One.", "Two."], name


def test_columns_may_be_parted_by_semicolons(tmp_path):
    (tmp_path / "a.csv").write_bytes('\ufeffid;text;label\r\n1;One, two.;a\r\n2;"Three; four.";b\r\n'.encode())
    assert strings(tmp_path / "a.csv") == ["One, two.", "Three; four."]
