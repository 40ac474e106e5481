"""What is seen of a batch.

`LayerSums` are the large arrays, added to in place where they arise; `Seen` holds small numbers per layer, window and
head. `Observing` fills both from the A and Z of one layer. This is the version for any device; on a CPU that of
`kernel` does the same in one pass over each matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from headscope.corpus.windows import KINDS, Batch
from headscope.measure.bins import COARSE_EDGES, FINE_BINS, THRESHOLDS, threshold_place
from headscope.measure.declaration import GROUPS, RELATIONS, SETS
from headscope.measure.definitions_torch import (
    attention_lines,
    block_of,
    compared,
    context_similarity,
    fine_bin,
    mean_vector_share,
    normalise,
    pairs_among,
    peak,
    value_bin,
)
from headscope.measure.seen import Seen
from headscope.options import Options

EQUAL, TOGETHER, NO_PAIR = 1, 2, 4
"""Flags of two tokens, see `Tokens.flags`. The first two together number the relation, as in `RELATIONS`."""
ROUNDING = 1e-12
"""Where all of r^2 is less than this share of all of N^2, r is nothing but rounding, and counts as 0."""


@dataclass(frozen=True)
class Tokens:
    """What the measures know of the tokens of a batch, on the device of the model.

    ids, kind: (B, S); same_id: (B, S), the first place in the window of the same id; real: (B, S), not padding; part:
    (B, S), takes part in pairs; size: (B,). group: (B,), of texts; kind_count: (B, 6), tokens of each kind.
    flags: (B, S, S) int8, of every pair i < j: EQUAL, the same id; TOGETHER, in one sentence; NO_PAIR elsewhere.
    by_distance: (B, 3, S) float64, how many pairs of each of `SETS` lie how far apart; index = distance.
    """

    ids: Tensor
    same_id: Tensor
    kind: Tensor
    real: Tensor
    part: Tensor
    size: Tensor
    group: Tensor
    kind_count: Tensor
    flags: Tensor
    by_distance: Tensor

    @classmethod
    def of(cls, batch: Batch, special: str, device: torch.device) -> Tokens:
        ids, sentence, kind, left_out, size, text = (
            torch.from_numpy(array).to(device)
            for array in (batch.ids, batch.sentence, batch.kind, batch.special, batch.size, batch.text)
        )
        real = torch.arange(ids.shape[1], device=device) < size[:, None]
        part = real & ~left_out if special == "drop" else real
        pairs = pairs_among(part)
        equal, together = equal_tokens(ids), same_sentence(sentence)
        flags = equal.to(torch.int8) * EQUAL + together.to(torch.int8) * TOGETHER
        return cls(
            ids,
            equal.long().argmax(-1),
            kind.long(),
            real,
            part,
            size,
            text % GROUPS,
            (torch.nn.functional.one_hot(kind.long(), len(KINDS)) * real[..., None]).sum(1),
            flags.masked_fill_(~pairs, NO_PAIR),
            torch.stack([by_distance(pairs), by_distance(pairs & equal), by_distance(pairs & together)], 1),
        )

    @property
    def pair_count(self) -> Tensor:
        """(B,): all pairs."""
        return self._counted("all")

    @property
    def equal_count(self) -> Tensor:
        """(B,): pairs of equal tokens."""
        return self._counted("equal")

    @property
    def together_count(self) -> Tensor:
        """(B,): pairs within one sentence."""
        return self._counted("together")

    def _counted(self, which: str) -> Tensor:
        return self.by_distance[:, SETS.index(which)].sum(-1).long()


@dataclass(frozen=True)
class LayerSums:
    """Of one layer, added to where they arise. (H, S, S), (H, S) for distances, and as declared for spectra.

    `similarity_sum` and `high_count` are symmetric: only i < j is added to. `attention_sum` is kept as its two parts,
    what lies in columns that are lines and the rest: mostly one of them is small, and costs little to add to.
    """

    attention_sum_on_lines: Tensor
    attention_sum_without_lines: Tensor
    similarity_sum: Tensor
    high_count: Tensor
    distance_histogram: Tensor
    spectrum: Tensor
    spectrum_of_groups: Tensor
    distance_spectrum: Tensor

    def of(self, heads: slice) -> LayerSums:
        """The same of some heads, as views."""
        return LayerSums(*(getattr(self, field.name)[heads] for field in fields(self)))


def equal_tokens(ids: Tensor) -> Tensor:
    """(B, S) -> (B, S, S): the two tokens have the same id."""
    return ids.unsqueeze(-1) == ids.unsqueeze(-2)


def by_distance(pairs: Tensor) -> Tensor:
    """(..., S, S) bool, i < j -> (..., S) float64: how many have each distance j - i; index = distance."""
    return summed_by_distance(pairs.double())


def summed_by_distance(values: Tensor) -> Tensor:
    """(..., S, S) float64, 0 but for i < j -> (..., S): their sum at each distance j - i; index = distance."""
    length = values.shape[-1]
    place = torch.arange(length, device=values.device)
    distance = (place - place[:, None]).clamp(min=0).flatten().expand(*values.shape[:-2], -1)
    return values.new_zeros(values.shape[:-1]).scatter_add_(-1, distance, values.flatten(-2))


def same_sentence(sentence: Tensor) -> Tensor:
    """(B, S) -> (B, S, S): the two tokens are in one sentence; special tokens (-1) are in none."""
    return (sentence.unsqueeze(-1) == sentence.unsqueeze(-2)) & (sentence >= 0).unsqueeze(-1)


@dataclass(frozen=True)
class Observing:
    """Of one batch."""

    tokens: Tokens
    options: Options

    def __call__(
        self, attention: Tensor, output: Tensor, lengths: Tensor, heads: slice, sums: LayerSums, seen: Seen
    ) -> None:
        """Add what heads of one layer show: attention (B, H, S, S), output (B, H, S, d), and the lengths of their
        values (B, H, S), of these heads; `sums` and `seen` of all heads of this layer."""
        tokens, options, sums, seen = self.tokens, self.options, sums.of(heads), seen.of(heads)
        attention = attention.float() * tokens.real[:, None, :, None]
        lines = attention_lines(attention, options.line_threshold)
        _observe_attention(attention, lines, lengths, tokens, sums, seen)
        output = output.float()
        seen.mean_vector_share.copy_(mean_vector_share(output, tokens.part))
        similarity = context_similarity(compared(output, tokens.part, options.similarity))
        _observe_similarity(similarity, block_of(lines), tokens, options, sums, seen)


def _observe_attention(
    attention: Tensor, lines: Tensor, lengths: Tensor, tokens: Tokens, sums: LayerSums, seen: Seen
) -> None:
    on_lines = attention.masked_fill(~lines.unsqueeze(-2), 0)
    without_lines = attention.masked_fill(lines.unsqueeze(-2), 0)
    sums.attention_sum_on_lines.add_(on_lines.sum(0, dtype=torch.float64))
    sums.attention_sum_without_lines.add_(without_lines.sum(0, dtype=torch.float64))
    of_kind = torch.nn.functional.one_hot(tokens.kind, len(KINDS)).double() * tokens.real[..., None]
    received = attention.sum(-2, dtype=torch.float64)
    seen.attention_to.copy_(received @ of_kind)
    seen.carried_to.copy_((received * lengths.masked_fill(~tokens.real[:, None], 0)) @ of_kind)
    seen.lines.copy_((lines.double() @ of_kind).long())
    both_real = attention.double() * tokens.real[:, None, None]
    seen.diagonals.copy_(
        torch.stack([both_real.diagonal(offset, -2, -1).sum(-1) for offset in (0, -1, 1)], -1)
    )  # in the order of DIAGONALS


def _observe_similarity(
    similarity: Tensor, blocks: Tensor, tokens: Tokens, options: Options, sums: LayerSums, seen: Seen
) -> None:
    pairs = pairs_among(tokens.part)[:, None]
    peaks = peak(similarity, pairs)
    positive = (peaks > 0) & peaks.isfinite()
    normalised = normalise(similarity, peaks).masked_fill(~pairs, 0)
    seen.peak.copy_(peaks)
    sums.similarity_sum.add_(normalised.sum(0, dtype=torch.float64))
    _observe_values(normalised, pairs & positive[..., None, None], tokens, sums)
    _observe_residuals(normalised, positive, tokens, seen)

    high = (normalised > options.threshold) & pairs
    both_ways = high | high.mT
    sums.high_count.add_(high.sum(0))
    equal, together = ((tokens.flags & flag == flag)[:, None] for flag in (EQUAL, TOGETHER))
    seen.pairs.copy_(high.sum((2, 3)))
    seen.repeats.copy_((high & equal).sum((2, 3)))
    seen.together.copy_((high & together).sum((2, 3)))
    seen.repeats_together.copy_((high & equal & together).sum((2, 3)))

    distances = by_distance(high)
    sums.distance_histogram.add_(distances.sum(0).long())
    seen.distance.copy_(distances @ torch.arange(distances.shape[-1], device=distances.device).double())
    every, of_equal, of_together = (counts[:, None] for counts in tokens.by_distance.unbind(1))
    seen.repeats_expected.copy_((distances * of_equal / every.clamp(min=1)).sum(-1))
    seen.together_expected.copy_((distances * of_together / every.clamp(min=1)).sum(-1))

    # Twice the number of high pairs that include the token at each place: a pair of two equal tokens counts once.
    same_id = equal_tokens(tokens.ids)
    degree = 2 * both_ways.sum(-1) - (both_ways & same_id[:, None]).sum(-1)
    included = (degree.double() @ same_id.double()).long()
    most = included.amax(-1, keepdim=True)
    highest = torch.iinfo(torch.int64).max
    focal = torch.where(included == most, tokens.ids[:, None], highest).amin(-1)
    seen.focal.copy_(torch.where(most[..., 0] > 0, focal, -1))
    seen.focal_pairs.copy_(most[..., 0] // 2)

    inside = (blocks.unsqueeze(-1) == blocks.unsqueeze(-2)) & pairs
    outside = ~inside & pairs
    means = [(normalised.double() * where).sum((2, 3)) / where.sum((2, 3)) for where in (inside, outside)]
    seen.contrast.copy_(torch.where(positive, means[0] - means[1], torch.nan))


def _observe_values(normalised: Tensor, counted: Tensor, tokens: Tokens, sums: LayerSums) -> None:
    """Count N, (B, H, S, S), into the spectra. counted: the pairs of windows that have an N."""
    length = normalised.shape[-1]
    b, h, i, j = counted.nonzero(as_tuple=True)
    value = normalised[b, h, i, j]
    relation, fine = tokens.flags[b, i, j].long(), fine_bin(value)
    _count(sums.spectrum, (h * len(RELATIONS) + relation) * FINE_BINS + fine)
    edges = torch.from_numpy(COARSE_EDGES).to(fine.device)
    coarse = torch.bucketize(fine, edges, right=True) - 1
    for place, flag in ((0, 0), (1, EQUAL), (2, TOGETHER)):  # in the order of SETS
        of_set = relation & flag == flag
        cell = (h * GROUPS + tokens.group[b]) * len(SETS) + place
        _count(sums.spectrum_of_groups, (cell * (len(edges) - 1) + coarse)[of_set])
    threshold = (value_bin(value) - threshold_place(THRESHOLDS[0])).clamp(max=len(THRESHOLDS) - 1)
    _count(sums.distance_spectrum, ((h * length + j - i) * len(THRESHOLDS) + threshold)[threshold >= 0])


def _count(state: Tensor, cells: Tensor) -> None:
    """Add 1 for every cell, by its number in the state."""
    state.add_(cells.bincount(minlength=state.numel()).view(state.shape).to(state.dtype))


def _observe_residuals(normalised: Tensor, positive: Tensor, tokens: Tokens, seen: Seen) -> None:
    """r: N, (B, H, S, S) and 0 for what is no pair, less its mean over the pairs of the same distance."""
    values = normalised.double()
    every, of_equal, of_together = (counts[:, None] for counts in tokens.by_distance.unbind(1))
    mean = summed_by_distance(values) / every.clamp(min=1)
    square = values.square().sum((2, 3))
    rest = square - (every * mean.square()).sum(-1)
    real = positive & (rest > ROUNDING * square)
    seen.noise_square.copy_(torch.where(real, rest, 0))
    for flag, counts, signal in ((EQUAL, of_equal, seen.signal_equal), (TOGETHER, of_together, seen.signal_together)):
        of_relation = (values * (tokens.flags & flag == flag)[:, None]).sum((2, 3))
        signal.copy_(torch.where(real, of_relation - (counts * mean).sum(-1), 0))
