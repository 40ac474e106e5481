"""The lengths of value vectors: each against what the model itself makes of that value.

The reference knows neither values nor weights. While a model runs, every token is made to attend to itself alone: then
Z is the value of each token, and the output projection itself is called with that in the place of one head.
"""

from functools import cache

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from headscope.model import attention_parts, recording
from headscope.model.attention_parts import OwnAttention
from headscope.model.capture import Capture
from headscope.model.carrying import Carried
from headscope.model.families.small import FAMILIES, VOCABULARY, Family, small_network
from headscope.model.recording import Watch
from headscope.model.stacks import image_size, tower

pytestmark = pytest.mark.model

LENGTH = 10
BY_NAME = {family.name: family for family in FAMILIES}
CHANGED_AFTER = ("BitNet", "AFMoE", "Laguna", "HRM-text", "Qwen3-Next", "Qwen3.5")
"""A gate, a norm or a rotation stands between the values and the projection."""
STRAIGHT = [
    pytest.param(family, stack, id=f"{family.name} {stack or ''}".strip())
    for family in FAMILIES
    if family.known and family.name not in CHANGED_AFTER
    for stack in family.stacks
]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Networks this small only lose by sharing work among threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def network_of(name: str):
    family = BY_NAME[name]
    if not family.known:
        pytest.skip(f"this transformers has no {name}")
    return small_network(family)


def inputs_for(name: str, network, stack: str | None = None, windows: int = 2):
    """Inputs and mask, without padding."""
    family = BY_NAME[name]
    generator = torch.Generator().manual_seed(1)
    if "vision" in (family.kind, stack):
        return torch.randn(windows, 3, *image_size(tower(network, stack).config), generator=generator), None
    if family.kind == "sound":
        return torch.randn(windows, 8, 24, generator=generator), None
    ids = torch.randint(5, VOCABULARY, (windows, LENGTH), generator=generator)
    return ids, torch.ones_like(ids)


def received(capture: Capture, inputs, mask) -> dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """The number of a layer -> A, Z and the lengths of all heads."""
    found: dict[int, list[tuple[torch.Tensor, ...]]] = {}

    def receive(layer, heads, A, Z, lengths):
        assert lengths.dtype == torch.float32
        assert lengths.is_contiguous()
        assert lengths.shape == (len(A), A.shape[1], A.shape[3])
        found.setdefault(layer, []).append((A.clone(), Z.clone(), lengths.clone()))

    capture.run_by_heads(inputs, mask, receive)
    return {layer: tuple(torch.cat(parts, 1) for parts in zip(*some, strict=True)) for layer, some in found.items()}


def lengths_of(capture: Capture, inputs, mask) -> torch.Tensor:
    """(L, B, H, K)."""
    return torch.stack([lengths for _, _, lengths in received(capture, inputs, mask).values()])


class EachToItself(TorchFunctionMode):
    """Every token attends to itself alone; one more column is a sink."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **kwargs or {})
        if getattr(function, "__name__", "") != "softmax" or result.ndim < 3:
            return result
        rows, columns = result.shape[-2:]
        own = torch.eye(rows, columns, dtype=result.dtype).expand_as(result).clone()
        return own if columns - rows in (0, 1) else result


def wanted(capture: Capture, layer: int, values: torch.Tensor) -> torch.Tensor:
    """(B, H, K, d) -> (B, H, K): by how much the projection puts out more for each value, in the place of its head."""
    projection = capture.network.get_submodule(capture.places[layer].projection)
    # Zeros fill up the heads of a layer where they are narrower than elsewhere.
    values = values[..., : getattr(projection, "in_features", values.shape[3] * capture.heads) // capture.heads]
    lengths = torch.empty(values.shape[:3])
    for head in range(capture.heads):
        joined = torch.zeros_like(values)
        joined[:, head] = values[:, head]
        joined = joined.transpose(1, 2).flatten(2)
        lengths[:, head] = (projection(joined) - projection(torch.zeros_like(joined))).float().norm(dim=-1)
    return lengths


def assert_alike(found: torch.Tensor, other: torch.Tensor, rtol: float = 1e-4) -> None:
    torch.testing.assert_close(found, other, rtol=rtol, atol=1e-2 * rtol * float(other.max()))


@pytest.mark.parametrize(("family", "stack"), STRAIGHT)
def test_a_length_is_that_of_what_the_projection_makes_of_the_value(family: Family, stack):
    network = network_of(family.name)
    capture = Capture(network, stack)
    assert capture.carried_by == "projection"
    with EachToItself():
        layers = received(capture, *inputs_for(family.name, network, stack))
    assert tuple(layers) == capture.measurable
    for layer, (A, Z, lengths) in layers.items():
        assert torch.equal(A, torch.eye(A.shape[2]).expand_as(A))
        assert_alike(lengths, wanted(capture, layer, Z))
        assert lengths.min() > 0


@pytest.mark.parametrize("name", ["BERT", "Llama", "Falcon", "GPT-2"])
def test_lengths_do_not_depend_on_where_attention_goes(name):
    """In a decoder the first token's Z is its value, whatever the others do; in BERT, that of a window of one token."""
    network = network_of(name)
    capture = Capture(network)
    ids, mask = inputs_for(name, network)
    tokens = 1 if name == "BERT" else LENGTH
    for layer, (_, Z, lengths) in received(capture, ids[:, :tokens], mask[:, :tokens]).items():
        assert_alike(lengths[:, :, :1], wanted(capture, layer, Z[:, :, :1]))


