"""Sentence pairs: two texts in one window, as the tokenizer joins them, whose sentences stay apart."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_given import Rows
from test_tokenizers import tokenizer_of

from headscope.corpus.nulls import shuffled_sentences
from headscope.corpus.texts import Text, as_texts, read_texts
from headscope.corpus.windows import Counts, Cutter
from headscope.errors import HeadscopeError
from headscope.options import Options

PAIRS = [("A man sleeps", "He rests. So does she."), ("Rain fell.", "It was dry, they say.")]
FIELDS = ("premise", "hypothesis")
ROWS = [dict(zip(FIELDS, pair, strict=True)) | {"label": 1} for pair in PAIRS]


def pairs(texts, **how) -> list[tuple[str, str | None]]:
    return [(text.text, text.second) for text in as_texts(texts, **how)]


@pytest.mark.parametrize("texts", [PAIRS, iter(PAIRS), [list(pair) for pair in PAIRS], pd.Series(PAIRS)])
def test_two_strings_are_a_pair(texts):
    assert pairs(texts) == PAIRS


@pytest.mark.parametrize("texts", [ROWS, pd.DataFrame(ROWS), Rows(["label", *FIELDS], ROWS)])
def test_two_fields_hold_pairs(texts):
    assert pairs(texts, field=FIELDS) == PAIRS
    assert pairs(texts, field=["hypothesis", "premise"]) == [pair[::-1] for pair in PAIRS]


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_files_hold_pairs_in_two_fields(kind: str, tmp_path: Path):
    file = tmp_path / f"nli.{kind}"
    frame = pd.DataFrame(ROWS)
    match kind:
        case "jsonl":
            file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        case "json":
            file.write_text(json.dumps(ROWS))
        case "parquet":
            frame.to_parquet(file)
        case _:
            frame.to_csv(file, index=False, sep="\t" if kind == "tsv" else ",")
    texts = read_texts(file, field=FIELDS)
    assert pairs(texts) == PAIRS
    assert pairs(texts.reading.read()) == PAIRS
    with pytest.raises(HeadscopeError, match=r"'claim'.*premise, hypothesis, label"):
        pairs(read_texts(file, field=("premise", "claim")))


@pytest.mark.parametrize(
    ("texts", "how", "message"),
    [
        ([("a", "b", "c")], {}, "text 0 is a tuple of 3; a pair is two strings"),
        ([("a", None)], {}, r"The second text of text 0 is missing \(None\)"),
        ([("a", 5)], {}, "The second text of text 0 is of type int"),
        ([(" ", "b")], {}, "text 0 is no pair: its first text is empty"),
        ([("a", "\ud800")], {}, "The second text of text 0 is not valid Unicode"),
        ([("a", "b"), "c"], {}, "text 1 is texts, and those before it are pairs"),
        (ROWS, {"field": ("premise", "claim")}, "text 0 has no field 'claim', only premise, hypothesis, label"),
        (pd.DataFrame(ROWS), {"field": ("premise", "claim")}, "The DataFrame has no column 'claim'"),
        (ROWS, {"field": ("a", "b", "c")}, "it is the name of one field, or of two"),
        (ROWS, {"field": ("premise", 1)}, "it is the name of one field, or of two"),
    ],
)
def test_what_is_no_pair_is_refused(texts, how, message):
    with pytest.raises(HeadscopeError, match=message):
        pairs(texts, **how)


def test_files_without_fields_have_no_pairs(tmp_path: Path):
    (tmp_path / "a.txt").write_text("A text.")
    with pytest.raises(HeadscopeError, match=r"a\.txt has no fields to take pairs from"):
        pairs(read_texts(tmp_path / "a.txt", field=FIELDS))
    with pytest.raises(HeadscopeError, match="Standard input has no fields"):
        read_texts("-", field=FIELDS)
    (tmp_path / "b.csv").write_text("premise,hypothesis\nOne.,\n,\n")
    with pytest.raises(HeadscopeError, match=r"b\.csv, line 2 is no pair: its second text is empty"):
        pairs(read_texts(tmp_path / "b.csv", field=FIELDS))


def window_of(tokenizer, pair: tuple[str, str], length: int = 24, counts: Counts | None = None):
    cutter = Cutter(tokenizer, Options(length=length, short="pad"))
    [window] = cutter.cut(Text("p", *pair), counts or Counts())
    return window


@pytest.mark.parametrize("name", ["bert", "roberta"])
@pytest.mark.parametrize("pair", PAIRS)
def test_a_window_is_what_the_tokenizer_makes_of_two_texts(name, pair):
    tokenizer = tokenizer_of(name)
    window = window_of(tokenizer, pair, 64)
    expected = tokenizer(*pair)
    assert window.ids[: window.size].tolist() == expected["input_ids"]
    if "token_type_ids" in expected:
        assert window.types[: window.size].tolist() == expected["token_type_ids"]


def test_sentences_of_the_second_text_never_join_the_first(minilm):
    window = window_of(minilm.tokenizer, PAIRS[0])
    assert window.sentence[: window.size].tolist() == [-1, 0, 0, 0, -1, 1, 1, 1, 2, 2, 2, 2, -1]
    assert window.text.text == "\n".join(PAIRS[0])
    pieces = [window.text.text[left:right] for left, right in zip(window.start, window.end, strict=True)]
    assert [piece for piece in pieces if piece] == ["A", "man", "sleeps", "He", "rests", ".", "So", "does", "she", "."]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(5, 32))
def test_a_pair_that_is_too_long_is_cut_as_transformers_cuts_it(minilm, first, second, length):
    counts = Counts()
    pair = " ".join(["cat"] * first), " ".join(["dog"] * second)
    window = window_of(minilm.tokenizer, pair, length, counts)
    expected = minilm.tokenizer(*pair, truncation="longest_first", max_length=length)
    assert window.ids[: window.size].tolist() == expected["input_ids"]
    assert counts.pairs_cut == (first + second + 3 > length)


def test_a_text_of_a_pair_is_not_tokenized_to_its_end(minilm):
    counts = Counts()
    window = window_of(minilm.tokenizer, ("word " * 10**6, "end"), 8, counts)
    assert window.size == 8
    assert counts.pairs_cut == 1


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_tokenizer_that_puts_nothing_between_two_texts_knows_no_pairs(name):
    with pytest.raises(HeadscopeError, match="puts no token between the two texts of a pair"):
        window_of(tokenizer_of(name), PAIRS[0])


def test_short_pairs_can_be_left_out(minilm):
    counts = Counts()
    cutter = Cutter(minilm.tokenizer, Options(length=24, short="drop"))
    assert not list(cutter.cut(Text("p", *PAIRS[0]), counts))
    assert counts.short_windows_left_out == counts.texts_without_window == 1


def test_sentences_are_shuffled_within_each_text_of_a_pair():
    text = Text("p", "One. Two. Three. Four.", "Five. Six. Seven. Eight.")
    found = shuffled_sentences(text, 3, 0, "english")
    assert found != text
    assert sorted(found.text.split()) == sorted(text.text.split())
    assert sorted(found.second.split()) == sorted(text.second.split())
    orders = [
        [[given.split().index(word) for word in one.split()] for one, given in zip(each[1:3], text[1:3], strict=True)]
        for each in (shuffled_sentences(text, number, 0, "english") for number in range(4))
    ]
    assert any(first != second for first, second in orders)
