"""Every family: A and Z as captured equal what a second, eager copy of the model computes by itself."""

import re
import weakref
from functools import cache

import pytest
import torch
import transformers

from headscope import HeadscopeError
from headscope.model import attention_parts as own_attention
from headscope.model import compiled_attention, recording
from headscope.model.capture import Capture
from headscope.model.families.small import FAMILIES, VOCABULARY, Family, small_network
from headscope.model.stacks import image_size, tower

pytestmark = pytest.mark.model

PROJECTIONS = {
    "BERT": r"attention\.output\.dense",
    "RoBERTa": r"attention\.output\.dense",
    "XLM-RoBERTa": r"attention\.output\.dense",
    "DistilBERT": r"out_lin",
    "ELECTRA": r"attention\.output\.dense",
    "ALBERT": r"attention\.dense",
    "ModernBERT": r"attn\.Wo",
    "MPNet": r"attn\.o",
    "DeBERTa-v2": r"attention\.output\.dense",
    "DeBERTa": r"attention\.output\.dense",
    "MegatronBERT": r"attention\.output\.dense",
    "RemBERT": r"attention\.output\.dense",
    "RoFormer": r"attention\.output\.dense",
    "LUKE": r"attention\.output\.dense",
    "TAPAS": r"attention\.output\.dense",
    "DPR": r"attention\.output\.dense",
    "XLM": r"attentions\.\d\.out_lin",
    "T5's encoder": r"SelfAttention\.o",
    "GPT-2": r"attn\.c_proj",
    "GPT-Neo": r"attention\.out_proj",
    "Nemotron-H": r"mixer\.o_proj",
    "YOLOS": r"attention\.output\.dense",
    "Qwen3-Next": r"self_attn\.o_proj",
    "Qwen3.5": r"self_attn\.o_proj",
    "AIMv2": r"attention\.out_proj",
    "GPT-NeoX": r"attention\.dense",
    "BLOOM": r"attention\.dense",
    "MPT": r"attn\.out_proj",
    "Falcon": r"attention\.dense",
    "Phi": r"self_attn\.dense",
    "ViT": r"o_proj",
    "DINOv2": r"o_proj",
}
OTHERWISE = {
    None: r"(self_attn|attn)\.(o_proj|out_proj)",
    "encoder": r"encoder.*(self_attn\.out_proj|SelfAttention\.o)",
    "decoder": r"decoder.*(self_attn\.out_proj|SelfAttention\.o)",
    "cross": r"decoder.*(encoder_attn\.out_proj|EncDecAttention\.o)",
}
"""The output projections by name: what enters them is Z, joined."""
LENGTH, SIZES = 12, (12, 9)
KNOWN = [family for family in FAMILIES if family.known]
BY_NAME = {family.name: family for family in FAMILIES}
CASES = [
    pytest.param(family, stack, id=f"{family.name} {stack or ''}".strip())
    for family in KNOWN
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
    return small_network(BY_NAME[name])


def inputs_for(family: Family, network, stack: str | None = None):
    """Inputs and mask; the second text is padded."""
    generator = torch.Generator().manual_seed(1)
    if "vision" in (family.kind, stack):
        return torch.randn(2, 3, *image_size(tower(network, stack).config), generator=generator), None
    if family.kind == "sound":
        return torch.randn(2, 8, 24, generator=generator), None
    ids = torch.randint(5, VOCABULARY, (2, LENGTH), generator=generator)
    return ids, (torch.arange(LENGTH) < torch.tensor(SIZES)[:, None]).long()


def captured(network, stack, inputs, mask):
    layers = []
    capture = Capture(network, stack)
    capture.run(inputs, mask, lambda layer, A, Z: layers.append((layer, A.clone(), Z.clone())))
    assert tuple(layer for layer, _, _ in layers) == capture.measurable
    return [(A, Z) for _, A, Z in layers]


def independent(family: Family, network, stack, inputs, mask):
    """A from `output_attentions`, Z from a hook on the output projection, of another model of equal weights."""
    part = tower(network, stack)
    eager = type(part)._from_config(part.config, attn_implementation="eager").eval()
    eager.load_state_dict(part.state_dict())
    joined = []
    pattern = re.compile("(^|.*[._])" + (PROJECTIONS.get(family.name) or OTHERWISE.get(stack) or OTHERWISE[None]))
    names = [name for name, _ in eager.named_modules() if pattern.fullmatch(name)]
    for name in names:
        eager.get_submodule(name).register_forward_pre_hook(lambda _, given: joined.append(given[0].clone()))
    arguments = {"pixel_values" if stack == "vision" else eager.main_input_name: inputs, "output_attentions": True}
    if mask is not None:
        arguments["attention_mask"] = mask
    if family.kind in ("encoder-decoder", "sound"):
        arguments["decoder_input_ids"] = inputs if mask is not None else torch.zeros(2, 3, dtype=torch.long)
        arguments["decoder_attention_mask"] = mask
    with torch.no_grad():
        returned = eager(**arguments)
    one_stack = dict.fromkeys((None, "text", "vision"), "attentions")
    field = (one_stack | {"cross": "cross_attentions"}).get(stack, f"{stack}_attentions")
    return [attention for attention in returned[field] if attention is not None], joined


@pytest.mark.parametrize(("family", "stack"), CASES)
def test_capture_equals_an_independent_computation(family, stack):
    network = network_of(family.name)
    inputs, mask = inputs_for(family, network, stack)
    layers = captured(network, stack, inputs, mask)
    attentions, joined = independent(family, network, stack, inputs, mask)
    assert len(layers) == len(attentions) == len(joined) > 0
    for (A, Z), attention, output in zip(layers, attentions, joined, strict=True):
        assert torch.equal(A, attention)
        width = output.shape[-1] // A.shape[1]
        assert not Z[..., width:].any()
        Z = Z[..., :width].transpose(1, 2).flatten(2)
        assert (Z - output).abs().max() <= 1e-5 * output.abs().max()
        assert Z.abs().max() > 0


OF_TEXTS = [case for case in CASES if case.values[0].kind not in ("vision", "sound") and case.values[1] != "vision"]


@pytest.mark.parametrize("length", [10, 33])
@pytest.mark.parametrize(("family", "stack"), OF_TEXTS)
def test_a_batch_taken_window_by_window_gives_the_same_bits(family, stack, length, monkeypatch):
    network = network_of(family.name)
    ids = torch.randint(5, VOCABULARY, (5, length), generator=torch.Generator().manual_seed(2))
    full = torch.ones_like(ids)
    padded = (torch.arange(length) < torch.arange(5)[:, None] + length - 4).long()
    found = []
    for at_once in (recording.windows_at_once, lambda call, others: len(call.query)):
        monkeypatch.setattr(recording, "windows_at_once", at_once)
        found.append(
            [tensor for mask in (full, padded) for both in captured(network, stack, ids, mask) for tensor in both]
        )
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


LEFT_WHOLE = ("T5Config", "GptOssConfig")
"""Their attention takes a bias or a sink for each head."""


@pytest.mark.parametrize("windows", [1, 2])
@pytest.mark.parametrize(("family", "stack"), CASES)
def test_a_layer_taken_head_by_head_gives_the_same_bits(family, stack, windows, monkeypatch):
    """By the family's own function."""
    monkeypatch.setattr(compiled_attention, "can_attend", lambda call: False)
    monkeypatch.setattr(own_attention, "SCORES_AT_ONCE", 1)
    network = network_of(family.name)
    inputs, mask = (tensor if tensor is None else tensor[:windows] for tensor in inputs_for(family, network, stack))
    whole = captured(network, stack, inputs, mask)
    parts: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}
    places: dict[int, list[int]] = {}

    def receive(layer: int, heads: slice, A: torch.Tensor, Z: torch.Tensor, lengths: torch.Tensor) -> None:
        parts.setdefault(layer, []).append((A.clone(), Z.clone()))
        places.setdefault(layer, []).extend(range(heads.start, heads.stop))

    capture = Capture(network, stack)
    capture.run_by_heads(inputs, mask, receive)
    assert tuple(parts) == capture.measurable
    for layer, (A, Z) in zip(capture.measurable, whole, strict=True):
        assert places[layer] == list(range(A.shape[1]))
        assert torch.equal(torch.cat([part[0] for part in parts[layer]], 1), A)
        assert torch.equal(torch.cat([part[1] for part in parts[layer]], 1), Z)
    first = capture.measurable[0]
    left_whole = capture.route == "hooks" or not capture.places[first].direct or family.config in LEFT_WHOLE
    assert (len(parts[first]) == 1) == left_whole


