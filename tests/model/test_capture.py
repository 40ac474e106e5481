"""What is captured is what the model computed: A and Z against the layer's own weights."""

from __future__ import annotations

import math

import pytest
import torch

from headscope.corpus.texts import Text
from headscope.corpus.windows import Counts, Cutter, stack
from headscope.errors import HeadscopeError
from headscope.model import attention_parts as own_attention
from headscope.model.attention_parts import OwnAttention, heads_at_once, windows_at_once
from headscope.model.capture import Capture
from headscope.options import Options


def batch_of(model, texts: list[str], length: int = 32):
    cutter = Cutter(model.tokenizer, Options(length=length, short="pad", windows="first"))
    windows = [window for text in texts for window in cutter.cut(Text("t", text), Counts())]
    batch = stack(windows)
    return torch.from_numpy(batch.ids), torch.from_numpy(batch.mask)


def captured(model, ids, mask, last: int | None = None):
    found = []
    Capture(model.network).run(ids, mask, lambda layer, A, Z: found.append((A.clone(), Z.clone())), last)
    return found


TEXTS = [
    "A short text.",
    "The tide rises twice a day in most places, and falls as often; sailors, who wait for it, know its hours by heart.",
]


@pytest.mark.parametrize("which", ["minilm", "tiny"])
def test_head_outputs_equal_a_recomputation_from_the_layers_own_weights(which, request):
    """softmax(q kᵀ / √d) v, head by head, from the hidden states that enter each layer."""
    model = request.getfixturevalue(which)
    ids, mask = batch_of(model, TEXTS)
    found = captured(model, ids, mask)
    network = model.network
    with torch.inference_mode():
        states = network(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        heads = network.config.num_attention_heads
        width = network.config.hidden_size // heads
        for layer, (A, Z) in enumerate(found):
            own = network.encoder.layer[layer].attention.self
            for window in range(len(ids)):
                real = int(mask[window].sum())
                x = states[layer][window, :real]
                for head in range(heads):
                    part = slice(head * width, (head + 1) * width)
                    q, k, v = (
                        x @ linear.weight[part].T + linear.bias[part] for linear in (own.query, own.key, own.value)
                    )
                    attention = torch.softmax(q @ k.T / math.sqrt(width), dim=-1)
                    torch.testing.assert_close(A[window, head, :real, :real], attention, atol=1e-5, rtol=1e-4)
                    torch.testing.assert_close(Z[window, head, :real], attention @ v, atol=1e-4, rtol=1e-4)
                    assert not A[window, head, :real, real:].any()


def test_a_is_put_together_in_one_place_for_all_layers(minilm):
    ids, mask = batch_of(minilm, TEXTS)
    places = set()
    Capture(minilm.network).run(ids, mask, lambda layer, A, Z: places.add(A.data_ptr()))
    assert len(places) == 1


def call_of(heads: int = 6, groups: int = 3, tokens: int = 8, mask: torch.Tensor | None = None, device: str = "cpu"):
    query, key = (torch.zeros(4, count, tokens, 1, device=device) for count in (heads, groups))
    return OwnAttention(lambda *_: None, query, key, key, mask)


def test_a_batch_is_left_whole_where_a_call_brings_what_may_differ_between_windows():
    mask = torch.zeros(4, 1, 8, 8)
    for brought in ({}, {"scaling": 0.5, "position_bias": torch.zeros(1, 2, 8, 8)}):
        assert windows_at_once(call_of(mask=mask), brought) == 1
        assert windows_at_once(call_of(), brought) == 1
    for brought in ({"position_ids": torch.zeros(4, 8)}, {"sinks": torch.zeros(2)}, {"length": torch.tensor(8)}):
        assert windows_at_once(call_of(mask=mask), brought) == 4
    assert windows_at_once(call_of(mask=mask[0, 0]), {}) == 4
    assert windows_at_once(call_of(device="meta"), {}) == 4


def test_a_layer_is_left_whole_where_a_call_or_its_module_has_what_may_differ_between_heads(monkeypatch):
    monkeypatch.setattr(own_attention, "SCORES_AT_ONCE", 1)
    mask = torch.zeros(4, 1, 8, 8)
    plain = torch.nn.Module()
    plain.projection = torch.nn.Linear(3, 3)
    assert heads_at_once(call_of(mask=mask), plain, {"scaling": 0.5, "position_ids": torch.zeros(1, 8)}) == 2
    assert heads_at_once(call_of(groups=6), plain, {}) == 1
    assert heads_at_once(call_of(mask=mask), plain, {"position_bias": torch.zeros(1, 6, 8, 8)}) == 6
    assert heads_at_once(call_of(groups=4), plain, {}) == 6
    assert heads_at_once(call_of(mask=mask[0, 0]), plain, {}) == 6
    assert heads_at_once(call_of(device="meta"), plain, {}) == 6
    for register in ("register_parameter", "register_buffer"):
        own = torch.nn.Module()
        getattr(own, register)("sinks", torch.nn.Parameter(torch.zeros(6)))
        assert heads_at_once(call_of(mask=mask), own, {}) == 6


@pytest.mark.parametrize(
    ("heads", "groups", "tokens", "at_once"),
    [
        (12, 12, 128, 12),
        (12, 12, 512, 1),
        (12, 12, 256, 4),
        (12, 12, 230, 4),
        (32, 8, 512, 4),
        (32, 8, 180, 8),
        (7, 7, 256, 1),
    ],
)
def test_as_many_heads_at_once_as_the_cache_holds(heads, groups, tokens, at_once):
    assert heads_at_once(call_of(heads, groups, tokens), torch.nn.Module(), {}) == at_once


def test_capturing_leaves_the_network_as_it_was(minilm):
    ids, mask = batch_of(minilm, TEXTS)
    before = minilm.network.config._attn_implementation
    with torch.inference_mode():
        plain = minilm.network(input_ids=ids, attention_mask=mask).last_hidden_state
        captured(minilm, ids, mask)
        again = minilm.network(input_ids=ids, attention_mask=mask).last_hidden_state
    assert minilm.network.config._attn_implementation == before != "eager"
    assert torch.equal(plain, again)


def test_the_model_is_stopped_after_the_last_layer_wanted(minilm):
    ids, mask = batch_of(minilm, TEXTS)
    ran = []
    handles = [
        layer.register_forward_hook(lambda *_, number=number: ran.append(number))
        for number, layer in enumerate(minilm.network.encoder.layer)
    ]
    capturing = Capture(minilm.network)
    ran.clear()
    found = []
    capturing.run(ids, mask, lambda layer, A, Z: found.append(layer), last=2)
    for handle in handles:
        handle.remove()
    assert found == [0, 1, 2]
    assert ran == [0, 1]


def test_shape_comes_from_what_was_captured(minilm, tiny):
    assert (Capture(minilm.network).layers, Capture(minilm.network).heads, Capture(minilm.network).head_width) == (
        6,
        12,
        32,
    )
    assert (Capture(tiny.network).layers, Capture(tiny.network).heads, Capture(tiny.network).head_width) == (3, 4, 8)


@pytest.mark.model
def test_a_family_that_cannot_be_captured_is_refused_by_name():
    from transformers import XLNetConfig, XLNetModel

    network = XLNetModel(XLNetConfig(d_model=16, n_layer=1, n_head=2, d_inner=16, vocab_size=50)).eval()
    with pytest.raises(HeadscopeError, match="XLNetModel"):
        Capture(network)


def test_attention_whose_rows_are_multiplied_afterwards_is_refused():
    """As where a sink enters after the values: the weights that are returned are not those the model weighs by."""
    from transformers import BertConfig, BertModel
    from transformers.models.bert import modeling_bert

    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    network = BertModel(BertConfig(vocab_size=50, **shape)).eval()
    own = modeling_bert.eager_attention_forward

    def rescaled(module, *given, **more):
        output, weights = own(module, *given, **more)
        return output * torch.linspace(0.2, 0.9, output.shape[1])[None, :, None, None], weights

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modeling_bert, "eager_attention_forward", rescaled)
        with pytest.raises(HeadscopeError, match="multiplies each row of what its attention puts out"):
            Capture(network)
    Capture(network)


def test_what_can_not_be_copied_is_told_in_a_sentence():
    import threading

    from transformers import BertConfig, BertModel

    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    network = BertModel(BertConfig(vocab_size=50, **shape)).eval()
    network.lock = threading.Lock()
    with pytest.raises(HeadscopeError, match=r"can't be measured: it can't be copied \(TypeError"):
        Capture(network)
