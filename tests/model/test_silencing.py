"""Silencing a head is setting its part of the output projection to zero, in every family; nothing else changes."""

from __future__ import annotations

import copy
from collections import defaultdict
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.pytorch_utils import Conv1D

import headscope
from headscope import HeadscopeError
from headscope.model.capture import Capture
from headscope.model.diagnosis import family_inputs
from headscope.model.families.small import FAMILIES, Family, small_network
from headscope.model.loading import Model
from headscope.model.resuming import Windows, final_states, kept_pass, resumable, resumed_pass
from headscope.model.silencing import Change, edited, silenced

pytestmark = pytest.mark.model
KNOWN = [family for family in FAMILIES if family.known]
CASES = [
    pytest.param(family, stack, id=f"{family.name} {stack or ''}".strip())
    for family in KNOWN
    for stack in family.stacks
]
NO_STATES = {"DPR"}
"""Families whose networks put out no hidden states, so that only `silenced` is for them."""
NOT_RESUMED = {"ALBERT", "HRM-text"}
"""Families that call one module again and again: all of it is run every time."""
BY_NAME = {family.name: family for family in FAMILIES}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Networks this small only lose by sharing work among threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def network_of(name: str) -> Any:
    return small_network(BY_NAME[name])


@cache
def capture_of(name: str, stack: str | None) -> Capture:
    return Capture(network_of(name), stack)


def inputs_of(family: Family, stack: str | None) -> Windows:
    return Windows(*family_inputs(family, network_of(family.name), stack))


def output_of(capture: Capture, windows: Windows) -> Tensor:
    """Whatever the network puts out first."""
    with torch.inference_mode():
        return capture.network(**capture.arguments(windows.inputs, windows.mask))[0]


def layers_of_projections(capture: Capture) -> dict[str, list[int]]:
    """By one name of the projection; in families that share modules or weights it has several layers."""
    found: dict[int, list[int]] = defaultdict(list)
    for layer, place in capture.places.items():
        found[id(capture.network.get_submodule(place.projection).weight)].append(layer)
    return {capture.places[layers[0]].projection: layers for layers in found.values()}


def without_columns(capture: Capture, projection: str, head: int) -> Any:
    """A copy of the network in which the head's columns of the output projection are zero."""
    network = copy.deepcopy(capture.network)
    module = network.get_submodule(projection)
    matrix = module.weight.T if isinstance(module, Conv1D) else module.weight
    width = matrix.shape[1] // capture.heads
    with torch.no_grad():
        matrix[:, head * width : (head + 1) * width] = 0
    return network


@pytest.mark.parametrize(("family", "stack"), CASES)
def test_a_silenced_head_is_one_whose_columns_of_the_projection_are_zero(family: Family, stack: str | None) -> None:
    capture = capture_of(family.name, stack)
    windows = inputs_of(family, stack)
    arguments = capture.arguments(windows.inputs, windows.mask)
    before = output_of(capture, windows)
    for projection, layers in layers_of_projections(capture).items():
        head = layers[0] % capture.heads
        with torch.inference_mode():
            expected = without_columns(capture, projection, head)(**arguments)[0]
            with silenced(network_of(family.name), {(layer, head) for layer in layers}, stack=stack):
                found = capture.network(**arguments)[0]
        scale = float(before.abs().max())
        assert float((found - expected).abs().max()) <= 2e-5 * scale
        assert float((found - before).abs().max()) > 1e-4 * scale or capture.stack == "encoder"
    assert torch.equal(output_of(capture, windows), before)


@pytest.mark.parametrize(("family", "stack"), CASES)
def test_what_is_put_back_as_it_was_changes_no_bit(family: Family, stack: str | None) -> None:
    """The hooks themselves cost nothing: every head replaced by its own output."""
    capture = capture_of(family.name, stack)
    windows = inputs_of(family, stack)
    before = output_of(capture, windows)
    every = {(layer, head): (lambda z: z) for layer in capture.measurable for head in range(capture.heads)}
    with silenced(network_of(family.name), every, stack=stack):
        assert torch.equal(output_of(capture, windows), before)
    with silenced(network_of(family.name), set(), stack=stack):
        assert torch.equal(output_of(capture, windows), before)


