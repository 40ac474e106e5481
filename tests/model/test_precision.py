"""Half precision, and windows of other lengths than 128."""

import numpy as np
import pytest
import torch

import headscope
from headscope import HeadscopeError
from headscope.measure.definitions_torch import context_similarity
from headscope.model.capture import Capture
from headscope.model.diagnosis import diagnose, family_inputs
from headscope.model.families.small import FAMILIES, small_network
from headscope.model.loading import Model

pytestmark = pytest.mark.model

BY_NAME = {family.name: family for family in FAMILIES}
HALVES = ["float16", "bfloat16"]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Networks this small only lose by sharing work among threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_similarities_of_half_precision_outputs_are_float32():
    output = torch.full((1, 1, 3, 64), 100.0, dtype=torch.float16)
    similarity = context_similarity(output)
    assert similarity.dtype == torch.float32
    assert similarity[0, 0, 0, 1] == 640_000 > torch.finfo(torch.float16).max


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", ["BERT", "MPNet", "Llama", "GPT-OSS", "T5", "ViT"])
def test_families_are_captured_rightly_in_half_precision(name, dtype):
    family = BY_NAME[name]
    network = small_network(family).to(getattr(torch, dtype))
    inputs, mask = family_inputs(family, network)
    inputs = inputs.to(getattr(torch, dtype)) if inputs.is_floating_point() else inputs
    diagnosis = diagnose(name, network, family.stacks[0], inputs, mask)
    assert diagnosis.right, diagnosis.table


@pytest.mark.parametrize("dtype", HALVES)
def test_a_study_in_half_precision_is_near_the_one_in_float32(dtype, tiny_folder, tiny, sample, tmp_path):
    half = headscope.load(str(tiny_folder), dtype=dtype, device="cpu")
    assert half.dtype == dtype
    assert next(half.network.parameters()).dtype == getattr(torch, dtype)
    options = {"length": 32, "max_windows": 16, "progress": False}
    exact = headscope.study(tiny, sample, out=tmp_path / "exact", **options)
    study = headscope.study(half, sample, out=tmp_path / "half", **options)
    assert study.manifest.model.dtype == dtype
    for column in ("mean_distance", "same_sentence_probability", "attention_self", "attention_to_word"):
        assert np.allclose(study.heads[column], exact.heads[column], rtol=0.15), column
    assert np.allclose(study.arrays["attention_sum"].sum(-1), 16, rtol=0.02)


def test_a_dtype_that_is_none_is_refused():
    with pytest.raises(HeadscopeError, match="dtype is 'int8'; it must be float32, float16 or bfloat16"):
        headscope.load("minilm", dtype="int8")


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(HeadscopeError, match="device='cuda:7' can't be used here"):
        headscope.load("minilm", device="cuda:7")


@pytest.mark.parametrize(
    ("name", "longest"),
    [
        ("BERT", 64),
        ("RoBERTa", 62),
        ("XLM-RoBERTa", 62),
        ("MPNet", 62),
        ("DeBERTa-v2", 64),
        ("GPT-2", 64),
        ("GPT-J", 64),
        ("OPT", 64),
        ("BART", 64),
        ("Marian", 64),
    ],
)
def test_the_longest_window_is_what_the_position_table_holds(name, longest):
    """RoBERTa's and MPNet's tables begin after the padding index: two rows hold no position."""
    family = BY_NAME[name]
    network = small_network(family)
    assert Model(network, None, name).longest == longest
    capture = Capture(network, family.stacks[0])
    seen = []
    for length in (longest, longest + 1):
        ids = torch.full((1, length), 7)
        try:
            capture.run(ids, torch.ones_like(ids), lambda layer, A, Z: seen.append(A.shape[-1]))
        except (IndexError, RuntimeError):
            assert length == longest + 1
        else:
            assert length == longest
    assert set(seen) == {longest}


@pytest.mark.parametrize("name", ["T5", "BLOOM", "MPT"])
def test_relative_positions_have_no_limit(name):
    assert Model(small_network(BY_NAME[name]), None, name).longest is None


def test_windows_beyond_the_limit_are_refused_with_the_limit(tiny, sample, tmp_path):
    with pytest.raises(HeadscopeError, match=r"length is 97, but .*tiny takes at most 96 tokens"):
        headscope.study(tiny, sample, out=tmp_path / "long", length=97, progress=False)
    study = headscope.study(tiny, sample, out=tmp_path / "fits", length=96, max_windows=4, progress=False)
    assert study.arrays["attention_sum"].shape == (3, 4, 96, 96)


def test_an_odd_length_is_measured_too(tiny, sample, tmp_path):
    study = headscope.study(tiny, sample, out=tmp_path / "odd", length=17, max_windows=8, progress=False)
    assert study.arrays["distance_histogram"].shape == (3, 4, 17)
    assert np.allclose(study.arrays["attention_sum"].sum(-1), 8)
