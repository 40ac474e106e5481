"""The tokens of a window before it is one: of a piece of a text, of a pair of texts, or as the user made them.

A pair is what the tokenizer makes of two texts, `[CLS] a [SEP] b [SEP]` in BERT. Token ids have no text, so one is made
of them token by token, with the tokenizer's own decoder: sentences are found in it, and figures show it. A special
token that begins or ends a text ends a sentence too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.records import GivenIds, Text
from headscope.corpus.sentences import sentence_starts
from headscope.corpus.tokenizing import Token
from headscope.errors import HeadscopeError
from headscope.options import Options, Sentences
from headscope.speaking import option
from headscope.wording import counted

ADDED = -1
"""Where a token begins that covers no character: it was added to a text."""
SPACE_LOOKED_THROUGH = 2**10
"""Characters of white space after which no word is looked for: a text may hold nothing else."""
CHARACTERS_A_TOKEN = 32
"""A text of a pair is tokenized up to so many characters for each token of a window: the rest of a longer one is cut
anyway, and would fill the memory."""
_AFTER_AN_END = re.compile(r"(?<=[.!?])([\"'”’)\]]*\s+[\"'“‘(\[]*)(\w)")


@dataclass(frozen=True)
class Layout:
    """text: what the tokens' characters are counted in. tokens: all of a window, special ones too. sentence_of: the
    number of the sentence that a character belongs to; of a blank one, that of the word after it. types:
    `token_type_ids`. was_cut: tokens were left out to make it fit."""

    text: Text
    tokens: Sequence[Token]
    sentence_of: Callable[[int, bool], int]
    types: Sequence[int] | NDArray[np.int64] | None = None
    was_cut: bool = False

    @cached_property
    def content(self) -> list[Token]:
        """The tokens of texts, without those that were added."""
        return [token for token in self.tokens if token.start != ADDED]


def added(ids: Iterable[int]) -> list[Token]:
    return [Token(number, ADDED, ADDED) for number in ids]


class WholeLayouts:
    """Of pairs of texts and rows of token ids, with one tokenizer. rows: of the network's embedding. framing: the ids
    that the tokenizer puts around a text."""

    def __init__(self, tokenizer: Any, options: Options, rows: int | None, framing: set[int]) -> None:
        self._tokenizer = tokenizer
        self._length = options.length
        self._sentences = options.sentences
        self._rows = rows
        ends = (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id)
        self._framing = {*framing, *ends, tokenizer.pad_token_id} - {None, tokenizer.mask_token_id}

    def of(self, text: Text) -> Layout:
        if text.given is not None:
            return self._of_ids(text, text.given)
        return self._of_pair(text, text.text, text.second or "")

    def without_padding(self, origin: str, given: GivenIds) -> NDArray[np.int64]:
        """The ids up to the last that is no padding. Where no mask tells it, the tokenizer's pad token does, unless it
        has another meaning."""
        pad = self._tokenizer.pad_token_id
        if given.masked or pad is None or given.ids[-1] != pad:
            return given.ids
        others = ("eos_token_id", "bos_token_id", "sep_token_id", "cls_token_id", "unk_token_id")
        if any(getattr(self._tokenizer, name) == pad for name in others):
            raise HeadscopeError(
                f"{origin} ends with {self._tokenizer.pad_token}, which this tokenizer uses for padding and as a token "
                "of texts; say which it is by an attention_mask, as tokenizer(...) returns it."
            )
        return given.ids[: int(np.flatnonzero(given.ids != pad)[-1]) + 1] if (given.ids != pad).any() else given.ids[:0]

    def _of_ids(self, text: Text, given: GivenIds) -> Layout:
        ids = self.without_padding(text.origin, given)
        self._check(text.origin, ids)
        passages: list[str] = []
        tokens: list[Token] = []
        begin = 0
        for is_added, run in groupby(ids.tolist(), lambda number: number in self._framing):
            if is_added:
                tokens += added(run)
                continue
            passage, pieces = decoded(self._tokenizer, list(run))
            tokens += [Token(number, begin + left, begin + right) for number, left, right in pieces]
            passages.append(passage)
            begin += len(passage) + 1
        found = Passages(passages, self._sentences, decoded=True)
        types = None if given.types is None else given.types[: len(ids)]
        return Layout(text._replace(text=found.text), tokens, found.sentence_of, types)

    def _check(self, origin: str, ids: NDArray[np.int64]) -> None:
        if len(ids) > self._length:
            raise HeadscopeError(
                f"{origin} has {counted(len(ids), 'token')}, more than "
                f"{option('length', self._length)}; give a greater one, or "
                "shorter rows."
            )
        wrong = ids[(ids < 0) | (ids >= self._known)]
        if wrong.size:
            raise HeadscopeError(
                f"{origin} holds the id {wrong[0]}, which is no token of this model, whose ids are 0 to "
                f"{self._known - 1}; make the ids with its own tokenizer."
            )

    @cached_property
    def _known(self) -> int:
        """Ids that the tokenizer has a token for and the network a row."""
        tokens = int(max(self._tokenizer.get_vocab().values())) + 1
        return tokens if self._rows is None else min(tokens, self._rows)

    def _of_pair(self, text: Text, first: str, second: str) -> Layout:
        self._check_pairs()
        most = self._length * CHARACTERS_A_TOKEN
        given = first[:most], second[:most]
        asked = {"return_offsets_mapping": True, "verbose": False}
        encoded = self._tokenizer(*given, **asked)
        too_long = len(encoded["input_ids"]) > self._length
        if too_long:
            encoded = self._tokenizer(*given, truncation="longest_first", max_length=self._length, **asked)
        begins = 0, len(first) + 1
        tokens = [
            Token(number, ADDED, ADDED) if which is None else Token(number, begins[which] + left, begins[which] + right)
            for number, which, (left, right) in zip(
                encoded["input_ids"], encoded.sequence_ids(), encoded["offset_mapping"], strict=True
            )
        ]
        found = Passages([first, second], self._sentences)
        was_cut = too_long or given != (first, second)
        joined = text._replace(text=found.text, second=None)
        return Layout(joined, tokens, found.sentence_of, encoded.get("token_type_ids"), was_cut)

    def _check_pairs(self) -> None:
        """What has nothing between two texts does not know pairs, and the model could not tell them apart."""
        if self._separates:
            return
        raise HeadscopeError(
            f"The tokenizer {type(self._tokenizer).__name__} puts no token between the two texts of a pair, so this "
            "model takes no pairs; give each as one text."
        )

    @cached_property
    def _separates(self) -> bool:
        found = self._tokenizer("a", "b").sequence_ids()
        return 1 in found and None in found[found.index(0) : found.index(1)]


class Passages:
    """Texts that stand in one window, and whose sentences never join. decoded: they were made of tokens, and may have
    lost their capital letters."""

    def __init__(self, passages: Sequence[str], how: Sentences, decoded: bool = False) -> None:
        self.text = "\n".join(passages)
        self._passages = passages
        self._how = how
        self._decoded = decoded
        self._begins = [0, *accumulate(len(passage) + 1 for passage in passages)][: len(passages)]

    def sentence_of(self, place: int, blank: bool) -> int:
        if blank:
            which = bisect_right(self._begins, place) - 1
            begin = self._begins[which]
            place = begin + next_word(self._passages[which], place - begin)
        return bisect_right(self._starts, place) - 1

    @cached_property
    def _starts(self) -> list[int]:
        """Of all sentences, in the joined text."""
        passages = map(with_capitals, self._passages) if self._decoded else self._passages
        starts = (sentence_starts(passage, self._how) for passage in passages)
        return list(
            chain.from_iterable(
                ([begin + start for start in found] for begin, found in zip(self._begins, starts, strict=True))
            )
        )


def next_word(text: str, place: int) -> int:
    """White space that is a token of its own belongs to what follows it: `▁` begins a word in SentencePiece."""
    within = text[place : place + SPACE_LOOKED_THROUGH]
    return place + len(within) - len(within.lstrip())


def with_capitals(text: str) -> str:
    """A text without capital letters, as uncased tokenizers leave it, with one where a sentence may begin: without
    them, no end of a sentence is told from that of an abbreviation. Other texts stay.

    >>> with_capitals("it rained. we stayed."), with_capitals("It rained. we stayed.")
    ('it rained. We stayed.', 'It rained. we stayed.')
    """
    if text != text.lower():
        return text

    def raised(found: re.Match[str]) -> str:
        capital = found[2].upper()
        return found[1] + (capital if len(capital) == 1 else found[2])

    return _AFTER_AN_END.sub(raised, text)


def decoded(tokenizer: Any, ids: Sequence[int]) -> tuple[str, list[Token]]:
    """The text that ids stand for, and the characters that each adds to it; those that are parts of one character have
    all of it. Each is decoded beside those before it, for alone it may lose the space that it begins with."""
    decode = tokenizer.backend_tokenizer.decode
    text = ""
    tokens: list[Token] = []
    before, read = 0, 0
    for place in range(len(ids)):
        known = decode(ids[before:read], skip_special_tokens=False)
        longer = decode(ids[before : place + 1], skip_special_tokens=False)
        unfinished = len(longer) <= len(known) or longer.endswith("\ufffd")
        if unfinished and place + 1 < len(ids):
            continue
        begin = len(text)
        text += longer[len(known) :]
        tokens += [Token(number, begin, len(text)) for number in ids[read : place + 1]]
        before, read = read, place + 1
    return text, tokens
