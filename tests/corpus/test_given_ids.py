"""Token ids that the user made: what is taken for a row, and what is refused."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BatchEncoding

from headscope.corpus.layouts import Passages, decoded, with_capitals
from headscope.corpus.nulls import shuffled_runs
from headscope.corpus.texts import Text, as_texts
from headscope.corpus.windows import Counts, Cutter, stack
from headscope.errors import HeadscopeError
from headscope.options import Options

ROWS = [[2, 7, 8, 3], [2, 9, 7, 3]]
FULL = np.ones((2, 4), np.int64)


def rows(texts, **how) -> list[list[int]]:
    return [text.given.ids.tolist() for text in as_texts(texts, **how)]


@pytest.mark.parametrize(
    "ids",
    [
        ROWS,
        tuple(map(tuple, ROWS)),
        iter(ROWS),
        np.array(ROWS),
        np.array(ROWS, np.uint16),
        torch.tensor(ROWS),
        list(torch.tensor(ROWS)),
        [np.array(row) for row in ROWS],
        {"input_ids": ROWS},
        {"input_ids": torch.tensor(ROWS), "attention_mask": torch.tensor(FULL)},
        BatchEncoding({"input_ids": np.array(ROWS), "attention_mask": FULL, "token_type_ids": FULL * 0}),
        [{"input_ids": row} for row in ROWS],
        [BatchEncoding({"input_ids": torch.tensor([row])}) for row in ROWS],
        pd.Series(ROWS),
        pd.DataFrame({"input_ids": ROWS, "label": [0, 1]}),
    ],
    ids=lambda ids: type(ids).__name__,
)
def test_rows_of_whole_numbers_are_token_ids(ids):
    assert rows(ids) == ROWS


def test_a_column_beside_a_text_is_asked_for():
    frame = pd.DataFrame({"input_ids": ROWS, "text": ["a", "b"]})
    assert [text.text for text in as_texts(frame)] == ["a", "b"]
    assert rows(frame, field="input_ids") == ROWS
    assert rows(frame.rename(columns={"input_ids": "tokens"}), field="tokens") == ROWS
    assert rows(frame.to_dict("records"), field="input_ids") == ROWS


def test_what_a_tokenizer_returns_for_one_text_is_one_row(tiny):
    encoded = tiny.tokenizer("The cat sat.")
    assert rows(encoded) == [encoded["input_ids"]]


def test_the_mask_says_what_is_padding():
    padded = {"input_ids": [[2, 7, 3, 0], ROWS[1]], "attention_mask": [[1, 1, 1, 0], [1, 1, 1, 1]]}
    assert rows(padded) == [[2, 7, 3], ROWS[1]]
    [first, _] = as_texts({**padded, "token_type_ids": [[0, 0, 1, 0], [0, 0, 0, 1]]})
    assert first.given.types.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array(ROWS, float), "texts is an array of float64; token ids must be whole numbers"),
        (torch.tensor(ROWS).bfloat16(), "an array of float32; token ids"),
        (np.array(ROWS) > 2, "an array of bool"),
        (np.array(ROWS[0]), r"shape \(4,\); of token ids give rows, as in \[ids\]"),
        (np.array([ROWS]), r"shape \(1, 2, 4\)"),
        (ROWS[0], r"text 0 is of type int; .* a list of rows, as in \[ids\]"),
        ([[2.0, 3.5]], "text 0 is of float64; token ids are whole numbers"),
        ([[True, False]], "text 0 is of bool"),
        ([[2, [3]]], "text 0 holds no row of numbers"),
        ([ROWS], r"text 0 is of shape \(2, 4\)"),
        ([[]], "text 0 is of type list"),
        ([ROWS[0], "a text"], "text 1 is texts, and those before it are token ids; give all of one kind"),
        ({"input_ids": [[2, 3], [2]], "attention_mask": [[1, 1]]}, "attention_mask has not as many rows"),
        ({"input_ids": [[2, 3]], "attention_mask": [[1]]}, "attention_mask of row 0 has 1 numbers and not 2"),
        (
            {"input_ids": [[2, 3]], "attention_mask": [[0, 1]]},
            "padding before or between tokens; padding must come las",
        ),
        ({"input_ids": [[2, 3, 4]], "attention_mask": [[1, 0, 1]]}, "padding before or between"),
        ({"input_ids": [[2, 3]], "attention_mask": [[2, 2]]}, "must be of 0 and 1"),
        ({"input_ids": [[2, 3]], "attention_mask": [[0, 0]]}, "row 0 holds no token ids"),
    ],
)
def test_what_is_not_such_a_row_is_refused_in_a_sentence(ids, message):
    with pytest.raises(HeadscopeError, match=message) as caught:
        rows(ids)
    assert "\n" not in str(caught.value)


def windows(model, texts, **options):
    cutter = Cutter(model.tokenizer, Options(short="pad", **options), model.embedding_rows)
    counts = Counts()
    return [window for text in as_texts(texts) for window in cutter.cut(text, counts)], counts


TEXTS = ["The old cat sat down. It slept well.", "Who fed the gulls? Nobody did.", "Rain."]


def test_ids_are_used_as_they_are(tiny):
    ids = [[7, 2, 9, 3, 3, 11], [2, 12, 3]]
    found, counts = windows(tiny, ids, length=8)
    assert [window.ids[: window.size].tolist() for window in found] == ids
    assert found[0].special.tolist() == [False, True, False, True, True, False, False, False]
    assert counts.windows == counts.texts == 2
    assert counts.tokens == 4


def test_ids_of_a_text_have_the_sentences_and_kinds_of_the_text(minilm):
    of_texts, counted = windows(minilm, TEXTS, length=16)
    of_ids, counted_too = windows(minilm, minilm.tokenizer(TEXTS, padding=True), length=16)
    for name in ("ids", "sentence", "kind", "special"):
        for one, other in zip(of_texts, of_ids, strict=True):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert (counted.tokens, counted.window_tokens) == (counted_too.tokens, counted_too.window_tokens)
    assert of_ids[0].text.text == "the old cat sat down. it slept well."


def test_a_separator_ends_a_sentence_and_a_mask_does_not(minilm):
    encoded = minilm.tokenizer("a man sleeps [SEP] the [MASK] rests")
    [window], _ = windows(minilm, [encoded["input_ids"]], length=12)
    assert window.sentence[: window.size].tolist() == [-1, 0, 0, 0, -1, 1, -1, 1, -1]


def test_padding_at_the_end_is_told_by_the_pad_token(tiny):
    pad = tiny.tokenizer.pad_token_id
    [padded, bare], _ = windows(tiny, [[2, 7, 3, pad, pad], [2, 7, 3]], length=8)
    assert np.array_equal(padded.ids, bare.ids)
    assert padded.size == bare.size == 3


def test_a_pad_token_with_another_meaning_is_asked_about(minilm):
    tokenizer = copy.deepcopy(minilm.tokenizer)
    tokenizer.pad_token = tokenizer.sep_token
    cutter = Cutter(tokenizer, Options(length=8, short="pad"))
    with pytest.raises(HeadscopeError, match=r"row 0 ends with \[SEP\], .*say which it is by an attention_mask"):
        list(cutter.cut(next(iter(as_texts(np.array([[101, 1996, 102]])))), Counts()))
    masked = {"input_ids": [[101, 1996, 102]], "attention_mask": [[1, 1, 1]]}
    assert next(cutter.cut(next(iter(as_texts(masked))), Counts())).size == 3


@pytest.mark.parametrize("wrong", [600, 10**9, -1])
def test_ids_beyond_the_vocabulary_are_refused(tiny, wrong):
    with pytest.raises(HeadscopeError, match=f"text 1 holds the id {wrong}, which is no token .* ids are 0 to 599"):
        windows(tiny, [[2, 7, 3], [2, wrong, 3]], length=8)


def test_a_row_longer_than_a_window_is_refused(tiny):
    with pytest.raises(HeadscopeError, match=r"text 0 has 9 tokens, more than .*length"):
        windows(tiny, [[2, *[7] * 7, 3]], length=8)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(5, 599), min_size=1, max_size=8), min_size=1, max_size=5), st.integers(0, 4))
def test_padding_changes_no_window(tiny, ids, more):
    width = max(map(len, ids)) + more
    masked = {
        "input_ids": [row + [0] * (width - len(row)) for row in ids],
        "attention_mask": [[1] * len(row) + [0] * (width - len(row)) for row in ids],
    }
    expected, _ = windows(tiny, ids, length=16)
    for given_ids in (masked, {name: np.array(column) for name, column in masked.items()}):
        found, _ = windows(tiny, given_ids, length=16)
        for one, other in zip(stack(expected).arrays, stack(found).arrays, strict=True):
            assert np.array_equal(one, other)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 30521), max_size=30))
def test_every_token_has_its_characters_of_the_decoded_text(minilm, ids):
    text, tokens = decoded(minilm.tokenizer, ids)
    assert text == minilm.tokenizer.backend_tokenizer.decode(ids, skip_special_tokens=False)
    assert [token.id for token in tokens] == ids
    assert "".join(text[token.start : token.end] for token in tokens) == text


def test_tokens_that_are_parts_of_one_character_have_all_of_it():
    from test_tokenizers import tokenizer_of

    tokenizer = tokenizer_of("gpt2")
    ids = tokenizer("A 𝄞 clef.")["input_ids"]
    text, tokens = decoded(tokenizer, ids)
    assert text == "A 𝄞 clef."
    pieces = [text[token.start : token.end] for token in tokens]
    assert sum("𝄞" in piece for piece in pieces) > 1
    unfinished = next(place for place, piece in enumerate(pieces) if "𝄞" in piece)
    assert len(decoded(tokenizer, ids[: unfinished + 1])[1]) == unfinished + 1


def test_sentences_of_two_passages_never_join():
    passages = Passages(["one is here", "two. Three. "], "auto")
    assert passages.text == "one is here\ntwo. Three. "
    assert [passages.sentence_of(place, False) for place in (0, 8, 12, 17)] == [0, 0, 1, 2]
    assert passages.sentence_of(len(passages.text) - 1, True) == 2
    assert Passages(["one ", "two"], "auto").sentence_of(3, True) == 0


def test_shuffled_runs_keep_each_sentence_together_and_within_its_stretch(minilm):
    encoded = minilm.tokenizer("One. Two [MASK] two. Three.", "Four is here. Five.")
    [window], _ = windows(minilm, encoded, length=24)
    found = [shuffled_runs(replace(window, text_number=number), 0) for number in range(20)]
    cut = encoded["input_ids"].index(102)
    assert len({tuple(each.ids) for each in found}) > 5
    for each in found:
        for part in (slice(0, cut), slice(cut, None)):
            assert sorted(each.ids[part]) == sorted(window.ids[part])
        assert np.array_equal(each.types, window.types)
        sentences = {tuple(each.ids[each.sentence == number]) for number in range(5)}
        assert sentences == {tuple(window.ids[window.sentence == number]) for number in range(5)}
        assert (np.diff(each.sentence[each.sentence >= 0]) >= 0).all()
        assert sorted(each.kind) == sorted(window.kind)


@given(st.text())
def test_capitals_change_no_length(text):
    assert len(with_capitals(text)) == len(text)


def test_rows_and_pairs_hash_unlike_texts():
    contents = [
        text.contents
        for text in (
            Text("", "a"),
            Text("", "a", "b"),
            *as_texts(ROWS),
            *as_texts({"input_ids": ROWS, "token_type_ids": ROWS}),
        )
    ]
    assert len(set(contents)) == len(contents)
