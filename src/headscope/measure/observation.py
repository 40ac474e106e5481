"""What is seen of a batch: per window and head, the counts that every measure needs.

`LayerSums` are the large arrays, added to in place where they arise; `Seen` holds small numbers per layer, window and
head. `observe` fills both from the A and Z of one layer. This is the version for any device; on a CPU `kernel.observe`
does the same in one pass over each matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from headscope.corpus.windows import KINDS, Batch
from headscope.measure.declaration import VALUE_BINS
from headscope.measure.definitions_torch import (
    attention_lines,
    block_of,
    context_similarity,
    normalise,
    pairs_among,
    peak,
    value_bin,
)
from headscope.options import Options

EQUAL, TOGETHER = 1, 2
"""Flags of two tokens, a bit each, see `Tokens.flags`."""


@dataclass(frozen=True)
class Tokens:
    """What the measures know of the tokens of a batch, on the device of the model.

    ids, kind: (B, S); real: (B, S), not padding; part: (B, S), takes part in pairs; size: (B,).
    flags: (B, S, S) int8, of every two tokens: EQUAL, the same id; TOGETHER, in one sentence.
    pair_count, equal_count, together_count: (B,), all pairs; those of equal tokens; those within one sentence.
    equal_share, together_share: (B, S), of the pairs at each distance the share of equal tokens, and of those within
    one sentence; index = distance.
    """

    ids: Tensor
    kind: Tensor
    real: Tensor
    part: Tensor
    size: Tensor
    flags: Tensor
    pair_count: Tensor
    equal_count: Tensor
    together_count: Tensor
    equal_share: Tensor
    together_share: Tensor

    @classmethod
    def of(cls, batch: Batch, special: str, device: torch.device) -> Tokens:
        ids, sentence, kind, left_out, size = (
            torch.from_numpy(array).to(device)
            for array in (batch.ids, batch.sentence, batch.kind, batch.special, batch.size)
        )
        real = torch.arange(ids.shape[1], device=device) < size[:, None]
        part = real & ~left_out if special == "drop" else real
        pairs = pairs_among(part)
        equal, together = equal_tokens(ids), same_sentence(sentence)
        return cls(
            ids,
            kind.long(),
            real,
            part,
            size,
            equal.to(torch.int8) * EQUAL + together.to(torch.int8) * TOGETHER,
            pairs.sum((1, 2)),
            (pairs & equal).sum((1, 2)),
            (pairs & together).sum((1, 2)),
            share_by_distance(pairs & equal, pairs),
            share_by_distance(pairs & together, pairs),
        )


@dataclass(frozen=True)
class LayerSums:
    """Of one layer, added to where they arise. (H, S, S), and (H, 200) for the spectrum.

    `similarity_sum` and `high_count` are symmetric: only i < j is added to. `attention_sum` is kept as its two parts,
    what lies in columns that are lines and the rest: mostly one of them is small, and costs little to add to.
    """

    attention_sum_on_lines: Tensor
    attention_sum_without_lines: Tensor
    similarity_sum: Tensor
    high_count: Tensor
    similarity_histogram: Tensor

    def of(self, heads: slice) -> LayerSums:
        """The same of some heads, as views."""
        return LayerSums(*(getattr(self, field.name)[heads] for field in fields(self)))


@dataclass(frozen=True)
class Seen:
    """Per layer, window and head, (L, B, H) unless said.

    peak: m. pairs: high pairs; of them repeats: equal tokens, together: within one sentence, repeats_together: both.
    repeats_expected, together_expected: how many would be of equal tokens, or within one sentence, if at each distance
    the high pairs were drawn from all pairs of that distance.
    focal: the focal token, -1 where there is none; focal_pairs: the high pairs that include it.
    contrast: block contrast, NaN where it is left out. attention_to: (L, B, H, 6), attention that each kind of token
    receives; lines: (L, B, H, 6), lines on each kind.
    """

    peak: Tensor
    pairs: Tensor
    repeats: Tensor
    together: Tensor
    repeats_together: Tensor
    repeats_expected: Tensor
    together_expected: Tensor
    focal: Tensor
    focal_pairs: Tensor
    contrast: Tensor
    attention_to: Tensor
    lines: Tensor

    @classmethod
    def empty(cls, layers: int, windows: int, heads: int, device: torch.device) -> Seen:
        shape = (layers, windows, heads)

        def whole(*more: int) -> Tensor:
            return torch.zeros(*shape, *more, dtype=torch.int64, device=device)

        def real(*more: int) -> Tensor:
            return torch.zeros(*shape, *more, dtype=torch.float64, device=device)

        return cls(
            peak=real(),
            pairs=whole(),
            repeats=whole(),
            together=whole(),
            repeats_together=whole(),
            repeats_expected=real(),
            together_expected=real(),
            focal=whole(),
            focal_pairs=whole(),
            contrast=real(),
            attention_to=real(len(KINDS)),
            lines=whole(len(KINDS)),
        )

    def layer(self, index: int) -> Seen:
        """The same of one layer, (B, H), as views."""
        return Seen(*(getattr(self, field.name)[index] for field in fields(self)))

    def of(self, heads: slice) -> Seen:
        """Of one layer, the same of some heads, as views."""
        return Seen(*(getattr(self, field.name)[:, heads] for field in fields(self)))


def equal_tokens(ids: Tensor) -> Tensor:
    """(B, S) -> (B, S, S): the two tokens have the same id."""
    return ids.unsqueeze(-1) == ids.unsqueeze(-2)


def by_distance(pairs: Tensor) -> Tensor:
    """(..., S, S) bool, i < j -> (..., S) float64: how many have each distance j - i; index = distance."""
    length = pairs.shape[-1]
    place = torch.arange(length, device=pairs.device)
    distance = (place - place[:, None]).clamp(min=0).flatten().expand(*pairs.shape[:-2], -1)
    counts = torch.zeros(*pairs.shape[:-1], dtype=torch.float64, device=pairs.device)
    return counts.scatter_add_(-1, distance, pairs.flatten(-2).double())


def share_by_distance(some: Tensor, pairs: Tensor) -> Tensor:
    """(B, S, S) bool, twice -> (B, S): of the pairs at each distance, the share of some; 0 where there are none."""
    return by_distance(some) / by_distance(pairs).clamp(min=1)


def same_sentence(sentence: Tensor) -> Tensor:
    """(B, S) -> (B, S, S): the two tokens are in one sentence; special tokens (-1) are in none."""
    return (sentence.unsqueeze(-1) == sentence.unsqueeze(-2)) & (sentence >= 0).unsqueeze(-1)


def observe(
    attention: Tensor, output: Tensor, heads: slice, tokens: Tokens, options: Options, sums: LayerSums, seen: Seen
) -> None:
    """Add what heads of one layer show: attention (B, H, S, S), output (B, H, S, d) of these heads; `sums` and `seen`
    of all heads of this layer."""
    sums, seen = sums.of(heads), seen.of(heads)
    attention = attention.float() * tokens.real[:, None, :, None]
    lines = attention_lines(attention, options.line_threshold)
    _observe_attention(attention, lines, tokens, sums, seen)
    _observe_similarity(output, block_of(lines), tokens, options, sums, seen)


def _observe_attention(attention: Tensor, lines: Tensor, tokens: Tokens, sums: LayerSums, seen: Seen) -> None:
    on_lines = attention.masked_fill(~lines.unsqueeze(-2), 0)
    without_lines = attention.masked_fill(lines.unsqueeze(-2), 0)
    sums.attention_sum_on_lines.add_(on_lines.sum(0, dtype=torch.float64))
    sums.attention_sum_without_lines.add_(without_lines.sum(0, dtype=torch.float64))
    of_kind = torch.nn.functional.one_hot(tokens.kind, len(KINDS)).double()
    seen.attention_to.copy_(attention.sum(-2, dtype=torch.float64) @ of_kind)
    seen.lines.copy_((lines.double() @ of_kind).long())


def _observe_similarity(
    output: Tensor, blocks: Tensor, tokens: Tokens, options: Options, sums: LayerSums, seen: Seen
) -> None:
    heads = output.shape[1]
    pairs = pairs_among(tokens.part)[:, None]
    similarity = context_similarity(output)
    peaks = peak(similarity, pairs)
    positive = (peaks > 0) & peaks.isfinite()
    normalised = normalise(similarity, peaks).masked_fill(~pairs, 0)
    seen.peak.copy_(peaks)
    sums.similarity_sum.add_(normalised.sum(0, dtype=torch.float64))

    offset = torch.arange(heads, device=output.device)[:, None, None] * VALUE_BINS
    counted = (pairs & positive[..., None, None]).long()
    spectrum = sums.similarity_histogram.view(-1)
    spectrum.scatter_add_(0, (value_bin(normalised) + offset).flatten(), counted.flatten())

    high = (normalised > options.threshold) & pairs
    both_ways = high | high.mT
    sums.high_count.add_(high.sum(0))
    equal = (tokens.flags & EQUAL).bool()[:, None]
    together = (tokens.flags & TOGETHER).bool()[:, None]
    seen.pairs.copy_(high.sum((2, 3)))
    seen.repeats.copy_((high & equal).sum((2, 3)))
    seen.together.copy_((high & together).sum((2, 3)))
    seen.repeats_together.copy_((high & equal & together).sum((2, 3)))

    distances = by_distance(high)
    seen.repeats_expected.copy_((distances * tokens.equal_share[:, None]).sum(-1))
    seen.together_expected.copy_((distances * tokens.together_share[:, None]).sum(-1))

    # Twice the number of high pairs that include the token at each place: a pair of two equal tokens counts once.
    degree = 2 * both_ways.sum(-1) - (both_ways & equal).sum(-1)
    included = (degree.double() @ equal[:, 0].double()).long()
    most = included.amax(-1, keepdim=True)
    highest = torch.iinfo(torch.int64).max
    focal = torch.where(included == most, tokens.ids[:, None], highest).amin(-1)
    seen.focal.copy_(torch.where(most[..., 0] > 0, focal, -1))
    seen.focal_pairs.copy_(most[..., 0] // 2)

    inside = (blocks.unsqueeze(-1) == blocks.unsqueeze(-2)) & pairs
    outside = ~inside & pairs
    means = [(normalised.double() * where).sum((2, 3)) / where.sum((2, 3)) for where in (inside, outside)]
    seen.contrast.copy_(torch.where(positive, means[0] - means[1], torch.nan))
