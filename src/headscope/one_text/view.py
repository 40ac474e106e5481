"""One text, looked at closely: everything the method says of one window, with the tokens at hand."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from headscope.corpus.windows import KINDS
from headscope.errors import HeadscopeError
from headscope.files import safetensors_pieces, write_atomically
from headscope.measure.definitions import (
    attention_lines,
    block_of,
    compared,
    context_similarity,
    normalise,
    pairs_among,
)
from headscope.one_text.layer_array import Array, LayerArray
from headscope.one_text.telling import Place, SingledOut, most_telling, related, singled_out
from headscope.one_text.word_pieces import word_groups
from headscope.options import Similarity, Special
from headscope.wording import ranges

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Blocks:
    """What the lines of one head cut its similarity matrix into; K blocks.

    of: (S,), the block of each token. means: (K, K), the mean of C over the pairs of two different tokens,
    one in each block, that take part; NaN where there is none. contrast: mean of N over the pairs within one
    block less its mean over the others, NaN where either has none.
    """

    of: NDArray[np.int64]
    means: NDArray[np.float64]
    contrast: float


@dataclass(frozen=True)
class Focal:
    """The token in the most high pairs of a head: where it stands, and how many of the pairs include it."""

    id: int
    token: str
    positions: list[int]
    pairs: int
    share: float


@dataclass(frozen=True, eq=False)
class OneText:
    """One window of one text, in every head of the layers measured. S tokens; padding is not kept.

    origin: the file that the text is from, "" if none. tokens: as the tokenizer spells them. pieces: the characters
    of `text` that each covers, none for special tokens.
    ids, kind (index into `windows.KINDS`), sentence (-1: none), special, start, end: (S,).
    text: the characters from the first token to the last; `start` and `end` count in it.
    continues: the text goes on after this window. layers: the layers measured.
    attention: A, (L, H, S, S); output: Z, (L, H, S, d); `similarity` C and `normalised` N are had from Z.
    lengths: of the value vectors, as each head hands them on, (L, H, S); None where they are not known.
    All of them are indexed by layer number and head: `view.attention[11, 8]`.
    """

    model_name: str
    origin: str
    text: str
    continues: bool
    tokens: list[str]
    ids: NDArray[np.int64]
    kind: NDArray[np.int8]
    sentence: NDArray[np.int32]
    special: NDArray[np.bool_]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    attention: LayerArray
    output: LayerArray
    lengths: LayerArray | None = None
    threshold: float = 0.3
    line_threshold: float = 0.3
    special_option: Special = "keep"
    similarity_option: Similarity = "dot"

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return len(self.tokens)

    @property
    def layers(self) -> list[int]:
        """The numbers of the layers that were measured."""
        return self.attention.layers

    @property
    def heads(self) -> int:
        """Heads in a layer."""
        return len(self.attention[self.layers[0]])

    @property
    def sentences(self) -> int:
        """How many there are."""
        return len(np.unique(self.sentence[self.sentence >= 0]))

    @property
    def pieces(self) -> list[str]:
        """The characters of the text that each token covers; none for special ones."""
        return [self.text[left:right] for left, right in zip(self.start, self.end, strict=True)]

    @property
    def labels(self) -> list[str]:
        """What tables and figures call each token: its piece of the text; where that is blank, the token."""
        return [piece if piece.strip() else token for piece, token in zip(self.pieces, self.tokens, strict=True)]

    @property
    def part(self) -> NDArray[np.bool_]:
        """(S,): the token takes part in pairs."""
        return ~self.special if self.special_option == "drop" else np.ones(self.size, dtype=np.bool_)

    @property
    def equal(self) -> NDArray[np.bool_]:
        """(S, S): the two tokens have the same id."""
        equal: NDArray[np.bool_] = self.ids[:, None] == self.ids
        return equal

    @property
    def together(self) -> NDArray[np.bool_]:
        """(S, S): the two tokens are in one sentence; special tokens are in none."""
        together: NDArray[np.bool_] = (self.sentence[:, None] == self.sentence) & (self.sentence >= 0)
        return together

    @cached_property
    def similarity(self) -> LayerArray:
        """C = Z Zᵀ with the diagonal set to 0; of Z centred or of rows of length 1 where that was asked for."""
        return LayerArray(self.layers, np.asarray(self.output), self._similarity_of)

    @cached_property
    def normalised(self) -> LayerArray:
        """N = C / m; 0 on the diagonal, for tokens that take no part, and everywhere where m <= 0."""
        pairs = pairs_among(self.part)

        def normalised(output: Array) -> Array:
            return normalise(self._similarity_of(output), pairs)

        return LayerArray(self.layers, np.asarray(self.output), normalised)

    def _similarity_of(self, output: Array) -> Array:
        return context_similarity(compared(output, self.part, self.similarity_option))

    def high(self, layer: int, head: int) -> NDArray[np.bool_]:
        """(S, S), symmetric: N is above the threshold."""
        high: NDArray[np.bool_] = self.normalised[layer, head] > self.threshold
        return high

    def pairs(self, layer: int, head: int) -> pd.DataFrame:
        """The high pairs of a head, i < j, the most alike first; `value` is N."""
        import pandas as pd

        normalised = self.normalised[layer, head]
        i, j = np.nonzero(np.triu(normalised > self.threshold))
        labels = np.array(self.labels, dtype=object)
        table = pd.DataFrame(
            {
                "i": i,
                "j": j,
                "token_i": labels[i],
                "token_j": labels[j],
                "distance": j - i,
                "value": normalised[i, j],
                "same_sentence": self.together[i, j],
                "equal": self.equal[i, j],
            }
        )
        return table.sort_values("value", ascending=False, kind="stable", ignore_index=True)

    def lines(self, layer: int, head: int | None = None) -> pd.DataFrame:
        """The lines of one head, or of all heads of a layer.

        `relative` is the attention a token receives, over the most that any receives; `share`, over all.
        """
        import pandas as pd

        found = []
        for each in range(self.heads) if head is None else [head]:
            attention = self.attention[layer, each]
            received = attention.sum(0, dtype=np.float64)
            places = np.flatnonzero(attention_lines(attention, self.line_threshold))
            found.append(
                pd.DataFrame(
                    {
                        "head": each,
                        "position": places,
                        "token": np.array(self.labels, dtype=object)[places],
                        "kind": np.array(KINDS, dtype=object)[self.kind[places]],
                        "relative": received[places] / received.max(),
                        "share": received[places] / received.sum(),
                    }
                )
            )
        return pd.concat(found, ignore_index=True)

    def blocks(self, layer: int, head: int) -> Blocks:
        """The blocks that the lines of a head cut the text into, and the mean of C in each rectangle."""
        block = block_of(attention_lines(self.attention[layer, head], self.line_threshold))
        member = (np.arange(block[-1] + 1)[:, None] == block) & self.part
        counted = self.part[:, None] & self.part & ~np.eye(self.size, dtype=np.bool_)
        inside = counted & (block[:, None] == block)
        normalised = self.normalised[layer, head]
        contrast = _mean(normalised, inside) - _mean(normalised, counted & ~inside)
        return Blocks(
            block,
            _divided(_over(member, self.similarity[layer, head] * counted), _over(member, counted)),
            contrast if normalised.any() else float("nan"),
        )

    def focal(self, layer: int, head: int) -> Focal | None:
        """In the most high pairs: a pair of two equal tokens counts once, ties go to the lower id."""
        high = self.high(layer, head)
        if not high.any():
            return None
        tokens, which = np.unique(self.ids, return_inverse=True)
        # Twice the high pairs that include each token: a pair of two equal tokens is met from both sides.
        twice = np.bincount(which, 2 * high.sum(1) - (high & self.equal).sum(1))
        best = int(twice.argmax())
        positions = np.flatnonzero(which == best).tolist()
        pairs = int(twice[best]) // 2
        share = pairs / (int(high.sum()) // 2)
        return Focal(int(tokens[best]), self.labels[positions[0]], positions, pairs, share)

    @cached_property
    def singled_out(self) -> dict[Place, SingledOut]:
        """(layer, head) -> what its high pairs have in common, beyond what distance alone gives on this text."""
        every = pairs_among(self.part)
        relations = [related("equal", self.equal, every)]
        if self.sentences > 1:  # In one alone, pairs within it are but those without special tokens.
            relations.append(related("sentence", self.together, every))
        tokens = len(np.unique(self.ids[self.part]))
        found = {}
        for layer, head in ((layer, head) for layer in self.layers for head in range(self.heads)):
            own = []
            if (focal := self.focal(layer, head)) is not None:
                there = self.ids == focal.id
                own = [related("focal", there[:, None] | there, every, tried=tokens)]
            found[layer, head] = singled_out(np.triu(self.high(layer, head)), every, relations + own)
        return found

    def telling_heads(self, layer: int | None = None, count: int = 3) -> list[Place]:
        """(layer, head) of the heads to look at first, of one layer or of all; see `telling.most_telling`."""
        layers = self.layers if layer is None else [self.layers[self.attention.place(layer)]]
        return most_telling({place: what for place, what in self.singled_out.items() if place[0] in layers}, count)

    def summary(self) -> pd.DataFrame:
        """A row per layer and head, with the columns of a study's `heads`; a share of no pairs is NaN.

        Added: `focal_token`, and `lines`, how many there are.
        """
        from headscope.one_text.replay import summary

        found = [self.focal(layer, head) for layer in self.layers for head in range(self.heads)]
        table = summary(self)
        table["focal_token"] = [focal.token if focal else None for focal in found]
        table["lines"] = table["lines_per_window"].astype(int)
        return table

    def words(self) -> Self:
        """The same view with the pieces of a word merged into one token.

        Attention to a word is the sum over its pieces, attention from a word the mean over its pieces, so
        that rows still add up to 1; the output of a word is the mean of the outputs of its pieces. The length of its
        value vector is the mean over its pieces, each as much as it is attended to, so that attention carries to a
        word what it carries to its pieces. Pieces belong to one word where no space or punctuation stands between
        them; scripts that are written without spaces are left as they are.
        """
        groups = word_groups(self.text, self.start, self.end, self.special)
        first = np.array([group[0] for group in groups])
        last = np.array([group[-1] for group in groups])
        member = np.zeros((len(groups), self.size), dtype=np.float32)
        for number, group in enumerate(groups):
            member[number, group] = 1
        mean = member / member.sum(1, keepdims=True)
        pieces = [tuple(self.ids[group].tolist()) for group in groups]
        fresh = int(self.ids.max()) + 1
        several = {ids: fresh + k for k, ids in enumerate(dict.fromkeys(ids for ids in pieces if len(ids) > 1))}
        from_words = mean @ np.asarray(self.attention)
        return replace(
            self,
            tokens=[
                self.tokens[group[0]] if len(group) == 1 else self.text[self.start[group[0]] : self.end[group[-1]]]
                for group in groups
            ],
            ids=np.array([several.get(ids, ids[0]) for ids in pieces], dtype=np.int64),
            kind=self.kind[first],
            sentence=self.sentence[first],
            special=self.special[first],
            start=self.start[first],
            end=self.end[last],
            attention=LayerArray(self.layers, from_words @ member.T),
            output=LayerArray(self.layers, mean @ np.asarray(self.output)),
            lengths=self._lengths_of_words(member, from_words.sum(-2)),
        )

    def _lengths_of_words(self, member: Array, received: Array) -> LayerArray | None:
        """member: (W, S), the pieces of each word. received: (L, H, S), the attention that each piece receives."""
        if self.lengths is None:
            return None
        attended, carried = (array @ member.T for array in (received, received * np.asarray(self.lengths)))
        mean = np.asarray(self.lengths) @ member.T / member.sum(1)
        return LayerArray(self.layers, np.divide(carried, attended, out=mean, where=attended > 0))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write example.safetensors (A, Z and the lengths of value vectors) and example.json (all the rest)."""
        facts = {
            **{name: getattr(self, name) for name in _PLAIN},
            **{name: getattr(self, name).tolist() for name in _ARRAYS},
            "layers": self.layers,
        }
        kept = {name: getattr(self, name) for name in _BY_LAYER}
        arrays = {name: np.asarray(array) for name, array in kept.items() if array is not None}
        write_atomically(Path(folder) / "example.safetensors", safetensors_pieces(arrays))
        write_atomically(Path(folder) / "example.json", json.dumps(facts, ensure_ascii=False).encode())

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; neither the model nor its tokenizer is needed."""
        path = Path(folder) / "example.json"
        if not path.is_file():
            raise HeadscopeError(f"{folder} keeps no example text; run the study again to have one.")
        try:
            facts = json.loads(path.read_text("utf-8"))
            arrays = load_file(Path(folder) / "example.safetensors")
            absent = {"lengths"} - set(arrays)
            fields: dict[str, Any] = {
                **{name: facts[name] for name in _PLAIN if name in facts or name != "similarity_option"},
                **{name: np.array(facts[name], dtype=dtype) for name, dtype in _ARRAYS.items()},
                **{name: LayerArray(facts["layers"], arrays[name]) for name in _BY_LAYER if name not in absent},
            }
            return cls(**fields)
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as problem:
            raise HeadscopeError(
                f"The example in {folder} can't be read ({type(problem).__name__}); run the study again."
            ) from None

    def __repr__(self) -> str:
        about = f"{self.size} tokens, layers {ranges(self.layers)} x {self.heads} heads"
        return f"{type(self).__name__}({self.model_name}: {about})"


_PLAIN = (
    "model_name", "origin", "text", "continues", "tokens", "threshold", "line_threshold", "special_option",
    "similarity_option",
)  # fmt: skip
_BY_LAYER = ("attention", "output", "lengths")
_ARRAYS = {
    "ids": "int64",
    "kind": "int8",
    "sentence": "int32",
    "special": "bool",
    "start": "int64",
    "end": "int64",
}


def _over(member: NDArray[np.bool_], matrix: Array) -> NDArray[np.float64]:
    """Sums of a matrix (S, S) over the rectangles of two blocks: (K, S) -> (K, K)."""
    weight = member.astype(np.float64)
    return weight @ matrix.astype(np.float64) @ weight.T


def _divided(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    divided: NDArray[np.float64] = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return divided


def _mean(matrix: Array, where: NDArray[np.bool_]) -> float:
    return float(matrix[where].mean(dtype=np.float64)) if where.any() else float("nan")