@pytest.mark.parametrize(("family", "stack"), OF_TEXTS)
def test_padding_and_the_future_get_no_attention(family, stack):
    network = network_of(family.name)
    causal = family.kind == "decoder" or stack == "decoder" or (family.name, stack) == ("CLIP", "text")
    for A, _ in captured(network, stack, *inputs_for(family, network)):
        assert (A[1, :, : SIZES[1], SIZES[1] :] == 0).all()
        assert bool((A[0].triu(1) == 0).all()) == causal
        sums = A[1, :, : SIZES[1]].sum(-1)
        if family.name == "GPT-OSS":
            assert (sums < 1.000001).all()
            assert sums.mean() < 0.99
        else:
            assert torch.allclose(sums, torch.ones_like(sums), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("ModernBERT", ["global", "local", "global"]),
        ("Mistral", ["local", "local", "local"]),
        ("Gemma 2", ["local", "global", "local"]),
        ("Gemma 3", ["local", "global", "local"]),
        ("GPT-OSS", ["local", "global", "local"]),
    ],
)
def test_sliding_windows_are_respected(name, kinds):
    network = network_of(name)
    layers = captured(network, None, *inputs_for(BY_NAME[name], network))
    furthest = [int((A[0] > 0).any(0).nonzero().diff(dim=-1).abs().max()) for A, _ in layers]
    assert [distance < LENGTH - 1 for distance in furthest] == [kind == "local" for kind in kinds]