@pytest.mark.parametrize(("family", "stack"), CASES)
def test_a_pass_from_the_middle_is_the_whole_pass(family: Family, stack: str | None) -> None:
    """For copies of padded windows, each with another head silenced."""
    if family.name in NO_STATES:
        pytest.skip("puts out no hidden states")
    capture = capture_of(family.name, stack)
    windows = inputs_of(family, stack)
    allowed = resumable(capture)
    assert set(allowed) == (set() if family.name in NOT_RESUMED else set(capture.measurable))
    before, outputs = kept_pass(capture, windows)
    for layer in capture.measurable[-2:]:
        changes = {layer: silencing_in_copies(capture, layer, len(windows), 3)}
        first = layer if layer in allowed else 0
        found = resumed_pass(capture, windows, outputs, first, 3, changes).view(3, *before.shape)
        for head in range(3):
            with silenced(network_of(family.name), {(layer, head)}, stack=stack):
                expected = final_states(capture, windows)
            torch.testing.assert_close(found[head], expected, rtol=1e-4, atol=1e-5 * float(before.abs().max()))


@pytest.mark.parametrize(("family", "stack"), CASES)
def test_a_pass_from_a_projection_is_the_whole_pass(family: Family, stack: str | None) -> None:
    """For each padded window by itself: its copies part where the first change is made."""
    if family.name in NO_STATES:
        pytest.skip("puts out no hidden states")
    capture = capture_of(family.name, stack)
    windows = inputs_of(family, stack)
    allowed = [layer for layer, begin in resumable(capture).items() if begin == "projection"]
    if not allowed:
        pytest.skip("is resumed from whole layers")
    for place in range(len(windows)):
        given = (windows.inputs, windows.mask, windows.types)
        one = Windows(*(None if part is None else part[place : place + 1] for part in given))
        before, outputs = kept_pass(capture, one)
        for layer in (allowed[0], allowed[-1]):
            changes = {layer: silencing_in_copies(capture, layer, 1, 3, copied=True)}
            found = resumed_pass(capture, one, outputs, layer, 3, changes, "projection")
            for head in range(3):
                with silenced(network_of(family.name), {(layer, head)}, stack=stack):
                    expected = final_states(capture, one)
                assert expected.shape == before.shape
                torch.testing.assert_close(
                    found[head : head + 1], expected, rtol=1e-4, atol=1e-5 * float(before.abs().max())
                )


def silencing_in_copies(capture: Capture, layer: int, windows: int, copies: int, copied: bool = False) -> Change:
    def edit(output: Tensor) -> None:
        for number in range(copies):
            output[number * windows : (number + 1) * windows, number] = 0

    return edited(capture.places[layer], capture.heads, copies * windows, edit, copied)


def test_a_layer_of_several_that_share_a_module_is_silenced_alone() -> None:
    """Layer 1 of ALBERT is changed, so what comes before it is as it was, and what comes after is not."""
    network, windows = network_of("ALBERT"), inputs_of(BY_NAME["ALBERT"], None)
    capture = Capture(network)

    def outputs() -> dict[int, Tensor]:
        found: dict[int, Tensor] = {}
        capture.run(windows.inputs, windows.mask, lambda layer, A, Z: found.__setitem__(layer, Z.clone()))
        return found

    before = outputs()
    with silenced(network, {(1, 2)}):
        after = outputs()
    assert torch.equal(after[0], before[0])
    torch.testing.assert_close(after[1], before[1])
    assert not torch.allclose(after[2], before[2], atol=1e-3)


