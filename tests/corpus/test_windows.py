"""Texts become windows: consecutive, of S tokens, with the sentence and kind of every token."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.corpus.kinds import KINDS, kind_of
from headscope.corpus.sentences import sentence_starts
from headscope.corpus.texts import Text
from headscope.corpus.windows import Counts, Cutter, cut_all, stack
from headscope.errors import HeadscopeError
from headscope.options import Options

TEXT = (
    "Dr. Ada Lovelace met Charles Babbage in 1833. He showed her a machine; it had 3.5 tons of brass! "
    "Was it finished? No, it was not. Ada Lovelace wrote about it anyway, in Notes A–G."
)


def windows_of(model, text: str, counts: Counts | None = None, **options):
    return list(Cutter(model.tokenizer, Options(**options)).cut(Text("t", text), counts or Counts()))


def kinds_of(window) -> list[str]:
    return [KINDS[kind] for kind in window.kind[: window.size]]


def pieces_of(window) -> list[str]:
    return [window.text.text[a:b] for a, b in zip(window.start, window.end, strict=True)][: window.size]


def test_a_window_begins_with_cls_and_ends_with_sep_and_covers_its_text(minilm):
    (window,) = windows_of(minilm, TEXT, length=64, short="pad")
    tokens = minilm.tokenizer.convert_ids_to_tokens(window.ids[: window.size].tolist())
    assert tokens[0] == "[CLS]"
    assert tokens[-1] == "[SEP]"
    assert "".join(pieces_of(window)) == TEXT.replace(" ", "")
    assert window.special.nonzero()[0].tolist() == [0, window.size - 1]


def test_consecutive_windows_hold_the_whole_text_in_order(minilm, sample):
    text = sample[0]
    whole = minilm.tokenizer(text, add_special_tokens=False)["input_ids"]
    counts = Counts()
    windows = windows_of(minilm, text, counts, length=32)
    joined = [token for window in windows for token in window.ids[1:-1].tolist()]
    assert joined == whole[: len(joined)]
    assert len(windows) == len(whole) // 30
    assert counts.windows == len(windows)
    assert counts.short_windows_left_out == (1 if len(whole) % 30 else 0)


def test_sentences_are_those_of_the_splitter_and_special_tokens_have_none(minilm):
    (window,) = windows_of(minilm, TEXT, length=64, short="pad")
    starts = sentence_starts(TEXT)
    assert [TEXT[start:].split()[0] for start in starts] == ["Dr.", "He", "Was", "No,", "Ada"]
    assert window.sentence[0] == window.sentence[window.size - 1] == -1
    sentence_of = dict(zip(pieces_of(window), window.sentence, strict=False))
    assert sentence_of["Dr"] == sentence_of["1833"] == 0
    assert sentence_of["machine"] == sentence_of["brass"] == sentence_of["!"] == 1
    assert sentence_of["Notes"] == 4
    assert (np.diff(window.sentence[1 : window.size - 1]) >= 0).all()


def test_every_token_has_the_kind_of_its_characters(minilm):
    (window,) = windows_of(minilm, TEXT, length=64, short="pad")
    kind = dict(zip(pieces_of(window)[1:-1], kinds_of(window)[1:-1], strict=True))
    assert kinds_of(window)[0] == "first"
    assert kinds_of(window)[-1] == "special"
    assert [kind[p] for p in (".", "!", "?")] == ["sentence_end"] * 3
    assert kind[","] == "comma"
    assert kind[";"] == kind["–"] == "punctuation"
    assert kind["Ada"] == kind["1833"] == "word"


@pytest.mark.parametrize(
    ("piece", "kind"),
    [("...", "sentence_end"), ("?!", "sentence_end"), (".,", "punctuation"), (",,", "punctuation"),
     ("€", "punctuation"), ("+", "punctuation"), ("«", "punctuation"),
     ("é", "word"), ("", "word"), ("a.", "word"), ("½", "word")],
)  # fmt: skip
def test_kinds_of_unusual_pieces(piece, kind):
    assert KINDS[kind_of(piece)] == kind


def test_windows_in_one_sentence_are_counted(minilm):
    counts = Counts()
    windows_of(minilm, "word " * 100 + "end. Another sentence begins here, and it goes on for long.", counts, length=32)
    assert (counts.windows, counts.windows_in_one_sentence) == (3, 3)
    windows_of(minilm, TEXT, counts := Counts(), length=32)
    assert (counts.windows, counts.windows_in_one_sentence) == (1, 0)


def test_only_the_first_window_of_each_text(minilm, sample):
    counts = Counts()
    windows = windows_of(minilm, sample[0], counts, length=32, windows="first")
    assert len(windows) == 1
    assert counts.later_windows_left_out > 5


def test_a_short_window_is_left_out_and_counted_or_padded(minilm):
    counts = Counts()
    assert windows_of(minilm, "Too short.", counts, length=32) == []
    assert (counts.texts, counts.texts_without_window, counts.short_windows_left_out) == (1, 1, 1)
    (window,) = windows_of(minilm, "Too short.", length=32, short="pad")
    assert window.size == 5
    batch = stack([window])
    assert batch.mask.sum() == 5
    assert (batch.ids[0, 5:] == minilm.tokenizer.pad_token_id).all()


@pytest.mark.parametrize("short", ["drop", "pad"])
def test_sample_texts_shorter_than_a_window_are_left_out_and_counted_or_padded(minilm, sample, short):
    few = {text for text in sample if len(text.split()) < 90}
    assert few
    cutter = Cutter(minilm.tokenizer, Options(length=128, windows="first", short=short))
    texts = [Text(str(n), text) for n, text in enumerate(sample)]
    windows = list(cut_all(texts, cutter, counts := Counts(), most=None))
    left_out = few if short == "drop" else set()
    assert {window.text.text for window in windows} == set(sample) - left_out
    assert (counts.texts, counts.texts_without_window) == (len(sample), len(left_out))


def test_a_text_without_tokens_gives_no_window(minilm):
    counts = Counts()
    assert windows_of(minilm, " \n ", counts, length=32, short="pad") == []
    assert counts.texts_without_window == 1


def test_windows_stop_after_the_most_asked_for(minilm, sample):
    cutter = Cutter(minilm.tokenizer, Options(length=32))
    texts = [Text(str(n), text) for n, text in enumerate(sample)]
    assert len(list(cut_all(texts, cutter, Counts(), most=7))) == 7


def test_a_length_without_room_for_text_is_refused(minilm):
    assert Options(length=3)
    with pytest.raises(HeadscopeError, match="length is 2"):
        Options(length=2)


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(codec="utf-8"), max_size=300))
def test_any_text_gives_well_formed_windows(minilm, text):
    for window in windows_of(minilm, text, length=16, short="pad"):
        assert window.ids.shape == (16,)
        assert 3 <= window.size <= 16
        assert set(kinds_of(window)[1:]) <= set(KINDS[1:])
        assert (window.sentence[window.special] == -1).all()
        inner = slice(1, window.size - 1)
        assert (window.start[inner] <= window.end[inner]).all()
        assert window.end.max() <= len(text)
