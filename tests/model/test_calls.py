"""How attention calls are seen: in the thread that runs them, without disturbing any other model."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from transformers import AttentionInterface

from headscope import HeadscopeError
from headscope.model.capture import Capture
from headscope.model.diagnosis import diagnose, family_inputs
from headscope.model.families.small import FAMILIES, REFUSED, small_network

BY_NAME = {family.name: family for family in (*FAMILIES, *REFUSED)}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Networks this small only lose by sharing work among threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def network_of(name: str):
    family = BY_NAME[name]
    if not family.known:
        pytest.skip(f"this transformers has no {name}")
    return small_network(family)


def test_another_model_in_another_thread_keeps_its_own_attention():
    mine, other = network_of("BERT"), network_of("GPT-2")
    other.set_attn_implementation("eager")
    inputs, mask = family_inputs(BY_NAME["BERT"], mine)
    with torch.inference_mode():
        alone = other(input_ids=inputs, attention_mask=mask, output_attentions=True).attentions
    beside = []

    def run_the_other():
        with torch.inference_mode():
            beside.append(other(input_ids=inputs, attention_mask=mask, output_attentions=True).attentions)

    def receive(layer, A, Z):
        thread = threading.Thread(target=run_the_other)
        thread.start()
        thread.join()

    layers = []
    capture = Capture(mine)
    capture.run(inputs, mask, lambda layer, A, Z: (layers.append(layer), receive(layer, A, Z)))
    assert layers == [0, 1, 2]
    assert all(torch.equal(one, two) for run in beside for one, two in zip(run, alone, strict=True))


def test_the_interface_is_as_before_when_all_passes_have_ended():
    before = AttentionInterface.get_interface
    network = network_of("BERT")
    inputs, mask = family_inputs(BY_NAME["BERT"], network)
    capture = Capture(network)
    together = threading.Barrier(2, timeout=20)

    def run(capture: Capture) -> bool:
        seen = []

        def receive(layer, A, Z):
            together.wait()
            seen.append(AttentionInterface.get_interface is not before)

        capture.run(inputs, mask, receive)
        return all(seen)

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(run, (capture, capture.twin()))) == [True, True]
    assert AttentionInterface.get_interface is before
    with pytest.raises(ZeroDivisionError):
        capture.run(inputs, mask, lambda layer, A, Z: 1 // 0)
    assert AttentionInterface.get_interface is before


@pytest.mark.parametrize("name", ["DeepSeek-V3.2", "GLM-MoE-DSA"])
def test_a_sparse_choice_of_keys_is_kept(name):
    """These families apply it only where the attention implementation has a name that they know."""
    network = network_of(name)
    inputs, mask = family_inputs(BY_NAME[name], network)
    chosen = []
    Capture(network).run(inputs, mask, lambda layer, A, Z: chosen.append(int((A[0] > 0).sum(-1).max())))
    assert chosen == [network.config.index_topk] * 3


def test_z_is_what_enters_the_projection_and_not_what_enters_a_gate():
    """A gate's matrix takes hidden states of the same width, after attention and before the projection."""
    network = network_of("AFMoE")
    capture = Capture(network)
    assert {place.projection.rsplit(".", 1)[1] for place in capture.places.values()} == {"o_proj"}
    inputs, mask = family_inputs(BY_NAME["AFMoE"], network)
    entered = []
    network.layers[0].self_attn.o_proj.register_forward_pre_hook(lambda _, given: entered.append(given[0].clone()))
    found = []
    capture.run(inputs, mask, lambda layer, A, Z: found.append(Z.clone()), last=0)
    assert torch.equal(found[0].transpose(1, 2).flatten(2), entered[0])


def test_heads_that_change_places_before_the_projection_are_refused():
    network = network_of("BERT")
    network.encoder.layer[1].attention.output.dense.register_forward_pre_hook(lambda _, given: (given[0].roll(8, -1),))
    with pytest.raises(HeadscopeError, match="in layer 1 they are mixed before they enter the output projection"):
        Capture(network)


def test_heads_that_are_mixed_before_the_projection_are_refused():
    network = network_of("BERT")
    mixing = torch.randn(32, 32, generator=torch.Generator().manual_seed(0))
    network.encoder.layer[2].attention.output.dense.register_forward_pre_hook(lambda _, given: (given[0] @ mixing,))
    with pytest.raises(HeadscopeError, match="in layer 2 they are mixed before they enter the output projection"):
        Capture(network)


