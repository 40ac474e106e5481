"""Texts come from files, folders, JSONL, Parquet and gzip, in a fixed order; what can't be used is named."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from headscope.corpus import text_files
from headscope.corpus.texts import as_texts, read_texts, sample_texts
from headscope.errors import HeadscopeError


def strings(source) -> list[str]:
    return [text.text for text in source]


def test_the_sample_holds_sixty_articles_and_texts_of_other_shapes_and_lengths():
    articles = list(sample_texts())
    words = [len(article.text.split()) for article in articles]
    assert sum(400 <= count <= 500 for count in words) >= 60
    assert sum(30 <= count <= 90 for count in words) >= 2
    assert sum(1200 <= count <= 1800 for count in words) >= 2
    assert len({article.text for article in articles}) == len(articles)
    assert [article.origin for article in articles] == sorted(article.origin for article in articles)
    everything = "\n".join(article.text for article in articles)
    tripwires = (r"\bDr\. ", r"\be\.g\.", r"\d\.\d", r"\d,\d{3}", r"[éüøñ]", r"[“\"]", r"\w-\w", r"; ", r"\bc\. \d")
    shapes = (
        r"(?m)^## \w",
        r"(?m)^- \w",
        r"(?m)^1\. ",
        r"(?m)^    def ",
        r"https://\S",
        r"(?m)^“.*”$",
        r"(?m)^What.*\?$",
    )
    for tripwire in (*tripwires, *shapes):
        assert re.search(tripwire, everything), tripwire


def test_a_file_is_one_text_or_one_a_line(tmp_path: Path):
    file = tmp_path / "a.txt"
    file.write_text("One.\n\nTwo.\n", "utf-8")
    assert strings(read_texts([file])) == ["One.\n\nTwo.\n"]
    assert strings(read_texts([file], lines=True)) == ["One.", "Two."]


def test_jsonl_parquet_gzip_and_folders_read_alike(tmp_path: Path):
    expected = ["First text, with ünïcode.", "Second text."]
    lines = "".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(expected))
    (tmp_path / "a.jsonl").write_text(lines, "utf-8")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    pd.DataFrame({"text": expected}).to_parquet(tmp_path / "c.parquet")
    (tmp_path / "d.parquet.gz").write_bytes(gzip.compress((tmp_path / "c.parquet").read_bytes()))
    for name in ("a.jsonl", "b.jsonl.gz", "c.parquet", "d.parquet.gz"):
        assert strings(read_texts([tmp_path / name])) == expected, name
    (tmp_path / "ignored.bin").write_bytes(b"\0\1")
    (tmp_path / ".hidden.txt").write_text("hidden", "utf-8")
    assert strings(read_texts([tmp_path])) == expected * 4


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Line one.\nLine two.\n")))
    assert strings(read_texts(["-"], lines=True)) == ["Line one.", "Line two."]


def test_standard_input_that_is_a_terminal_says_what_to_do(monkeypatch, capsys):
    terminal = io.TextIOWrapper(io.BytesIO(b"Typed."))
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", terminal)
    assert strings(read_texts(["-"])) == ["Typed."]
    assert "Ctrl-D" in capsys.readouterr().err


def test_a_subfolder_that_may_not_be_read_is_refused_not_passed_over(tmp_path: Path, monkeypatch):
    (tmp_path / "shut").mkdir()
    (tmp_path / "a.txt").write_text("A text.", "utf-8")
    listing = os.scandir

    def scandir(place):
        if Path(place).name == "shut":
            raise PermissionError(13, "Permission denied", str(place))
        return listing(place)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(HeadscopeError, match=r"shut can't be read: Permission denied"):
        read_texts([tmp_path])


def test_another_field_can_be_named(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text('{"body": "Hello."}\n', "utf-8")
    assert strings(read_texts([tmp_path / "a.jsonl"], field="body")) == ["Hello."]


BAD_FILES = {
    "empty.txt": (b"", "empty"),
    "blank.txt": (b" \n\n", "empty"),
    "binary.txt": (b"abc\0\1\2", "not text"),
    "latin.txt": ("caf\xe9 au lait".encode("latin-1"), "not UTF-8: byte 3 is 0xe9"),
    "broken.jsonl": (b'{"text": "ok"}\n{"text": \n', r"broken.jsonl, line 2 is not JSON"),
    "fieldless.jsonl": (b'{"text": "ok"}\n{"body": "x"}\n', "line 2 has no string field 'text'"),
    "number.jsonl": (b'{"text": 3}\n', "line 1 has no string field 'text'"),
    "surrogate.jsonl": (b'{"text": "\\ud800"}\n', "lone surrogate"),
    "cut.txt.gz": (gzip.compress(b"Hello " * 999)[:-20], "not a whole gzip file"),
    "fake.txt.gz": (b"Hello", "not a whole gzip file"),
    "fake.parquet": (b"PAR1 no", "not a readable Parquet file"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_what_cannot_be_used_is_named_in_one_sentence(tmp_path: Path, name: str):
    content, message = BAD_FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(HeadscopeError, match=message) as caught:
        strings(read_texts([tmp_path / name]))
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_records_are_counted_when_asked(tmp_path: Path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "one"}\nnonsense\n{"text": 5}\n{"text": "\xff"}\n{"text": "two"}\n')
    source = read_texts([tmp_path / "a.jsonl"], skip_bad=True)
    assert strings(source) == ["one", "two"]
    assert source.bad == 3


def test_missing_files_and_folders_without_texts_are_named(tmp_path: Path):
    with pytest.raises(HeadscopeError, match="no file or folder"):
        read_texts([tmp_path / "nowhere.txt"])
    with pytest.raises(HeadscopeError, match="holds no texts"):
        read_texts([tmp_path])


def test_a_parquet_column_of_numbers_is_refused(tmp_path: Path):
    pd.DataFrame({"text": [1, 2]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(HeadscopeError, match="holds int64, not strings"):
        strings(read_texts([tmp_path / "a.parquet"]))
    with pytest.raises(HeadscopeError, match="no column 'body', only text"):
        strings(read_texts([tmp_path / "a.parquet"], field="body"))


def test_a_text_too_large_for_memory_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(text_files, "LONGEST_TEXT", 1000)
    (tmp_path / "bomb.txt.gz").write_bytes(gzip.compress(b"a" * 100_000))
    with pytest.raises(HeadscopeError, match=r"bomb\.txt\.gz holds more than"):
        strings(read_texts([tmp_path / "bomb.txt.gz"]))


def test_the_share_read_grows_to_one(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text('{"text": "word word"}\n' * 5000, "utf-8")
    source = read_texts([tmp_path / "a.jsonl"])
    shares = [source.read_share for _ in source]
    assert shares == sorted(shares)
    assert source.read_share == 1


def test_python_users_pass_lists_or_paths(tmp_path: Path):
    (tmp_path / "a.txt").write_text("From a file.", "utf-8")
    assert strings(as_texts(["a", "b"])) == ["a", "b"]
    assert strings(as_texts(tmp_path / "a.txt")) == ["From a file."]
    for wrong in ("a single string", 5):
        with pytest.raises(HeadscopeError, match="give a list of strings"):
            as_texts(wrong)
    with pytest.raises(HeadscopeError, match="text 1 is of type int"):
        strings(as_texts(["a", 1]))


def test_files_of_a_folder_that_are_no_texts_are_counted(tmp_path):
    for name in ("a.txt", "b.md", "c.html", "d.pdf", ".hidden", "about.json"):
        (tmp_path / name).write_text("Some words.")
    texts = read_texts([tmp_path])
    assert len(list(texts)) == 2
    assert texts.other_files == 3


def test_a_field_of_what_has_none_is_refused(tmp_path: Path, monkeypatch):
    (tmp_path / "a.txt").write_text('{"body": "One."}')
    with pytest.raises(HeadscopeError, match=r"a\.txt has no field 'body', for it is text; give \.jsonl"):
        read_texts([tmp_path / "a.txt"], field="body")
    with pytest.raises(HeadscopeError, match="Standard input has no fields; give a file, or leave out field"):
        read_texts("-", field="body")
    (tmp_path / "b.jsonl").write_text('{"body": "Two."}')
    assert strings(read_texts([tmp_path], field="body")) == ['{"body": "One."}', "Two."]


def test_ndjson_is_jsonl(tmp_path: Path):
    (tmp_path / "a.ndjson").write_text('{"text": "One."}\n{"text": "Two."}\n')
    assert strings(read_texts(tmp_path)) == ["One.", "Two."]


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_is_not_this_folder(name: str):
    with pytest.raises(HeadscopeError, match="name of a file or folder is empty"):
        read_texts([name])


def test_linked_folders_are_read_once_and_never_in_circles(tmp_path: Path):
    for place in ("corpus", "elsewhere", "elsewhere/deeper"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
    (tmp_path / "corpus" / "a.txt").write_text("One.")
    (tmp_path / "elsewhere" / "b.txt").write_text("Two.")
    (tmp_path / "elsewhere" / "deeper" / "c.txt").write_text("Three.")
    (tmp_path / "corpus" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "corpus" / "again").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "corpus" / "back").symlink_to(tmp_path / "corpus")
    (tmp_path / "elsewhere" / "deeper" / "up").symlink_to(tmp_path / "elsewhere")
    assert strings(read_texts(tmp_path / "corpus")) == ["One.", "Two.", "Three."]


def test_a_study_folder_is_no_text(tmp_path: Path):
    (tmp_path / "study.json").write_text("{}")
    (tmp_path / "heads.csv").write_text("layer,head\n0,0\n")
    with pytest.raises(HeadscopeError, match="is a study folder; give the texts to be read"):
        read_texts([tmp_path])
