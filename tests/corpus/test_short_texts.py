"""Texts shorter than a window: a first look at the texts decides, the same however they can be read."""

from __future__ import annotations

import pytest

from headscope.corpus.short_texts import LOOKED_AT, FirstLook, first_look
from headscope.corpus.texts import as_texts, read_texts
from headscope.corpus.windows import Cutter
from headscope.options import Options

SHORT, LONG = "A cat.", "The cat sat on the mat and the dog sat by the door, and so it went on for a year. " * 3


def looked(texts, tokenizer) -> FirstLook:
    return first_look(texts, Cutter(tokenizer, Options(length=32)))


def test_most_texts_decide(tiny) -> None:
    for texts, short in (
        ([SHORT], "pad"),
        ([LONG], "drop"),
        ([SHORT, LONG], "drop"),
        ([SHORT, LONG, SHORT], "pad"),
        ([LONG, " ", "\n", ""], "drop"),
        ([], "drop"),
    ):
        assert looked(as_texts(texts), tiny.tokenizer).short == short, texts


def test_only_the_first_texts_are_looked_at(tiny) -> None:
    """And no more of them than decide."""
    texts = [SHORT] * (LOOKED_AT // 2 + 1) + [LONG] * LOOKED_AT
    assert looked(as_texts(texts), tiny.tokenizer) == FirstLook(LOOKED_AT, LOOKED_AT // 2 + 1)
    texts = [LONG] * LOOKED_AT + [SHORT] * 3 * LOOKED_AT
    assert looked(as_texts(texts), tiny.tokenizer) == FirstLook(LOOKED_AT // 2, 0)


def test_what_is_decided_is_said() -> None:
    assert FirstLook(1, 0).notice(128) is None
    assert FirstLook(1, 1).notice(128).startswith("The text is shorter than a window of 128 tokens, so short")
    assert FirstLook(20, 18).notice(64).startswith("18 of the 20 texts are shorter than a window of 64 tokens")
    assert FirstLook(LOOKED_AT, 180).notice(64).startswith("180 of the first 200 texts are")
    assert "with short = drop they are left out" in FirstLook(20, 18).notice(64)


def test_a_look_takes_nothing_away(tiny, tmp_path) -> None:
    strings = [f"Text number {number}." for number in range(LOOKED_AT + 20)]
    (tmp_path / "a.txt").write_text("\n".join(strings))
    for texts in (as_texts(strings), as_texts(iter(strings)), read_texts(tmp_path / "a.txt", lines=True)):
        assert looked(texts, tiny.tokenizer).short == "pad"
        assert [text.text for text in texts] == strings


def test_a_record_that_can_not_be_used_is_told_when_it_is_read(tiny) -> None:
    texts = as_texts([SHORT, None, LONG])
    assert looked(texts, tiny.tokenizer).shorter == 1
    once = as_texts(iter([SHORT, None, LONG]))
    assert looked(once, tiny.tokenizer).shorter == 1
    for source in (texts, once):
        with pytest.raises(Exception, match="text 1 is missing"):
            list(source)


def test_unusable_records_before_and_after_the_look_are_counted_once(tiny, tmp_path) -> None:
    lines = ['{"text": "A cat."}', "nonsense"] * (LOOKED_AT + 5)
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    texts = read_texts(tmp_path / "a.jsonl", skip_bad=True)
    looked(texts, tiny.tokenizer)
    assert len(list(texts)) == texts.bad == LOOKED_AT + 5


def test_a_few_books_are_enough_to_look_at(tiny, monkeypatch) -> None:
    monkeypatch.setattr("headscope.corpus.short_texts.CHARACTERS", 4 * len(LONG))
    assert looked(as_texts([LONG] * 50), tiny.tokenizer).texts == 2
