"""Sentence-like units, from attention: a unit ends where the heads that watch for ends see a line.

A token is a line of a head where it receives more than twice what the median token of its window receives. (The lines
of the paper are measured by the largest instead; in late layers one token draws so much that most ends fall below.)
Which heads watch for ends is told by what they have lines on: characters that end sentences by Unicode's property
Sentence_Terminal, among them all dots of abbreviations. Nobody says where sentences end: that the heads vote on.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.corpus.kinds import PUNCTUATION, SENTENCE_END, kind_of
from headscope.corpus.tokenizing import Token, tokens_of
from headscope.corpus.windows import special_ids
from headscope.model.capture import Capture

WINDOW = 128
"""Tokens, special ones included. Windows overlap by half, and each token is judged where it is nearest the middle."""
TIMES = 2.0
"""A token is a line of a head where it receives so many times what the median token does."""
POWER = 2
"""Of how well a head tells ends from other tokens, in its weight."""
MAJORITY = 0.7
"""Of the votes, for a token to end a unit."""
AT_ONCE = 8
"""Windows."""


@dataclass(frozen=True)
class Lines:
    """Of the T tokens of a text. start, end: (T,), the characters that each covers; kind: (T,), as in KINDS.
    bits: (T, ceil(L H / 8)), in which heads it is a line, packed; shape: L and H."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    kind: NDArray[np.int8]
    bits: NDArray[np.uint8]
    shape: tuple[int, int]

    def __len__(self) -> int:
        return len(self.start)

    def of(self, tokens: slice) -> NDArray[np.bool_]:
        """(T, L H): whether a token is a line of a head."""
        return np.unpackbits(self.bits[tokens], axis=1, count=self.shape[0] * self.shape[1]).astype(np.bool_)


def lines_of(
    capture: Capture, tokenizer: Any, text: str, layers: Sequence[int], longest: int, advance: Callable[[int], None]
) -> Lines:
    """Run a text through the model in overlapping windows, and see in which heads each token is a line."""
    prefix, suffix = special_ids(tokenizer)
    room = min(WINDOW, longest) - len(prefix) - len(suffix)
    device = next(capture.network.parameters()).device
    # Of a book there are a million: as Python's numbers they would fill the memory.
    starts, ends, kinds = array("q"), array("q"), array("b")
    bits: list[NDArray[np.uint8]] = []
    for batch in _batched(_windows(tokens_of(tokenizer, text), room)):
        size = len(batch[0].tokens)
        ids = [[*prefix, *(token.id for token in window.tokens), *suffix] for window in batch]
        content = slice(len(prefix), len(prefix) + size)
        found = torch.zeros(len(batch), size, len(layers), capture.heads, dtype=torch.bool)
        _run(capture, torch.tensor(ids, device=device), layers, content, found)
        for window, lines in zip(batch, found.flatten(2).numpy(), strict=True):
            judged = slice(window.first, window.last)
            for token in window.tokens[judged]:
                starts.append(token.start)
                ends.append(token.end)
                kinds.append(kind_of(text[token.start : token.end].strip()))
            bits.append(np.packbits(lines[judged], axis=1))
            advance(window.last - window.first)
    return Lines(
        np.array(starts, np.int64),
        np.array(ends, np.int64),
        np.array(kinds, np.int8),
        np.concatenate(bits) if bits else np.zeros((0, 1), np.uint8),
        (len(layers), capture.heads),
    )


def watching(lines: Lines) -> NDArray[np.float64]:
    """How well each head tells characters that end sentences from all others, 0 to 1: (L, H).

    The share of the former that are lines in it, less the share of all others; 0 where that is below 0.
    """
    ends, others = np.zeros(lines.shape[0] * lines.shape[1]), np.zeros(lines.shape[0] * lines.shape[1])
    for begin in range(0, len(lines), _SOME):
        some = slice(begin, begin + _SOME)
        found, end = lines.of(some), lines.kind[some] == SENTENCE_END
        ends += found[end].sum(0)
        others += found[~end].sum(0)
    count = int((lines.kind == SENTENCE_END).sum())
    difference = ends / max(count, 1) - others / max(len(lines) - count, 1)
    found_by = np.maximum(difference, 0).reshape(lines.shape)
    return found_by if count else np.ones(lines.shape)