def test_a_vector_or_a_function_takes_the_place_of_a_head() -> None:
    network, windows = network_of("BERT"), inputs_of(BY_NAME["BERT"], None)
    capture = Capture(network)
    mean = torch.linspace(-1, 1, capture.head_width)
    with silenced(network, {(1, 2): mean}):
        by_vector = output_of(capture, windows)
    with silenced(network, {(1, 2): lambda z: mean.expand_as(z)}):
        by_function = output_of(capture, windows)
    assert torch.equal(by_vector, by_function)
    assert not torch.equal(by_vector, output_of(capture, windows))


def test_a_model_with_a_head_for_a_task_is_silenced_as_well(tiny: Model) -> None:
    from transformers import BertForMaskedLM

    network = BertForMaskedLM(tiny.network.config).eval()
    ids = torch.arange(12)[None]
    with torch.inference_mode():
        before = network(ids).logits
        with headscope.silenced(network, {(0, 1)}):
            silent = network(ids).logits
        with headscope.silenced(Model(network, tiny.tokenizer, "mine"), {(0, 1)}):
            assert torch.equal(network(ids).logits, silent)
        assert torch.equal(network(ids).logits, before)
    assert not torch.allclose(silent, before)


@pytest.mark.parametrize(
    ("heads", "sentence"),
    [
        ({(3, 0)}, "There is no head 3:0; the model has layers 0 to 2 with heads 0 to 3."),
        ({(0, 4)}, "There is no head 0:4; the model has layers 0 to 2 with heads 0 to 3."),
        ({(0, -1)}, "There is no head 0:-1; the model has layers 0 to 2 with heads 0 to 3."),
        ({3}, "3 is no head; a head is a layer and a number, for example (3, 1)."),
        ({(1.0, 2)}, "(1.0, 2) is no head; a head is a layer and a number, for example (3, 1)."),
    ],
)
def test_what_is_no_head_is_refused(tiny: Model, heads: Any, sentence: str) -> None:
    with pytest.raises(HeadscopeError) as problem, headscope.silenced(tiny, heads):
        pass
    assert str(problem.value) == sentence


def test_a_layer_without_attention_has_no_head() -> None:
    sentence = r"There is no head 0:1: layer 0 has no attention"
    with pytest.raises(HeadscopeError, match=sentence), silenced(network_of("Jamba"), {(0, 1)}):
        pass


def test_what_a_head_puts_out_may_enter_nothing_beside_the_projection(tiny: Model) -> None:
    """As with an adapter that is not merged: what is silenced in the one matrix would still be heard in the other."""

    class Adapted(torch.nn.Module):
        def __init__(self, base: torch.nn.Linear) -> None:
            super().__init__()
            self.base_layer, self.down = base, torch.nn.Linear(base.in_features, 2, bias=False)
            self.up = torch.nn.Linear(2, base.out_features, bias=False)

        def forward(self, given: Tensor) -> Tensor:
            return self.base_layer(given) + self.up(self.down(given))

    network = copy.deepcopy(tiny.network)
    for layer in network.encoder.layer:
        layer.attention.output.dense = Adapted(layer.attention.output.dense)
    network.eval()
    capture = Capture(network)
    assert capture.carried_by == "value"
    with (
        pytest.raises(HeadscopeError, match=r"enters .*dense\.down too, beside the output projection"),
        silenced(network, {(0, 1)}),
    ):
        pass
    assert sorted(capture.elsewhere) == [0, 1, 2]


def test_a_forward_that_the_user_put_there_is_there_again() -> None:
    from headscope.model.forwards import calling_instead

    module, plain = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    module.forward = mine = lambda given: given
    with calling_instead({module: torch.neg, plain: torch.neg}):
        assert module(torch.ones(2)).tolist() == plain(torch.ones(2)).tolist() == [-1, -1]
    assert module.forward is mine
    assert "forward" not in plain.__dict__
