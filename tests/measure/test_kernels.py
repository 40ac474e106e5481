"""The compiled kernel: it takes just what it was built for, and a run does without it where it can't be had."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from runs import small_study
from structures import fields_of

from headscope import compiled
from headscope.compiled import BUILDS, library
from headscope.files import checksum
from headscope.measure import kernel, observation, observer, random_pairs
from headscope.measure.kernel import Layer
from headscope.measure.seen import COUNTS, NUMBERS
from headscope.model.loading import Model

SOURCE = Path(kernel.__file__).with_suffix(".c")


def test_the_structure_is_that_of_the_source() -> None:
    assert fields_of(SOURCE, "Layer") == list(Layer._fields_)


def test_all_that_is_summed_and_seen_goes_into_the_kernel_by_its_name() -> None:
    names = {name for name, _ in Layer._fields_}
    assert {field.name for field in fields(observation.LayerSums)} <= names
    by_itself = {"random_focal", "random_focal_pairs", "diagonals"}
    assert {f"at_{name}" for name in (COUNTS | NUMBERS) if name not in by_itself} <= names


def test_an_array_of_another_kind_is_not_handed_over() -> None:
    for other in (torch.zeros(2, 3), torch.zeros(3, 2, dtype=torch.int64).T):
        with pytest.raises(TypeError, match="not a dense"):
            kernel._address(other, torch.int64)


def test_matrices_that_are_not_dense_are_copied() -> None:
    kept = torch.zeros(2, 5, 4, 3).transpose(1, 2)
    assert kernel._dense(kept, 1) is kept
    assert kernel._dense(kept, 2).is_contiguous()


CAPABILITIES = "default", "avx2", "avx512"
"""What torch can be told that a processor has; each has all of those before it."""


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_build_that_this_machine_can_run_gives_the_same_bits(capability: str) -> None:
    """In a process of its own, because torch looks at the processor once."""
    here = torch.backends.cpu.get_cpu_capability().lower()
    if here in CAPABILITIES and CAPABILITIES.index(capability) > CAPABILITIES.index(here):
        pytest.skip(f"this processor has {here}, not {capability}")
    code = "import test_kernels; test_kernels.print_small_layer()"
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
        env={"PYTHONPATH": str(Path(__file__).parents[1]), "ATEN_CPU_CAPABILITY": capability},
    ).stdout.splitlines()
    assert told[1:] == small_layer()
    assert told[0] in {build for builds in BUILDS.values() for build in builds}


def small_layer() -> list[str]:
    """Counts and sums of whole numbers, which every build multiplies exactly."""
    from headscope.corpus.windows import Batch
    from headscope.measure.accumulate import AllMeasures
    from headscope.measure.seen import Seen
    from headscope.options import Options

    draw, length = np.random.default_rng(0), 37
    options = Options(length=length)
    batch = Batch(
        draw.integers(0, 9, (3, length)),
        np.array([37, 20, 37]),
        np.sort(draw.integers(0, 4, (3, length)), 1),
        draw.integers(1, 6, (3, length)).astype(np.int8),
        np.zeros((3, length), bool),
        np.arange(3),
    )
    tokens = observation.Tokens.of(batch, "keep", torch.device("cpu"))
    shard = AllMeasures(options, (0,), 2).begin(torch.device("cpu"))
    seen = Seen.empty(1, 3, 2, torch.device("cpu"))
    attention = torch.from_numpy(draw.random((3, 2, length, length), np.float32))
    output = torch.from_numpy(draw.integers(-3, 4, (3, 2, length, 5)).astype(np.float32))
    lengths = torch.ones(3, 2, length)
    observe = kernel.Observing(tokens, options)
    observe(attention, output, lengths, slice(0, 2), shard._sums[0], seen.layer(0))
    return [
        str(seen.counts.tolist()),
        *(checksum(shard.states[name].numpy().tobytes()) for name in sorted(shard.states)),
    ]


def print_small_layer() -> None:
    print(Path(library()._name).name.partition(".")[0], *small_layer(), sep="\n")


@pytest.fixture
def without_compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As it is installed where there is no C compiler."""
    monkeypatch.setattr(compiled, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "headscope.measure.kernel")
    monkeypatch.delattr("headscope.measure.kernel")
    caches = library, observer._compiled, random_pairs.compiled_draw
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.fixture
def study_of(tiny: Model, tmp_path: Path) -> Callable[[str], dict[str, np.ndarray]]:
    def run(name: str) -> dict[str, np.ndarray]:
        study = small_study(tiny, tmp_path / name, max_windows=24)
        return {array: np.asarray(study.arrays[array]) for array in study.arrays}

    return run


def test_a_study_without_it_says_so_once_and_counts_the_same(study_of, request, capsys) -> None:
    fast = study_of("fast")
    assert "plain torch" not in capsys.readouterr().err
    request.getfixturevalue("without_compiled")
    slow = study_of("slow")
    assert capsys.readouterr().err.count("C compiler") == 1
    assert fast.keys() == slow.keys()
    for name, array in fast.items():
        if array.dtype.kind == "i":
            np.testing.assert_array_equal(slow[name], array, err_msg=name)
        else:
            np.testing.assert_allclose(slow[name], array, rtol=1e-5, atol=1e-7, err_msg=name)


def test_what_was_built_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        class headscope_layer_bytes:
            restype = None

            def __new__(cls) -> int:
                return 8

        class headscope_observe:
            argtypes = None

    monkeypatch.setattr(kernel, "library", Old)
    with pytest.raises(ImportError, match="another version"):
        kernel._loaded()


def test_what_is_no_library_is_refused_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / "_kernel.so"
    damaged.write_bytes(b"no library")
    monkeypatch.setattr(compiled, "find_spec", lambda name: type("Spec", (), {"origin": str(damaged)}))
    with pytest.raises(ImportError, match="can't be loaded"):
        library.__wrapped__()
