"""Where the sentences of a text begin: in Latin script by nupunkt, in others by the marks that end sentences there.

The marks are those with Unicode's property Sentence_Terminal, what follows them is judged as in its Annex 29, and a few
habits of single scripts are added that the annex leaves to others. Of abbreviations only single letters are known.
Thai and Lao put no mark between sentences: there only a blank line and a rare ? or ! end one. What has a sentence a
line is best read with `lines`.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

from headscope.options import Sentences
from headscope.wording import counted

BLOCK = 2**18
"""Characters looked at together, so that memory does not grow with a text; the next block begins with a sentence."""
EDGE = 2**10
"""Characters at the end of a block where nothing is believed: what follows them is not seen."""
LONGEST_RUN = 2**10
"""Characters without white space that nupunkt is given: its time grows with their square."""
WORDS = 2**13
"""Different words that nupunkt may remember."""
FEW = 0.05
"""Of the letters of a block. What is fewer is a quotation, and no reason to split otherwise."""
SYLLABLE = 3
"""Letters that one of a script counts for that writes a syllable or a word with it."""

_SYLLABLES = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}"
_SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
_END = regex.compile(
    # The Burmese ၊ is a comma, whatever its property says; the Tibetan shad is the only mark there is; Greek asks with
    # a semicolon; many an Armenian full stop is typed as a colon; … ends a sentence where a capital letter follows.
    r"(?P<marks>(?:[\p{Sentence_Terminal}--[၊]]|[།༎](?:\s?[།༎])*+|[;\u037e](?<=\p{Greek}.)|:(?<=\p{Armenian}:)"
    r"|…(?=[^\w\n]{0,4}\s[^\w\n]{0,4}\p{SB=Upper}))++)"
    # Quotes and brackets that close stay with their sentence; “ closes in one language and opens in another.
    r"(?P<closing>(?:[\p{Pe}\p{Pf}\p{M}\p{Cf}\"']|\p{Pi}(?!\w))*+)"
    r"(?P<space>\s*+)"
    r"|(?P<line>[\n\u2029]\s*+)",
    regex.V1,
)
_WEAK = frozenset(".!?…;\u037e:\u2024")
"""Marks that do not always end a sentence: they do before white space, and before no small letter."""
_COMMA = regex.compile(r"[\p{SB=SContinue}--\p{Pd}]", regex.V1)
_SMALL = regex.compile(r"[^\p{L}\p{N}]*+\p{SB=Lower}")
_SMALL_AFTER_NUMBERS = regex.compile(r"[\P{L}--\p{Sentence_Terminal}]*+\p{SB=Lower}", regex.V1)
_LOOKED_AHEAD = 64
_QUOTED = re.compile("と|って")
"""Japanese goes on after a quotation: 「はい。」と言った。"""
_ONE_LETTER = regex.compile(rf"(?:^|[^\p{{L}}\p{{M}}])[\p{{L}}--[яЯ{_SYLLABLES}{_SPACELESS}]]\p{{M}}*+$", regex.V1)
_WITHOUT_SPACE = regex.compile(rf"[{_SPACELESS}]")
_LINE = re.compile(r"\n\s*+")
_LONG_RUN = re.compile(rf"(?<!\S)\S{{{LONGEST_RUN + 1},}}+")


class SentencesOf:
    """The sentences of one text, found as they are asked for, in order."""

    def __init__(self, text: str, how: Sentences) -> None:
        self._blocks = _blocks(text, how)
        self._starts = [0]
        self._known = 0
        self._forgotten = 0

    def number(self, place: int) -> int:
        """Of the sentence that holds a character. Places may go back a little, not by a block."""
        while self._known <= place and (block := next(self._blocks, None)) is not None:
            known, starts = block
            # The last sentence may go on; what came before it is asked for no more.
            kept = bisect_right(self._starts, self._known - EDGE) - 1
            self._forgotten += max(kept, 0)
            self._starts = self._starts[max(kept, 0) :] + starts
            self._known = known
        return self._forgotten + bisect_right(self._starts, place) - 1


def sentence_starts(text: str, how: Sentences = "auto") -> list[int]:
    """The first character of each sentence; the first is always 0.

    >>> sentence_starts("これは猫です。あれは犬です。")
    [0, 7]
    """
    return [0, *(start for _, starts in _blocks(text, how) for start in starts)]


def few_sentences(alone: int | None, windows: int) -> str | None:
    """What is to be said where most windows, of which `alone` are known to lie in one sentence, do so."""
    if alone is None or 2 * alone <= windows:
        return None
    return (
        f"In {alone:,} of {counted(windows, 'window')} no sentence ends before the last token, so what is said of the "
        "same sentence says little."
    )


def _blocks(text: str, how: Sentences) -> Iterator[tuple[int, list[int]]]:
    """Up to which character all starts are known, and the new ones; 0 is not among them."""
    begin = 0
    while begin + BLOCK < len(text):
        found = [start for start in _starts(text[begin : begin + BLOCK], how) if start < BLOCK - EDGE]
        yield begin + BLOCK - EDGE, [begin + start for start in found]
        begin += found[-1] if found else BLOCK - EDGE
    yield len(text) + 1, [begin + start for start in _starts(text[begin:], how)]


def _starts(block: str, how: Sentences) -> list[int]:
    """Those after the first, which is 0."""
    match how:
        case "english":
            return _by_nupunkt(block)
        case "unicode":
            return _by_marks(block)
        case "lines":
            return [line.end() for line in _LINE.finditer(block, _indent(block)) if line.end() < len(block)]
        case "auto":
            return _by_script(block)


def _by_script(block: str) -> list[int]:
    """Each stretch of lines by its letters."""
    starts: list[int] = []
    for begin, end, latin in _stretches(block):
        stretch = block[begin:end]
        if begin:
            starts.append(begin + _indent(stretch))
        found = _by_nupunkt(stretch) if latin else _by_marks(stretch)
        starts += [begin + start for start in found if not begin or start > _indent(stretch)]
    return starts


def _stretches(block: str) -> list[tuple[int, int, bool]]:
    """Begin, end, and whether it is Latin, of lines in a row that are alike."""
    if block.isascii():
        return [(0, len(block), True)]
    codes = np.frombuffer(block.encode("utf-32-le"), np.uint32)
    weights = _weights()[codes]
    begins = np.flatnonzero(np.concatenate([[True], codes[:-1] == ord("\n")]))
    latin, other = (np.add.reduceat(np.maximum(side, 0), begins, dtype=np.int64) for side in (weights, -weights))
    if min(latin.sum(), other.sum()) <= FEW * (latin.sum() + other.sum()):
        return [(0, len(block), bool(latin.sum() >= other.sum()))]
    # A line without letters goes with the line before it.
    lettered = np.flatnonzero(latin + other)
    nearest = lettered[np.maximum(np.searchsorted(lettered, np.arange(len(begins)), side="right") - 1, 0)]
    alike = (latin >= other)[nearest].tolist()
    firsts = [next(group)[0] for _, group in groupby(enumerate(alike), key=lambda line: line[1])]
    places = [*begins[firsts].tolist(), len(block)]
    return [(begin, end, alike[first]) for begin, end, first in zip(places, places[1:], firsts, strict=False)]


@cache
def _weights() -> NDArray[np.int8]:
    """For each character: above 0 for a Latin letter, below 0 for another letter, 0 for what is none."""
    weights = np.zeros(0x110000, np.int8)
    codes = np.arange(0x110000, dtype="<u4")
    codes[0xD800:0xE000] = ord(" ")  # Surrogates are no characters: a stand-in keeps the others in their places.
    every = codes.tobytes().decode("utf-32-le")
    for letters, weight in ((r"\p{L}", -1), (rf"[{_SYLLABLES}]", -SYLLABLE), (r"\p{Latin}", 1)):
        for run in regex.finditer(rf"[{letters}&&\p{{L}}]+", every, regex.V1):
            weights[run.start() : run.end()] = weight
    return weights


def _by_nupunkt(text: str) -> list[int]:
    import nupunkt

    # The middle of a very long run is left out: no sentence begins there, and nupunkt would take hours.
    shown, left_out, removed, place = [], [0], [0], 0
    for run in _LONG_RUN.finditer(text):
        half = LONGEST_RUN // 2
        shown.append(text[place : run.start() + half])
        place = run.end() - half
        removed.append(place - run.start() - half + removed[-1])
        left_out.append(place - removed[-1])
    shown.append(text[place:])
    starts = [begin for begin, _ in nupunkt.sent_spans("".join(shown)) if begin > 0]
    _forget(nupunkt)
    return [start + removed[bisect_right(left_out, start) - 1] for start in starts]


def _forget(nupunkt: Any) -> None:
    """What it remembers of texts would only fill the memory over a corpus: decisions about one, and some hundred bytes
    of every different word of all. For these it has no public name; a version that keeps them elsewhere keeps them."""
    nupunkt.load("default").clear_decision_cache()
    tokens = sys.modules["nupunkt.core.tokens"]
    words: dict[str, Any] = getattr(tokens, "_derived_cache", {})
    if len(words) > WORDS:
        words.clear()
        for kept in vars(tokens).values():
            if hasattr(kept, "cache_clear"):
                kept.cache_clear()


def _by_marks(text: str) -> list[int]:
    ends = (end for end in _END.finditer(text, _indent(text)) if end.end() < len(text))
    return [end.end() for end in ends if _is_end(text, end)]


def _is_end(text: str, found: regex.Match[str]) -> bool:
    marks, closing, space = found["marks"], found["closing"], found["space"]
    if marks is None:
        return _blank_line(found["line"])
    if _blank_line(space):
        return True
    rest = text[found.end() : found.end() + _LOOKED_AHEAD]
    if _COMMA.match(rest):
        return False
    if not _WEAK.issuperset(marks):
        return not (closing and not space and _QUOTED.match(rest))
    before = text[max(found.start() - 8, 0) : found.start()]
    if not space:
        return bool(_WITHOUT_SPACE.match(before[-1:]) and _WITHOUT_SPACE.match(rest))
    if marks != ".":
        return not _SMALL.match(rest)
    return not (_SMALL_AFTER_NUMBERS.match(rest) or _ONE_LETTER.search(before))


def _indent(text: str) -> int:
    """White space before the first word: no sentence ends in it."""
    return len(text) - len(text.lstrip())


def _blank_line(space: str) -> bool:
    return space.count("\n") > 1 or "\u2029" in space
