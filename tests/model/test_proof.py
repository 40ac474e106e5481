"""A capture is proved on a study's own windows, and a wrong one is refused with the layer and what differs."""

import json
import threading
import weakref
from dataclasses import asdict, replace

import pytest
import torch
from transformers import AttentionInterface

from headscope import HeadscopeError
from headscope.model import beside, compiled_attention
from headscope.model.attention_parts import OwnAttention
from headscope.model.beside import OUTPUTS, RETURNED, WATCHED, Beside
from headscope.model.capture import Capture
from headscope.model.compiled_attention import Masks
from headscope.model.diagnosis import family_inputs
from headscope.model.families.small import FAMILIES, small_network
from headscope.model.plain_attention import plain_scaling
from headscope.model.proof import prove

BY_NAME = {family.name: family for family in FAMILIES}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Networks this small only lose by sharing work among threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def network_and_inputs(name: str):
    family = BY_NAME[name]
    if not family.known:
        pytest.skip(f"this transformers has no {name}")
    network = small_network(family)
    return network, *family_inputs(family, network, family.stacks[0])


def test_a_proof_says_what_was_proved():
    network, inputs, mask = network_and_inputs("BERT")
    proof = prove(Capture(network), inputs, mask)
    assert proof.attention is not None
    assert max(proof.attention, proof.output) < 1e-6
    assert (proof.layers, proof.windows, proof.tokens) == (3, 2, 16)
    assert 0 < proof.default < 1e-5
    assert (proof.way, proof.implementation) == (RETURNED, "sdpa")
    assert replace(proof, attention=3e-8, output=2e-7).sentence.startswith(
        "captured to rounding: A to 3e-8, Z to 2e-7, 3"
    )
    assert replace(proof, attention=0, output=0).sentence.startswith(
        "captured exactly: A to 0, Z to 0, 3 layers; Z under sdpa to "
    )
    assert proof.sentence.endswith("e-7")
    assert json.loads(json.dumps(asdict(proof)))["layers"] == 3


def test_the_first_window_and_the_one_with_the_most_padding_are_proved(monkeypatch):
    network, inputs, mask = network_and_inputs("BERT")
    inputs, mask = inputs.repeat(3, 1), mask.repeat(3, 1)
    mask[4, 5:] = 0
    seen = []
    ran = Capture.run_by_heads
    monkeypatch.setattr(
        Capture, "run_by_heads", lambda self, *given, **more: (seen.append(given[1]), ran(self, *given, **more))
    )
    assert prove(Capture(network), inputs, mask).windows == 2
    assert seen[0].sum(1).tolist() == [16, 5]


def test_large_maps_are_proved_one_window_after_the_other(monkeypatch):
    network, inputs, mask = network_and_inputs("BERT")
    monkeypatch.setattr("headscope.model.proof.LARGE", 0)
    seen = []
    ran = Capture.run_by_heads
    monkeypatch.setattr(
        Capture, "run_by_heads", lambda self, *given, **more: (seen.append(len(given[0])), ran(self, *given, **more))
    )
    proof = prove(Capture(network), inputs, mask)
    assert seen == [1, 1]
    assert (proof.windows, proof.layers) == (2, 3)


@pytest.mark.parametrize("by", ["its own function", "compiled"])
@pytest.mark.parametrize("name", ["BERT", "GPT-2", "DeepSeek-V3.2"])
def test_an_a_without_its_mask_is_refused_with_the_layer(name, by, monkeypatch):
    network, inputs, mask = network_and_inputs(name)
    capture = Capture(network)
    cut = OwnAttention.of_window
    monkeypatch.setattr(OwnAttention, "of_window", lambda self, window: cut(self, window)._replace(mask=None))
    if by == "compiled":
        monkeypatch.setattr(OwnAttention, "of_window", cut)
        monkeypatch.setattr(Masks, "of", lambda self, call: None)
        monkeypatch.setattr(compiled_attention, "_proved", plain_scaling)
    else:
        monkeypatch.setattr(compiled_attention, "can_attend", lambda call: False)
    with pytest.raises(HeadscopeError, match=r"not captured rightly: in layer 0 the captured A differs .* by [01]"):
        prove(capture, inputs, mask)


@pytest.mark.parametrize("name", ["AFMoE", "Laguna", "HRM-text", "Qwen3-Next", "BitNet"])
def test_a_z_taken_before_a_gate_or_a_norm_is_refused_with_the_layer(name):
    network, inputs, mask = network_and_inputs(name)
    capture = Capture(network)
    first = capture.measurable[0]
    assert not capture.places[first].direct
    assert prove(capture, inputs, mask).attention == 0
    capture._plan = {key: replace(place, direct=True) for key, place in capture._plan.items()}
    with pytest.raises(HeadscopeError, match=rf"in layer {first} the captured Z differs from what enters the output"):
        prove(capture, inputs, mask)


