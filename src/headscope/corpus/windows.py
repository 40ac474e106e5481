"""Text -> windows: S token ids each, with the sentence and the kind of every token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.kinds import COMMA, FIRST, KINDS, SENTENCE_END, SEPARATORS, SPECIAL, WORD, kind_of
from headscope.corpus.layouts import ADDED, Layout, WholeLayouts, added, next_word
from headscope.corpus.sentences import SentencesOf
from headscope.corpus.texts import Text
from headscope.corpus.tokenizing import Token, count_up_to, tokens_of, unknown_ids
from headscope.errors import HeadscopeError
from headscope.options import SHORTEST, Options
from headscope.speaking import option
from headscope.wording import percent

__all__ = [
    "COMMA",
    "FIRST",
    "KINDS",
    "SENTENCE_END",
    "SEPARATORS",
    "SPECIAL",
    "WORD",
    "Batch",
    "Counts",
    "Cutter",
    "Window",
    "cut_all",
    "special_ids",
    "stack",
    "unpadded",
]

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class Window:
    """S tokens of one text; what lies past `size` is padding.

    ids, sentence, kind, special, start, end: (S,). `sentence` is -1 for special tokens and padding,
    `start` and `end` are the characters of the text that a token covers (equal for special tokens).
    text_number: of the text among all texts read, from 0.
    pixels: (channels, height, width) of an image, whose patches are the tokens; None for a text.
    types: (S,), `token_type_ids`, of pairs and of token ids that have them.
    """

    ids: NDArray[np.int64]
    size: int
    sentence: NDArray[np.int32]
    kind: NDArray[np.int8]
    special: NDArray[np.bool_]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    text: Text
    text_number: int = 0
    pixels: NDArray[np.float32] | None = None
    types: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Batch:
    """B windows of S tokens.

    ids, sentence, kind, special: (B, S); size: (B,), tokens that are not padding.
    text: (B,), the number of the text that each is from.
    pixels: (B, channels, height, width) of images; None for texts. types: (B, S), `token_type_ids`; None where no
    window has them.
    """

    ids: NDArray[np.int64]
    size: NDArray[np.int64]
    sentence: NDArray[np.int32]
    kind: NDArray[np.int8]
    special: NDArray[np.bool_]
    text: NDArray[np.int64]
    pixels: NDArray[np.float32] | None = None
    types: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: slice) -> Batch:
        return Batch(
            self.ids[rows],
            self.size[rows],
            self.sentence[rows],
            self.kind[rows],
            self.special[rows],
            self.text[rows],
            None if self.pixels is None else self.pixels[rows],
            None if self.types is None else self.types[rows],
        )

    @property
    def arrays(self) -> tuple[NDArray[Any] | None, ...]:
        """Everything in the windows that a consumer can see."""
        return self.ids, self.size, self.sentence, self.kind, self.special, self.text, self.pixels, self.types

    @property
    def mask(self) -> NDArray[np.int64]:
        """(B, S): 1 for tokens, 0 for padding."""
        return (np.arange(self.ids.shape[1]) < self.size[:, None]).astype(np.int64)


def stack(windows: list[Window]) -> Batch:
    return Batch(
        np.stack([w.ids for w in windows]),
        np.array([w.size for w in windows], dtype=np.int64),
        np.stack([w.sentence for w in windows]),
        np.stack([w.kind for w in windows]),
        np.stack([w.special for w in windows]),
        np.array([w.text_number for w in windows], dtype=np.int64),
        np.stack(pixels) if (pixels := [w.pixels for w in windows if w.pixels is not None]) else None,
        _stacked_types(windows),
    )


def unpadded(window: Window) -> Batch:
    """One window alone, without its padding."""
    size, batch = window.size, stack([window])
    cut = {name: getattr(batch, name)[:, :size] for name in ("ids", "sentence", "kind", "special")}
    return replace(batch, **cut, types=None if batch.types is None else batch.types[:, :size])


def _stacked_types(windows: list[Window]) -> NDArray[np.int64] | None:
    """A window without types is all of type 0, as models take it."""
    if all(window.types is None for window in windows):
        return None
    return np.stack([np.zeros_like(w.ids) if w.types is None else w.types for w in windows])


@dataclass
class Counts:
    """What was read and what became of it. tokens: those of texts, without special ones, in windows that were taken;
    unknown_tokens: how many of them stand for words that the tokenizer does not know. window_tokens: of the windows
    that were made, special ones included, padding not. pairs_cut: pairs of texts that lost tokens at their ends."""

    texts: int = 0
    texts_without_window: int = 0
    windows: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    short_windows_left_out: int = 0
    later_windows_left_out: int = 0
    windows_in_one_sentence: int = 0
    window_tokens: int = 0
    pairs_cut: int = 0
    longest_short: int = field(default=0, repr=False)


MUCH_UNKNOWN, MOSTLY_UNKNOWN = 0.05, 0.5
"""Shares of unknown tokens from which on it is said, and from which on nothing is measured."""


def unknown_share(tokens: int, unknown: int) -> float:
    """Of the tokens of texts, the share that the tokenizer does not know; 0 where there are none.

    >>> unknown_share(200, 30)
    0.15
    """
    return unknown / tokens if tokens else 0.0


def unknown_notice(tokens: int, unknown: int) -> str | None:
    """What the summary and the report say where more than 5 % of the tokens are unknown."""
    share = unknown_share(tokens, unknown)
    if share <= MUCH_UNKNOWN:
        return None
    return (
        f"{percent(share)} of the tokens ({unknown:,} of {tokens:,}) are unknown to the tokenizer: all of them are one "
        "and the same to the model, and count as repeats of each other."
    )


def refuse_unknown(counts: Counts, model_name: str) -> None:
    """Where more than half of the tokens are unknown, the texts are not what the model reads."""
    share = unknown_share(counts.tokens, counts.unknown_tokens)
    if share > MOSTLY_UNKNOWN:
        raise HeadscopeError(
            f"{percent(share)} of the tokens ({counts.unknown_tokens:,} of {counts.tokens:,}) are unknown to the "
            f"tokenizer of {model_name}; it is not made for these texts, or it is not the model's."
        )


class Cutter:
    """Cuts texts into windows with one tokenizer.

    rows: tokens in the network's embedding; a text with an id beyond it is refused. None: any id is taken.
    """

    def __init__(self, tokenizer: Any, options: Options, rows: int | None = None) -> None:
        if not hasattr(tokenizer, "all_special_ids"):
            raise HeadscopeError("The model takes images, not texts; give image files, or folders of them.")
        if not getattr(tokenizer, "is_fast", False):
            raise HeadscopeError(
                f"The tokenizer {type(tokenizer).__name__} can't tell which characters a token covers, "
                "so sentences can't be assigned; headscope needs a model with a tokenizer.json."
            )
        self._tokenizer = tokenizer
        self._options = options
        self.prefix, self.suffix = special_ids(tokenizer)
        self._special = set(tokenizer.all_special_ids)
        self._unknown = unknown_ids(tokenizer)
        self._rows = rows
        pad = tokenizer.pad_token_id
        self._pad = pad if pad is not None and (rows is None or pad < rows) else 0
        self.content = options.length - len(self.prefix) - len(self.suffix)
        """Tokens of a text that a window has room for."""
        if self.content < 1:
            raise HeadscopeError(
                f"{option('length', options.length)} leaves no room for text beside "
                f"{len(self.prefix) + len(self.suffix)} special tokens; give a larger one."
            )
        self._layouts = WholeLayouts(tokenizer, options, rows, {*self.prefix, *self.suffix})

    def cut(
        self, text: Text, counts: Counts, most: int | None = None, wanted: Callable[[int], bool] | None = None
    ) -> Iterator[Window]:
        """The windows of one text, in order. What is left out is added to `counts`.

        Ends after window `most` of all; a window whose number among all is not `wanted` is counted but not made.
        """
        counts.texts += 1
        before = counts.windows
        for layout in self._whole(text, counts) if text.is_one_window else self._pieces(text, counts):
            counts.windows += 1
            self._count(text, layout.content, counts)
            if wanted is None or wanted(counts.windows - 1):
                window = self._window(layout, counts)
                counts.windows_in_one_sentence += len({*window.sentence.tolist()} - {-1}) < 2
                counts.window_tokens += window.size
                yield window
            if counts.windows == most:
                return
        counts.texts_without_window += counts.windows == before

    def _pieces(self, text: Text, counts: Counts) -> Iterator[Layout]:
        """What becomes a window, of one text after the other piece of it."""
        sentences = SentencesOf(text.text, self._options.sentences)
        tokens = tokens_of(self._tokenizer, text.text)
        before = 0

        def sentence_of(place: int, blank: bool) -> int:
            return sentences.number(next_word(text.text, place) if blank else place)

        while content := list(islice(tokens, self.content)):
            if before and self._options.windows == "first":
                counts.later_windows_left_out += 1
            elif len(content) < self.content and self._options.short != "pad":
                counts.short_windows_left_out += 1
                counts.longest_short = max(counts.longest_short, before + len(content))
            else:
                yield Layout(text, [*added(self.prefix), *content, *added(self.suffix)], sentence_of)
            before += len(content)

    def _whole(self, text: Text, counts: Counts) -> Iterator[Layout]:
        """A pair of texts or a row of token ids: one window, if it is one at all."""
        layout = self._layouts.of(text)
        if len(layout.tokens) < self._options.length and self._options.short != "pad":
            counts.short_windows_left_out += 1
            counts.longest_short = max(counts.longest_short, len(layout.content))
        elif layout.content:
            counts.pairs_cut += layout.was_cut
            yield layout

    def size_up_to_a_window(self, text: Text) -> int:
        """Tokens of a text, of which no more are counted than a window has room for."""
        return count_up_to(self._tokenizer, text.text, self.content)

    def length_of_rows(self, texts: Iterable[Text]) -> int:
        """Of windows that have room for the longest of these rows of token ids, padding not counted."""
        rows = [(text.origin, text.given) for text in texts if text.given is not None]
        return max(SHORTEST, *(len(self._layouts.without_padding(*row)) for row in rows))

    def _count(self, text: Text, content: list[Token], counts: Counts) -> None:
        """Known and unknown tokens of a window; an id that the network has no row for ends it all."""
        counts.tokens += len(content)
        if self._unknown:
            counts.unknown_tokens += sum(token.id in self._unknown for token in content)
        if self._rows is not None and (beyond := max(token.id for token in content)) >= self._rows:
            raise HeadscopeError(
                f"{text.origin} holds {self._tokenizer.convert_ids_to_tokens(beyond)}, a token (id {beyond}) that the "
                f"network has no row for in its embedding of {self._rows:,}; take it out of the text."
            )

    def _window(self, layout: Layout, counts: Counts) -> Window:
        """The newest of those counted."""
        length, size, text = self._options.length, len(layout.tokens), layout.text.text
        special: list[bool] = []
        sentence, kinds, starts, ends = [], [], [], []
        for token, left, right in layout.tokens:
            if left == ADDED:
                number, kind, left, right = -1, SPECIAL, 0, 0
            else:
                piece = text[left:right]
                stripped = piece.lstrip()
                left += len(piece) - len(stripped) if stripped else 0
                if token in self._special and token not in self._unknown:
                    number, kind = -1, SPECIAL
                else:
                    number, kind = layout.sentence_of(left, not stripped), kind_of(stripped.rstrip())
            special.append(kind == SPECIAL)
            sentence.append(number)
            kinds.append(kind)
            starts.append(left)
            ends.append(right)
        kinds[0] = FIRST

        def padded(values: Sequence[int] | NDArray[np.int64], padding: int, dtype: type[Scalar]) -> NDArray[Scalar]:
            array = np.full(length, padding, dtype=dtype)
            array[:size] = values
            return array

        return Window(
            padded([token.id for token in layout.tokens], self._pad, np.int64),
            size,
            padded(sentence, -1, np.int32),
            padded(kinds, WORD, np.int8),
            padded(special, False, np.bool_),
            padded(starts, 0, np.int64),
            padded(ends, 0, np.int64),
            layout.text,
            counts.texts - 1,
            types=None if layout.types is None else padded(layout.types, 0, np.int64),
        )


def cut_all(
    texts: Iterable[Text],
    cutter: Cutter,
    counts: Counts,
    most: int | None,
    wanted: Callable[[int], bool] | None = None,
) -> Iterator[Window]:
    """The windows of all texts, in their order; ends after `most` windows, makes only those that are `wanted`."""
    for text in texts:
        yield from cutter.cut(text, counts, most, wanted)
        if counts.windows == most:
            return


def special_ids(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that the tokenizer puts before and after a text: [CLS] and [SEP] in BERT, none in GPT-2."""
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    for before in range(len(whole) - len(bare) + 1):
        if whole[before : before + len(bare)] == bare:
            return whole[:before], whole[before + len(bare) :]
    raise HeadscopeError(
        f"The tokenizer {type(tokenizer).__name__} changes a text when it adds special tokens; "
        "headscope can't cut windows with it."
    )