def weights_of(watch: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each head in the vote; they add up to 1."""
    strong = watch**POWER
    if strong.sum() == 0:
        strong = np.ones_like(watch)
    weights: NDArray[np.float64] = strong / strong.sum()
    return weights


def votes_of(lines: Lines, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of the votes that each token has: (T,), at most 1, which rounding could exceed."""
    flat = weights.reshape(-1)
    parts = [lines.of(slice(begin, begin + _SOME)) @ flat for begin in range(0, len(lines), _SOME)]
    return np.minimum(np.concatenate(parts), 1) if parts else np.zeros(0)


def unit_starts(text: str, lines: Lines, votes: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The characters at which a unit could begin, after every token but the last, and the vote for each.

    What closes a quotation or a bracket belongs to the unit before it, and so does white space.
    """
    places: list[int] = []
    found: list[float] = []
    carried = 0.0
    for number in range(len(lines) - 1):
        vote = max(float(votes[number]), carried)
        carried = 0.0
        if lines.start[number + 1] <= lines.end[number] and lines.kind[number + 1] in (PUNCTUATION, SENTENCE_END):
            carried = vote if lines.kind[number] in (PUNCTUATION, SENTENCE_END) else 0.0
            continue
        place = _next_word(text, int(lines.end[number]))
        if place >= len(text) or place == 0:
            continue
        if places and places[-1] >= place:
            found[-1] = max(found[-1], vote)
        else:
            places.append(place)
            found.append(vote)
    return np.array(places, np.int64), np.array(found)


def score_of(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """0.5 where the votes are just the majority that it takes, 0 for none, 1 for all.

    >>> score_of(np.array([0.0, 0.7, 1.0]))
    array([0. , 0.5, 1. ])
    """
    yes, no = votes * (1 - MAJORITY), (1 - votes) * MAJORITY
    score: NDArray[np.float64] = yes / (yes + no)
    return score


_SOME = 2**14
"""Tokens that are unpacked at once."""


@dataclass(frozen=True)
class _Window:
    """Tokens, of which those from `first` to before `last` are judged in this window."""

    tokens: list[Token]
    first: int
    last: int


def _run(capture: Capture, ids: Tensor, layers: Sequence[int], content: slice, found: Tensor) -> None:
    """Fills in found (B, S, L, H): whether a token of the content is a line."""

    def receive(layer: int, attention: Tensor, output: Tensor) -> None:
        if layer in layers:
            received = received_from_each(attention)[..., content]
            lines = received > TIMES * received.median(-1, keepdim=True).values
            found[:, :, layers.index(layer)] = lines.transpose(1, 2).cpu()

    capture.run(ids, torch.ones_like(ids), receive, last=max(layers))


def received_from_each(attention: Tensor) -> Tensor:
    """What each token receives, on average over the tokens that can see it: (B, H, S, S) -> (B, H, S).

    Where tokens see only what is before them, the first would otherwise receive most.
    """
    attention = attention.float()
    return attention.sum(-2) / (attention > 0).sum(-2).clamp(min=1)


def _next_word(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _windows(tokens: Iterator[Token], room: int) -> Iterator[_Window]:
    """Each begins in the middle of the one before it. The first is judged from its start, the last to its end."""
    step = max(room // 2, 1)
    edge = (room - step) // 2
    window, first = list(islice(tokens, room)), 0
    while window:
        more = list(islice(tokens, step))
        last = min(edge + step, len(window)) if more else len(window)
        yield _Window(window, first, last)
        # What was judged up to `last` is judged no more: the next window has dropped `step` tokens.
        first = last - step
        window = window[step:] + more if more else []


def _batched(windows: Iterator[_Window]) -> Iterator[list[_Window]]:
    """Those of one length together, in order."""
    batch: list[_Window] = []
    for window in windows:
        if batch and (len(batch) == AT_ONCE or len(window.tokens) != len(batch[0].tokens)):
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch
