"""Plain attention, compiled: it is what a family's own function computes, and takes the place of nothing else."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from structures import fields_of
from torch import Tensor

from headscope.model import compiled_attention
from headscope.model.attention_parts import OwnAttention, Room
from headscope.model.capture import Capture
from headscope.model.compiled_attention import Call, Masks, PlainCalls, attend, can_attend
from headscope.model.diagnosis import family_inputs
from headscope.model.families.small import FAMILIES, small_network
from headscope.model.plain_attention import plain_scaling

BY_NAME = {family.name: family for family in FAMILIES}
HIDING = torch.finfo(torch.float32).min

pytestmark = pytest.mark.skipif(
    compiled_attention._library() is None, reason="no compiled attention for this processor, or no C compiler"
)


def test_the_structure_is_that_of_the_source() -> None:
    assert fields_of(Path(compiled_attention.__file__).with_name("attention.c"), "Call") == list(Call._fields_)


def eager(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float = 0.4
) -> tuple[Tensor, Tensor]:
    """As most families write it."""
    sharing = query.shape[1] // key.shape[1]
    scores = torch.matmul(query, key.repeat_interleave(sharing, 1).transpose(2, 3)) * scaling
    if mask is not None:
        scores = scores + mask[:, :, :, : key.shape[-2]]
    attention = torch.nn.functional.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
    attention = torch.nn.functional.dropout(attention, p=0.0, training=False)
    return torch.matmul(attention, value.repeat_interleave(sharing, 1)).transpose(1, 2).contiguous(), attention


def call_of(
    own: Callable[..., Any] = eager,
    windows: int = 2,
    heads: int = 4,
    sharing: int = 1,
    queries: int = 9,
    keys: int = 9,
    width: int = 8,
    mask: Tensor | None = None,
    seed: int = 0,
) -> OwnAttention:
    """As a projection gives them: the heads of a token beside each other."""
    draw = torch.Generator().manual_seed(seed)
    query, key, value = (
        torch.randn(windows, tokens, count, width, generator=draw).transpose(1, 2)
        for tokens, count in ((queries, heads), (keys, heads // sharing), (keys, heads // sharing))
    )
    return OwnAttention(own, query, key, value, mask)


def attended(call: OwnAttention, scaling: float = 0.4) -> tuple[Tensor, Tensor]:
    output = torch.full(
        (*call.query.shape[:1], call.query.shape[2], call.query.shape[1], call.value.shape[3]), torch.nan
    )
    parts = attend(call, scaling, Masks().of(call), output, Room())
    return output, torch.cat([some.attention.clone() for some in parts], 1)


def by_hand(call: OwnAttention, scaling: float) -> tuple[np.ndarray, np.ndarray]:
    """Query by query, in float64."""
    windows, heads, queries, _ = call.query.shape
    keys, sharing = call.key.shape[2], heads // call.key.shape[1]
    attention = np.zeros((windows, heads, queries, keys))
    output = np.zeros((windows, queries, heads, call.value.shape[3]))
    for b in range(windows):
        for h in range(heads):
            key, value = (matrix[b, h // sharing].double().numpy() for matrix in (call.key, call.value))
            for i in range(queries):
                scores = key @ call.query[b, h, i].double().numpy() * scaling
                if call.mask is not None:
                    full = call.mask[..., :keys].expand(windows, heads, queries, keys)
                    scores = scores + full[b, h, i].double().numpy()
                raised = np.exp(scores - scores.max())
                attention[b, h, i] = raised / raised.sum()
                output[b, i, h] = attention[b, h, i] @ value
    return output, attention


MASKS = "none", "zeros", "causal", "padding", "padding in front", "a bias", "a row hidden"


def mask_of(kind: str, windows: int, heads: int, queries: int, keys: int) -> Tensor | None:
    mask = torch.zeros(windows, 1, queries, keys)
    if kind == "none":
        return None
    if kind == "causal":
        return mask.masked_fill(torch.ones(queries, keys).triu(1).bool(), HIDING)[:1]
    if kind == "padding":
        mask[-1, :, :, keys // 2 + 1 :] = -torch.inf
        return mask[:, :, :1]
    if kind == "padding in front":
        mask[0, :, :, : keys // 2] = HIDING
    if kind == "a bias":
        return torch.linspace(-2, 2, heads * queries * keys).view(1, heads, queries, keys)
    if kind == "a row hidden":
        mask[:, :, 0] = HIDING
    return mask


@given(
    windows=st.integers(1, 3),
    heads=st.sampled_from([(1, 1), (4, 1), (6, 3), (4, 4)]),
    queries=st.integers(1, 40),
    more_keys=st.sampled_from([0, 0, 0, 30]),
    width=st.sampled_from([1, 5, 8, 20, 32, 64, 80]),
    kind=st.sampled_from(MASKS),
    seed=st.integers(0, 5),
)
def test_it_is_softmax_of_the_scores_times_the_values(windows, heads, queries, more_keys, width, kind, seed) -> None:
    (count, sharing), keys = heads, queries + more_keys
    mask = mask_of(kind, windows, count, queries, keys)
    call = call_of(
        windows=windows, heads=count, sharing=sharing, queries=queries, keys=keys, width=width, mask=mask, seed=seed
    )
    output, attention = attended(call)
    expected_output, expected = by_hand(call, 0.4)
    np.testing.assert_allclose(attention.numpy(), expected, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(output.numpy(), expected_output, rtol=0, atol=2e-5)
    if mask is not None and kind != "a row hidden":
        hidden = (mask <= -1e30).expand(windows, count, queries, keys)
        assert not attention[hidden].any()


def test_large_scores_are_as_exact_as_those_of_torch() -> None:
    call = call_of(queries=70, keys=70, width=64)
    call = call._replace(query=call.query * 30)
    own_output, own = call.compute()
    output, attention = attended(call)
    expected_output, expected = by_hand(call, 0.4)
    for mine, torchs, exact in ((attention, own, expected), (output, own_output, expected_output)):
        assert np.abs(mine.numpy() - exact).max() <= 2 * np.abs(torchs.numpy() - exact).max() + 1e-6


def test_neither_the_batch_nor_the_heads_at_once_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    call = call_of(windows=3, heads=6, sharing=2, queries=37, keys=37, mask=mask_of("padding in front", 3, 6, 37, 37))
    output, attention = attended(call)
    for window in range(3):
        alone, its_attention = attended(call.of_window(window))
        assert torch.equal(alone[0], output[window])
        assert torch.equal(its_attention[0], attention[window])
    monkeypatch.setattr(compiled_attention, "SCORES_AT_ONCE", 1)
    assert all(torch.equal(one, other) for one, other in zip(attended(call), (output, attention), strict=True))


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_overflows_is_not_hidden(wrong: float) -> None:
    call = call_of()
    call.query[0, 1, 3, 2] = wrong
    output, attention = attended(call)
    assert attention[0, 1, 3].isnan().all()
    assert output[0, 3, 1].isnan().all()
    assert attention[0, 1, 4].isfinite().all()


@pytest.mark.parametrize("where", ["a key", "a value", "a score", "the mask"])
@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_overflows_behind_a_mask_shows_as_in_the_model(where: str, wrong: float) -> None:
    mask = mask_of("padding", 2, 4, 9, 9)
    assert mask is not None
    call = call_of(mask=mask)
    if where == "a score":
        call.key[-1, 0, 8] = 1e38
        call.query[-1, 0] = call.query[-1, 0].abs() * 1e3
    elif where == "the mask":
        mask[-1, :, :, 8] = wrong
    else:
        (call.key if where == "a key" else call.value)[-1, 0, 8] = wrong
    for mine, own in zip(attended(call), call.compute(), strict=True):
        assert torch.equal(mine.isfinite(), own.isfinite())
        assert (mine - own).nan_to_num(0, 0, 0).abs().max() < 2e-6


def test_a_mask_that_became_another_is_looked_at_again() -> None:
    mask = mask_of("causal", 1, 4, 9, 12)
    call = call_of(windows=1, keys=12, mask=mask)
    masks = Masks()
    first = masks.of(call)
    assert masks.of(call) is first
    shorter = call_of(windows=1, keys=5, mask=mask)
    of_shorter = masks.of(shorter)
    assert of_shorter is not None
    assert of_shorter.end.max() == 5
    assert mask is not None
    mask[..., 3:] = HIDING
    of_changed = masks.of(shorter)
    assert of_changed is not None
    assert of_changed.end.max() == 3


def capped(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    scores = torch.tanh(torch.matmul(query, key.mT) * 0.01) * 100
    attention = (scores + mask if mask is not None else scores).softmax(-1)
    return (attention @ value).transpose(1, 2), attention


def of_its_own_mask(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    scores = torch.matmul(query, key.mT) * 0.5
    scores[..., -1] = HIDING
    attention = scores.softmax(-1)
    return (attention @ value).transpose(1, 2), attention


def in_place(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    scores = torch.matmul(query, key.mT)
    scores += 0.1 * torch.arange(key.shape[2])
    attention = scores.softmax(-1)
    return (attention @ value).transpose(1, 2), attention


def without_its_mask(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    return eager(query, key, value, None)


def gated(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    output, attention = eager(query, key, value, mask)
    return output * output.sigmoid(), attention


def over_queries(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    attention = torch.matmul(query, key.mT).softmax(-2)
    return (attention @ value).transpose(1, 2), attention


def with_a_sink(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    scores = torch.matmul(query, key.mT)
    attention = torch.cat([scores, scores.new_zeros(*scores.shape[:3], 1)], -1).softmax(-1)[..., :-1]
    return (attention @ value).transpose(1, 2), attention


def cut_off(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    attention = torch.matmul(query, key.mT).clamp(-500, 500).softmax(-1)
    return (attention @ value).transpose(1, 2), attention


def without_hidden_rows(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    assert mask is not None
    attention = (torch.matmul(query, key.mT) + mask).softmax(-1)
    if (hidden := (mask <= -1e30).all(-1, True)).any():
        attention = attention.masked_fill(hidden, 0)
    return (attention @ value).transpose(1, 2), attention


@pytest.mark.parametrize("own", [cut_off, without_hidden_rows])
def test_what_does_nothing_to_the_first_call_may_do_something_to_another(own: Callable[..., Any]) -> None:
    call = call_of(own, mask=None if own is cut_off else mask_of("causal", 2, 4, 9, 9))
    assert PlainCalls().scaling(0, call, {}) is None


@pytest.mark.parametrize("own", [capped, of_its_own_mask, in_place, without_its_mask, gated, over_queries, with_a_sink])
def test_what_does_anything_else_is_not_plain(own: Callable[..., Any]) -> None:
    assert plain_scaling(call_of(own, mask=mask_of("causal", 2, 4, 9, 9))) is None


@pytest.mark.parametrize("kind", MASKS)
def test_the_scaling_of_a_plain_call_is_found(kind: str) -> None:
    assert plain_scaling(call_of(mask=mask_of(kind, 2, 4, 9, 9), sharing=2)) == 0.4


def divided(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    scores = torch.matmul(query, key.transpose(-1, -2)) / 4.0
    attention = torch.softmax(scores if mask is None else scores + mask, -1)
    return torch.matmul(attention, value).transpose(1, 2), attention


def test_other_ways_to_write_it_are_plain_too() -> None:
    assert (
        plain_scaling(call_of(divided)) == plain_scaling(call_of(divided, mask=mask_of("causal", 2, 4, 9, 9))) == 0.25
    )


def test_calls_that_it_does_not_take_are_left_to_the_model() -> None:
    call = call_of()
    assert can_attend(call)
    halves = [matrix.half() for matrix in (call.query, call.key, call.value)]
    assert not can_attend(OwnAttention(eager, *halves, None))
    assert not can_attend(call._replace(mask=torch.ones(9, 9, dtype=torch.bool)[None, None]))
    assert not can_attend(call._replace(mask=torch.zeros(9, 9)))
    assert not can_attend(call._replace(key=call.key[:, :3]))
    assert not can_attend(call._replace(query=call.query[:1]))
    assert not can_attend(call._replace(query=call.query[:0], key=call.key[:0], value=call.value[:0]))


PLAIN = {"BERT", "GPT-2", "Llama", "ViT", "BART decoder"}
NOT_PLAIN = {"T5 encoder", "GPT-OSS"}
CASES = [
    pytest.param(family, stack, id=f"{family.name} {stack or ''}".strip())
    for family in FAMILIES
    if family.known
    for stack in family.stacks
]


@pytest.mark.parametrize(("family", "stack"), CASES)
def test_every_family_is_handed_on_as_its_own_function_computes_it(family, stack, request) -> None:
    network = small_network(family)
    inputs, mask = family_inputs(family, network, stack)
    capture = Capture(network, stack)
    own: dict[int, tuple[Tensor, Tensor]] = {}
    capture.run(inputs, mask, lambda layer, A, Z: own.update({layer: (A.clone(), Z.clone())}))

    def compare(layer: int, heads: slice, A: Tensor, Z: Tensor, lengths: Tensor) -> None:
        own_A, own_Z = own.pop(layer) if heads.stop == capture.heads else own[layer]
        assert (A - own_A[:, heads]).abs().max() < 2e-6
        assert (Z - own_Z[:, heads]).abs().max() <= 2e-6 * own_Z.abs().max()

    capture.run_by_heads(inputs, mask, compare, each_by_itself=True)
    assert not own
    name = request.node.callspec.id
    known = list(capture._plain._known.values())
    if name in PLAIN:
        assert len(known) == len(capture.measurable)
        assert None not in known
    if name in NOT_PLAIN:
        assert not any(known)


@pytest.mark.parametrize("which", ["minilm", "gte_small"])
def test_a_real_model_is_as_near_to_float64_as_with_its_own_function(which, request, sample) -> None:
    model = request.getfixturevalue(which)
    given = model.tokenizer(sample[:4], max_length=128, truncation=True, padding=True, return_tensors="pt")
    inputs, mask = given["input_ids"], given["attention_mask"]
    exact: dict[int, tuple[Tensor, Tensor]] = {}
    Capture(copy.deepcopy(model.network).double()).run(
        inputs, mask, lambda layer, A, Z: exact.update({layer: (A.clone(), Z.clone())})
    )

    def off(layer: int, heads: slice, A: Tensor, Z: Tensor) -> Tensor:
        exact_A, exact_Z = exact[layer]
        scale = exact_Z.abs().mean()
        return torch.stack([(A - exact_A[:, heads]).abs().sum(), (Z - exact_Z[:, heads]).abs().sum() / scale])

    capture = Capture(model.network)
    own, compiled = [], []
    capture.run(inputs, mask, lambda layer, A, Z: own.append(off(layer, slice(0, capture.heads), A, Z)))
    capture.run_by_heads(inputs, mask, lambda layer, heads, A, Z, _: compiled.append(off(layer, heads, A, Z)))
    assert (sum(compiled) <= 1.05 * sum(own)).all()