@pytest.mark.parametrize(
    ("name", "depth", "measurable", "other"),
    [
        ("Qwen3-Next", 4, (1, 3), "Qwen3NextGatedDeltaNet"),
        ("Qwen3.5", 4, (1, 3), "Qwen3_5GatedDeltaNet"),
        ("LFM2", 3, (1,), "Lfm2ShortConv"),
        ("Jamba", 4, (1, 3), "JambaMambaMixer"),
        ("Bamba", 4, (1, 3), "BambaMixer"),
        ("Zamba2", 4, (1, 3), "Zamba2MambaDecoderLayer"),
        ("Granite hybrid", 3, (1,), "GraniteMoeHybridMambaLayer"),
        ("Nemotron-H", 4, (1, 3), "NemotronHMamba2Mixer"),
    ],
)
def test_layers_of_hybrids_keep_their_numbers_and_the_others_are_named(name, depth, measurable, other):
    network = network_of(name)
    capture = Capture(network)
    assert (capture.layers, capture.measurable) == (depth, measurable)
    assert capture.other_layers[0] == other
    assert sorted((*capture.measurable, *capture.other_layers)) == list(range(depth))
    seen = []
    inputs, mask = family_inputs(BY_NAME[name], network)
    capture.run(inputs, mask, lambda layer, A, Z: seen.append(layer))
    assert tuple(seen) == measurable
    assert capture.chosen_layers(None) == measurable
    assert capture.chosen_layers([1]) == (1,)
    with pytest.raises(HeadscopeError, match=rf"asks for layer 0, which has no attention \({other}\); .* layers 1"):
        capture.chosen_layers([0])


def test_a_layer_beyond_the_depth_is_refused():
    with pytest.raises(HeadscopeError, match="asks for layer 3, but the model has 3, numbered 0 to 2"):
        Capture(network_of("BERT")).chosen_layers([1, 3])


@pytest.mark.parametrize("name", ["CLIP", "SigLIP"])
def test_a_tower_is_chosen(name):
    network = network_of(name)
    assert Capture(network).stack == "text"
    for stack, main in (("text", "input_ids"), ("vision", "pixel_values")):
        inputs, mask = family_inputs(BY_NAME[name], network, stack)
        capture = Capture(network, stack)
        assert main in capture.arguments(inputs, mask)
        assert (capture.layers, capture.heads) == (3, 4)
    with pytest.raises(HeadscopeError, match="stack is 'encoder'; it must be text or vision"):
        Capture(network, "encoder")
    with pytest.raises(HeadscopeError, match="stack='vision' is for models of two towers"):
        Capture(network_of("BERT"), "vision")


def test_narrow_heads_are_filled_up_with_zeros():
    network = network_of("Gemma 4")
    capture = Capture(network)
    assert capture.head_width == 16
    widths = []
    inputs, mask = family_inputs(BY_NAME["Gemma 4"], network)
    capture.run(inputs, mask, lambda layer, A, Z: widths.append(int(Z.abs().amax((0, 1, 2)).count_nonzero())))
    assert widths == [8, 16, 16]


@pytest.mark.parametrize(
    ("name", "stack", "reason"),
    [
        ("Swin", None, "it attends within parts of an image, of 16 tokens"),
        ("Longformer", None, "is not a map that is multiplied with values"),
        ("XLNet", None, "do not have the axes windows, heads, tokens"),
        ("Mamba", None, "no attention is seen"),
        ("DiffLlama", None, "several attentions enter an output projection together"),
        ("DeepSeek-V4", None, "its attention maps are 8 x 10 for 8 tokens, not tokens by tokens"),
        ("T5Gemma 2", "decoder", "its attention maps are 5 x 13 for 8 tokens in the encoder and 5 in the decoder"),
        ("T5Gemma 2", "cross", "its attention maps are 5 x 13 for 8 tokens in the encoder and 5 in the decoder"),
    ],
)
def test_each_refusal_says_the_true_reason(name, stack, reason):
    with pytest.raises(HeadscopeError, match=reason):
        Capture(network_of(name), stack)


def test_the_encoder_of_a_model_whose_decoder_is_refused_is_captured():
    network = network_of("T5Gemma 2")
    inputs, mask = family_inputs(BY_NAME["T5Gemma 2"], network)
    assert diagnose("T5Gemma 2", network, "encoder", inputs, mask).right