def test_heads_are_query_heads_under_grouped_keys():
    network = network_of("Llama")
    assert network.config.num_key_value_heads == 2
    assert Capture(network).heads == network.config.num_attention_heads == 4


@pytest.mark.parametrize(("family", "stack"), CASES)
def test_no_attention_outlives_its_layer(family, stack):
    earlier: list[weakref.ref[torch.Tensor]] = []

    def receive(layer, A, Z):
        kept = [ref() for ref in earlier if ref() is not None]
        assert all(tensor is A for tensor in kept)
        earlier.append(weakref.ref(A))

    network = network_of(family.name)
    Capture(network, stack).run(*inputs_for(family, network, stack), receive)
    assert earlier


def test_head_width_comes_from_what_was_captured():
    network = network_of("Qwen3")
    assert Capture(network).head_width == 16 != network.config.hidden_size // 4


def test_the_network_is_left_as_it_was():
    network = network_of("T5")
    before = [network.config._attn_implementation, network.encoder.config._attn_implementation]
    Capture(network, "cross")
    assert [network.config._attn_implementation, network.encoder.config._attn_implementation] == before


def test_a_family_that_can_not_be_captured_is_refused_by_name():
    config = transformers.XLNetConfig(d_model=32, n_layer=2, n_head=4, d_inner=48, vocab_size=100)
    with pytest.raises(HeadscopeError, match=r"XLNetModel \(family xlnet\) can't be captured: its attention maps"):
        Capture(transformers.AutoModel.from_config(config).eval())


def test_a_layer_without_heads_is_noticed():
    config = transformers.BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
    network = transformers.AutoModel.from_config(config).eval()
    config.num_hidden_layers = 3
    with pytest.raises(HeadscopeError, match="has 3 layers but 2 reported"):
        Capture(network)


def test_a_network_in_training_mode_is_refused():
    with pytest.raises(HeadscopeError, match=r"network\.eval\(\)"):
        Capture(small_network(FAMILIES[0]).train())


@pytest.mark.parametrize(
    ("name", "stack", "message"),
    [
        ("BERT", "decoder", "stack='decoder' is for encoder-decoders"),
        ("T5", "middle", "stack is 'middle'; it must be encoder, decoder or cross"),
        ("Whisper", "cross", "only its encoder can be measured"),
    ],
)
def test_stacks_that_are_not_there_are_refused(name, stack, message):
    with pytest.raises(HeadscopeError, match=message):
        Capture(network_of(name), stack)