@pytest.mark.parametrize("name", CHANGED_AFTER)
def test_where_something_stands_between_it_is_the_length_of_the_value_itself(name):
    network = network_of(name)
    capture = Capture(network)
    assert capture.carried_by == "value"
    made: list[torch.Tensor] = []
    paths = {path[0] for path in capture.paths.values()}
    handles = [
        network.get_submodule(f"{path}.v_proj").register_forward_hook(lambda *given: made.append(given[2]))
        for path in paths
    ]
    layers = received(capture, *inputs_for(name, network))
    for handle in handles:
        handle.remove()
    assert len(made) == len(layers)
    for values, (_, Z, lengths) in zip(made, layers.values(), strict=True):
        groups = values.unflatten(-1, (-1, Z.shape[-1])).transpose(1, 2)
        shared = capture.heads // groups.shape[1]
        for head in range(capture.heads):
            assert_alike(lengths[:, head], groups[:, head // shared].norm(dim=-1))


SOME = ["BERT", "GPT-2", "Llama", "T5", "MPNet", "DeBERTa", "XLM", "ALBERT", "Jamba", "Gemma 4", "Qwen3-Next"]


@pytest.mark.parametrize("name", SOME)
def test_batches_padding_and_parts_change_nothing_beyond_rounding(name, monkeypatch):
    network = network_of(name)
    capture = Capture(network)
    ids, mask = inputs_for(name, network, windows=3)
    together = lengths_of(capture, ids, mask)
    alone = torch.cat([lengths_of(capture, ids[one : one + 1], mask[one : one + 1]) for one in range(3)], 1)
    assert_alike(alone, together)
    more = torch.full((3, 4), 5), torch.zeros(3, 4, dtype=torch.long)
    padded = lengths_of(capture, torch.cat([ids, more[0]], 1), torch.cat([mask, more[1]], 1))
    assert_alike(padded[..., :LENGTH], together, 1e-3)
    monkeypatch.setattr(attention_parts, "SCORES_AT_ONCE", 1)
    assert_alike(lengths_of(capture, ids, mask), together)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["BERT", "GPT-2", "Llama", "MPNet"])
def test_in_half_precision_lengths_are_taken_in_float32(name, dtype):
    network = small_network(BY_NAME[name]).to(dtype)
    capture = Capture(network)
    assert capture.carried_by == "projection"
    with EachToItself():
        layers = received(capture, *inputs_for(name, network))
    exact = capture.twin()
    exact._network.float()
    for layer, (_, Z, lengths) in layers.items():
        assert_alike(lengths, wanted(exact, layer, Z.float()))


@pytest.mark.parametrize("name", ["BERT", "GPT-2"])
def test_a_projection_that_loses_directions_is_no_trouble(name):
    network = small_network(BY_NAME[name])
    capture = Capture(network)
    for place in capture.places.values():
        weight = network.get_submodule(place.projection).weight
        by_input = weight if name == "GPT-2" else weight.T
        by_input[:8] = 0  # the first head
        by_input[8:16] = by_input[8]  # the second maps all values to one line
    with EachToItself():
        layers = received(capture, *inputs_for(name, network))
    for layer, (_, Z, lengths) in layers.items():
        assert not lengths[:, 0].any()
        assert_alike(lengths, wanted(capture, layer, Z), 1e-3)


def test_a_projection_narrower_than_a_head_is_no_trouble():
    values = torch.randn(2, 3, 5, 8)
    matrix = torch.randn(4, 24)
    lengths = Carried("projection", 3, {0: matrix}).lengths(0, slice(0, 3), values)
    assert lengths is not None
    assert_alike(lengths, torch.einsum("bhkd,ohd->bhko", values, matrix.unflatten(1, (3, 8))).norm(dim=-1))


class Doubling(nn.Linear):
    def forward(self, given):
        return 2 * super().forward(given)


class NoMatrixKnown(nn.Module):
    def __init__(self, own: nn.Linear) -> None:
        super().__init__()
        self.table = own.weight
        self.shift = own.bias

    def forward(self, given):
        return given @ self.table.T + self.shift


@pytest.mark.parametrize("kind", ["doubling", "unknown", "hooked"])
def test_one_projection_that_is_not_its_matrix_has_all_layers_take_the_values(kind):
    network = small_network(BY_NAME["BERT"])
    output = network.encoder.layer[1].attention.output
    if kind == "doubling":
        other = Doubling(32, 32)
        other.load_state_dict(output.dense.state_dict())
        output.dense = other
    elif kind == "unknown":
        output.dense = NoMatrixKnown(output.dense)
    else:
        output.dense.register_forward_hook(lambda module, given, made: made.roll(1, 0))
    capture = Capture(network.eval().requires_grad_(False))
    assert capture.carried_by == "value"
    with EachToItself():
        layers = received(capture, *inputs_for("BERT", network))
    for _, Z, lengths in layers.values():
        assert_alike(lengths, Z.norm(dim=-1))


def test_values_that_are_not_what_a_is_multiplied_with_are_not_taken(monkeypatch):
    """As in a family that changes them on the way, or whose product torch does not show whole."""
    network = network_of("MPNet")
    own = recording._multiplied_with
    for seen in (lambda *given: None, lambda *given: own(*given).flip(-2), lambda *given: own(*given)[:1]):
        monkeypatch.setattr(recording, "_multiplied_with", seen)
        capture = Capture(network)
        assert capture.carried_by is None
        assert lengths_of(capture, *inputs_for("MPNet", network)).isnan().all()


def test_an_attention_that_does_more_than_multiply_has_no_lengths(monkeypatch):
    network = network_of("BERT")
    computed = OwnAttention.compute

    def doubled(self):
        output, attention = computed(self)
        return 2 * output, attention

    monkeypatch.setattr(OwnAttention, "compute", doubled)
    capture = Capture(network)
    assert capture.carried_by is None
    assert lengths_of(capture, *inputs_for("BERT", network)).isnan().all()


@pytest.mark.parametrize(
    ("product", "axes"),
    [
        (lambda A, V: A @ V, "bhjd"),
        (lambda A, V: torch.matmul(A, other=V), "bhjd"),
        (lambda A, V: torch.einsum("bhij,bjhd->bhid", A, V), "bjhd"),
        (lambda A, V: torch.einsum("dbhj, bhij -> bhid", V, A), "dbhj"),
        (lambda A, V: torch.einsum("...ij,...jd->...id", [A, V]), "bhjd"),
    ],
)
def test_the_values_of_a_product_are_seen_in_any_layout(product, axes):
    scores, values = torch.randn(2, 3, 5, 5), torch.randn(2, 3, 5, 7)
    seen = []
    with Watch(lambda attention, values, output: (seen.append(values), output)[1]):
        product(scores.softmax(-1), torch.einsum(f"bhjd->{axes}", values))
    assert torch.equal(seen[0], values)


def test_a_product_whose_values_can_not_be_told_has_none():
    seen = []
    with Watch(lambda attention, values, output: (seen.append(values), output)[1]):
        attention = torch.randn(2, 3, 5, 5).softmax(-1)
        torch.einsum("bhij,jd->bhid", attention, torch.randn(5, 7))
        torch.einsum("bhij,bhjd,d->bhid", attention, torch.randn(2, 3, 5, 7), torch.randn(7))
    assert seen == [None, None]


def test_torchs_fused_attention_is_seen_with_its_shared_values():
    seen = []
    query, shared = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8)
    with Watch(lambda attention, values, output: (seen.append(values), output)[1]):
        nn.functional.scaled_dot_product_attention(query, shared, shared, enable_gqa=True)
    assert seen[0] is shared


def test_only_who_asks_for_the_lengths_pays_for_them_and_twins_share_what_they_need():
    network = network_of("ALBERT")
    capture = Capture(network)
    inputs = inputs_for("ALBERT", network)
    capture.run(*inputs, lambda *given: None)
    assert not capture._carried._factors
    twin = capture.twin()
    here, there = lengths_of(capture, *inputs), lengths_of(twin, *inputs)
    assert torch.equal(here, there)
    assert twin._carried is capture._carried
    assert len(capture._carried._factors) == 1  # ALBERT's layers share their projection
