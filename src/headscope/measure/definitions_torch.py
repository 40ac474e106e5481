"""Z -> C -> N -> high pairs, and A -> lines -> blocks, on any device: `definitions` for batches of many heads.

B windows, H heads, S tokens, d the width of a head. A pair is unordered, i < j.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headscope.measure.bins import CUT, EQUAL_BINS, FINE_BINS, NEAR_ONE, SHIFT, VALUE_BINS
from headscope.options import Similarity


def compared(output: Tensor, taking_part: Tensor, similarity: Similarity) -> Tensor:
    """What the similarity is the dot product of: Z as it is (dot), less its mean over the tokens that take part
    (centred), or with rows of length 1 (cosine; a row of length 0 stays). (B, H, S, d) and (B, S) -> (B, H, S, d)."""
    if similarity == "dot":
        return output
    if similarity == "cosine":
        lengths = torch.linalg.vector_norm(output, dim=-1, keepdim=True)
        return output / torch.where(lengths > 0, lengths, 1)
    weights = taking_part[:, None, :, None].to(output.dtype)
    return output - (output * weights).sum(2, keepdim=True) / weights.sum(2, keepdim=True).clamp(min=1)


def mean_vector_share(output: Tensor, taking_part: Tensor) -> Tensor:
    """Of the squared length of Z, the share in the mean vector of the tokens that take part; NaN where Z is 0.

    (B, H, S, d) and (B, S) -> (B, H), float64.

    >>> mean_vector_share(torch.tensor([[[[1.0, 0.0], [1.0, 1.0]]]]), torch.tensor([[True, True]]))
    tensor([[0.8333]], dtype=torch.float64)
    """
    chosen = output * taking_part[:, None, :, None]
    summed = chosen.sum(2).double().square().sum(-1) / taking_part.sum(-1, keepdim=True)
    return summed / chosen.square().sum((2, 3)).double()


def context_similarity(output: Tensor) -> Tensor:
    """C = Z Zᵀ with the diagonal set to 0: (..., S, d) -> (..., S, S), float32.

    >>> context_similarity(torch.tensor([[1.0, 0.0], [2.0, 1.0]]))
    tensor([[0., 2.],
            [2., 0.]])
    """
    output = output.float()
    similarity = output @ output.mT
    similarity.diagonal(dim1=-2, dim2=-1).zero_()
    return similarity


def pairs_among(taking_part: Tensor) -> Tensor:
    """The pairs i < j whose two tokens take part: (..., S) bool -> (..., S, S) bool."""
    both = taking_part.unsqueeze(-1) & taking_part.unsqueeze(-2)
    return both.triu(diagonal=1)


def peak(similarity: Tensor, pairs: Tensor) -> Tensor:
    """m, the largest element of C among the pairs: (..., S, S) -> (...); -inf where there is no pair."""
    return similarity.masked_fill(~pairs, -torch.inf).amax(dim=(-2, -1))


def normalise(similarity: Tensor, peaks: Tensor) -> Tensor:
    """N = C / m; all 0 where m <= 0 (or is no number), so that such a window has no high pairs."""
    positive = (peaks > 0) & peaks.isfinite()
    scale = torch.where(positive, peaks, torch.ones_like(peaks))[..., None, None]
    return torch.where(positive[..., None, None], similarity / scale, torch.zeros_like(similarity))


def attention_lines(attention: Tensor, threshold: float) -> Tensor:
    """Columns of A whose sum, divided by the largest column sum, is above the threshold.

    (..., S, S) -> (..., S) bool. The rows of padding must be 0.
    """
    received = attention.sum(dim=-2, dtype=torch.float64)
    return received / received.amax(dim=-1, keepdim=True) > threshold


def block_of(lines: Tensor) -> Tensor:
    """The block of each token: the number of lines before it. (..., S) bool -> (..., S) int.

    >>> block_of(torch.tensor([False, True, False, False, True, False]))
    tensor([0, 0, 1, 1, 1, 2])
    """
    return lines.cumsum(dim=-1) - lines.long()


def value_bin(normalised: Tensor) -> Tensor:
    """The bin of the value spectrum that an element of N falls into; what lies below -1 goes into the first."""
    return ((normalised.double() + 1) * (VALUE_BINS / 2)).floor().clamp(0, VALUE_BINS - 1).long()


def fine_bin(normalised: Tensor) -> Tensor:
    """The fine bin (see `bins`) of an element of N, float32."""
    equal = ((normalised.double() + 1) * (CUT * VALUE_BINS / 2)).floor().clamp(0, EQUAL_BINS).long()
    below_one = (1 - normalised).contiguous().view(torch.int32).long()
    near_one = ((NEAR_ONE - below_one) >> SHIFT).clamp(0, FINE_BINS - EQUAL_BINS - 1)
    return torch.where(equal < EQUAL_BINS, equal, EQUAL_BINS + near_one)
