"""The doctor finds a right capture right, a wrong one wrong, and names what it can't capture."""

import pytest
import torch

from headscope import doctor
from headscope.cli.app import app
from headscope.model.families.small import FAMILIES, REFUSED, small_network
from headscope.model.proof import diagnose, doctor_all, family_inputs

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
    assert (diagnosis.table[["attention_difference", "output_difference", "rows_off"]] == 0).all(axis=None)


def test_rows_that_do_not_add_up_to_one_are_counted():
    family = BY_NAME["GPT-OSS"]
    network = small_network(family)
    diagnosis = diagnose("sinks", network, None, *family_inputs(family, network))
    assert diagnosis.right
    assert all(layer.rows_off > 0.3 for layer in diagnosis.layers)


@pytest.mark.parametrize("name", ["BERT", "MPNet"])
def test_heads_that_are_changed_before_the_projection_are_found(name):
    """As a gate on the head outputs would: what enters the projection, or leaves the values, is not the same."""
    family = BY_NAME[name]
    network = small_network(family)
    layer = network.encoder.layer[1].attention
    if name == "BERT":
        layer.output.dense.register_forward_pre_hook(lambda _, given: (given[0] * 1.01,))
    else:
        layer.attn.o.register_forward_pre_hook(lambda _, given: (given[0] * 1.01,))
    diagnosis = diagnose("gated", network, None, *family_inputs(family, network))
    assert [check.right for check in diagnosis.layers] == [True, False, True]
    assert diagnosis.verdict == "WRONG"


def test_the_command_prints_a_table_and_tells_wrong_from_right_by_its_exit_code(monkeypatch, minilm, capsys):
    monkeypatch.setattr("headscope.model.loading.load", lambda *_, **__: minilm)
    assert app(["doctor", "minilm"], standalone_mode=False) == 0
    shown = capsys.readouterr().out
    assert "Every head of all 6 layers" in shown
    handle = minilm.network.encoder.layer[2].attention.output.dense.register_forward_pre_hook(
        lambda _, given: (given[0] + 1,)
    )
    try:
        assert app(["doctor", "minilm"], standalone_mode=False) == 1
    finally:
        handle.remove()
    assert "1 layers differ" in capsys.readouterr().out