def test_a_model_that_behaves_otherwise_under_eager_is_refused():
    """As one would that applies a mask only for the names of implementations that it knows."""
    network, inputs, mask = network_and_inputs("BERT")
    attention = network.encoder.layer[1].attention.self

    def doubled(module, given):
        return (given[0] * 2, *given[1:]) if module.config._attn_implementation == "eager" else None

    attention.register_forward_pre_hook(doubled)
    with pytest.raises(HeadscopeError, match="in layer 1 Z under eager attention differs from Z under the attention"):
        prove(Capture(network), inputs, mask)


@pytest.mark.parametrize("name", ["BERT", "MPNet", "AFMoE"])
def test_a_model_that_overflows_is_left_to_the_measures_which_name_the_head(name):
    network, inputs, mask = network_and_inputs(name)
    for key, weights in network.named_parameters():
        if key.endswith(("value.weight", "attn.v.weight", "v_proj.weight")):
            weights.mul_(1e38)
    proof = prove(Capture(network), inputs, mask)
    assert proof.attention is not None
    assert max(proof.attention, proof.output) < 1e-6


@pytest.mark.parametrize("what", ["A", "Z"])
def test_a_capture_that_alone_overflows_is_refused(what, monkeypatch):
    network, inputs, mask = network_and_inputs("BERT")
    ran = Capture.run_by_heads

    def spoilt(self, inputs, mask, receive, **more):
        def both(layer, heads, A, Z, lengths):
            receive(layer, heads, A * (torch.nan if what == "A" else 1), Z * (torch.nan if what == "Z" else 1), lengths)

        ran(self, inputs, mask, both, **more)

    monkeypatch.setattr(Capture, "run_by_heads", spoilt)
    with pytest.raises(HeadscopeError, match=f"in layer 0 the captured {what} differs .* by inf"):
        prove(Capture(network), inputs, mask)


def test_a_model_that_draws_at_random_is_refused_as_such():
    network, inputs, mask = network_and_inputs("BERT")
    network.embeddings.register_forward_hook(lambda module, given, made: made + torch.randn_like(made))
    with pytest.raises(HeadscopeError, match="draws at random while it runs"):
        prove(Capture(network), inputs, mask)


def test_a_model_whose_modules_return_no_map_is_watched(monkeypatch):
    network, inputs, mask = network_and_inputs("GPT-2")
    monkeypatch.setattr(Beside, "_is_map", lambda self, found: False)
    proof = prove(Capture(network), inputs, mask)
    assert proof.way == WATCHED
    assert proof.attention is not None
    assert proof.attention < 1e-6


def test_what_can_not_be_proved_is_refused(monkeypatch):
    network, inputs, mask = network_and_inputs("GPT-2")
    monkeypatch.setattr(Beside, "_is_map", lambda self, found: False)
    monkeypatch.setattr(Beside, "_multiplied", lambda self, attention, output: output)
    with pytest.raises(HeadscopeError, match=r"GPT2Model .* can't be proved"):
        prove(Capture(network), inputs, mask)


def test_a_model_outside_the_interface_that_returns_no_map_is_proved_by_its_outputs(monkeypatch):
    network, inputs, mask = network_and_inputs("MPNet")
    monkeypatch.setattr(Beside, "_is_map", lambda self, found: False)
    proof = prove(Capture(network), inputs, mask)
    assert (proof.way, proof.attention) == (OUTPUTS, None)
    assert proof.sentence == "captured exactly: Z to 0, 3 layers; it returns no A to compare"


def test_no_more_than_one_map_is_kept(monkeypatch):
    network, inputs, mask = network_and_inputs("BERT")
    maps: list[weakref.ref[torch.Tensor]] = []
    show = Beside._show

    def counted(self, what, layer, tensor):
        if what == "attention":
            assert all(ref() is None for ref in maps)
            maps.append(weakref.ref(tensor))
        return show(self, what, layer, tensor)

    monkeypatch.setattr(beside.Beside, "_show", counted)
    prove(Capture(network), inputs, mask)
    assert len(maps) == 3


def test_a_proof_leaves_nothing_behind():
    network, inputs, mask = network_and_inputs("MPNet")
    before = AttentionInterface.get_interface, set(threading.enumerate())
    implementation = network.config._attn_implementation
    prove(Capture(network), inputs, mask)
    assert (AttentionInterface.get_interface, set(threading.enumerate())) == before
    assert network.config._attn_implementation == implementation
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())


def test_a_network_that_a_short_text_would_change_is_not_changed_by_looking_at_it():
    """BigBird gives up its sparse attention for good once it meets a short text; what is measured must be sparse."""
    from transformers import BigBirdConfig, BigBirdModel

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    config = BigBirdConfig(
        **sizes, vocab_size=96, max_position_embeddings=128, block_size=8, num_random_blocks=2,
        attention_type="block_sparse",
    )  # fmt: skip
    network = BigBirdModel(config).eval()
    capture = Capture(network)
    assert network.attention_type == "block_sparse"
    ids = torch.randint(5, 96, (2, 128))
    with pytest.raises(HeadscopeError, match="in layer 0 a map is 8 x 128, not tokens by tokens"):
        prove(capture, ids, torch.ones_like(ids))
