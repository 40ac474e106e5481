"""The doctor finds a right capture right, a wrong one wrong, and names what it can't capture."""

from dataclasses import replace

import pytest
import torch

from headscope import HeadscopeError, doctor
from headscope.cli.app import app
from headscope.model import diagnosis as diagnosis_module
from headscope.model.capture import Capture
from headscope.model.diagnosis import diagnose, doctor_all, family_inputs
from headscope.model.families.small import FAMILIES, REFUSED, small_network
from headscope.model.proof import prove

pytestmark = pytest.mark.model

BY_NAME = {family.name: family for family in FAMILIES}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Networks this small only lose by sharing work among threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_every_family_is_right_and_the_others_are_refused_by_name():
    verdicts = {}
    for family, diagnosis in doctor_all():
        verdicts.setdefault(family.name, set()).add(diagnosis.verdict)
        if family.refused:
            assert type(small_network(family)).__name__ in diagnosis.reason
    assert {name for name, found in verdicts.items() if found == {"right"}} == set(BY_NAME)
    assert {name for name, found in verdicts.items() if found == {"not captured"}} == {f.name for f in REFUSED}


def test_the_built_in_model_is_right_in_every_layer(minilm):
    [diagnosis] = doctor(minilm)
    assert diagnosis.right
    assert diagnosis.table.shape[0] == 6
    assert (diagnosis.table[["attention_difference", "output_difference"]] < 1e-6).all(axis=None)
    assert (diagnosis.table["rows_off"] == 0).all()


def test_rows_that_do_not_add_up_to_one_are_counted():
    family = BY_NAME["GPT-OSS"]
    network = small_network(family)
    diagnosis = diagnose("sinks", network, None, *family_inputs(family, network))
    assert diagnosis.right
    assert all(layer.rows_off > 0.3 for layer in diagnosis.layers)


def with_a_gate(name: str, layer: int = 1):
    """A small network with a gate on the head outputs of one layer, between A times V and the output projection."""
    network = small_network(BY_NAME[name])
    attention = network.encoder.layer[layer].attention
    projection = attention.output.dense if name == "BERT" else attention.attn.o
    projection.register_forward_pre_hook(lambda _, given: (given[0] * given[0].sigmoid(),))
    return network


@pytest.mark.parametrize("name", ["BERT", "MPNet"])
def test_z_is_taken_after_a_gate(name):
    network = with_a_gate(name)
    diagnosis = diagnose("gated", network, None, *family_inputs(BY_NAME[name], network))
    assert diagnosis.verdict == "right"


def taken_before_the_gate(capture: Capture) -> Capture:
    """As if what enters the projection were what attention returned."""
    capture._plan = {key: replace(place, direct=True) for key, place in capture._plan.items()}
    return capture


@pytest.mark.parametrize("name", ["BERT", "MPNet"])
def test_heads_that_are_changed_before_the_projection_are_found(name, monkeypatch):
    network = with_a_gate(name)
    inputs, mask = family_inputs(BY_NAME[name], network)
    monkeypatch.setattr(diagnosis_module, "Capture", lambda *given: taken_before_the_gate(Capture(*given)))
    diagnosis = diagnose("gated", network, None, inputs, mask)
    assert [check.right for check in diagnosis.layers] == [True, False, True]
    assert diagnosis.verdict == "WRONG"
    with pytest.raises(HeadscopeError, match="layer 1 the captured Z differs from what enters the output projection"):
        prove(taken_before_the_gate(Capture(network)), inputs, mask)


def test_the_command_prints_a_table_and_tells_wrong_from_right_by_its_exit_code(monkeypatch, minilm, capsys):
    monkeypatch.setattr("headscope.model.loading.load", lambda *_, **__: minilm)
    assert app(["doctor", "minilm"], standalone_mode=False) == 0
    shown = capsys.readouterr().out
    assert "Every head of all 6 layers" in shown
    monkeypatch.setattr(diagnosis_module, "Capture", lambda *given: taken_before_the_gate(Capture(*given)))
    handle = minilm.network.encoder.layer[2].attention.output.dense.register_forward_pre_hook(
        lambda _, given: (given[0] * 2,)
    )
    try:
        assert app(["doctor", "minilm"], standalone_mode=False) == 1
    finally:
        handle.remove()
    assert "1 layers differ" in capsys.readouterr().out
