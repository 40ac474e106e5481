"""Linear layers, compiled: the same sums as the model's own, and where they are not, the model's own."""

from __future__ import annotations

import ctypes
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from structures import fields_of
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from headscope import compiled
from headscope.compiled import BUILDS
from headscope.model import compiled_linear
from headscope.model.capture import Capture
from headscope.model.compiled_linear import FEWEST_ROWS, Product, Products, multiplied, multiplying
from headscope.model.diagnosis import family_inputs
from headscope.model.families.small import FAMILIES, small_network

BUILT = [
    build
    for build in BUILDS.get(torch.backends.cpu.get_cpu_capability(), ("_compiled",))
    if find_spec(f"headscope.{build}") is not None
]
"""What was built for this processor."""


@pytest.fixture(params=BUILT)
def build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    """`linear.c` of one build, as if it had the widest registers."""
    spec = find_spec(f"headscope.{request.param}")
    assert spec is not None
    library = ctypes.CDLL(str(spec.origin))
    library.headscope_multiply.argtypes = [ctypes.POINTER(Product)]
    monkeypatch.setattr(compiled_linear, "_library", lambda: library)
    return library


def test_the_structure_is_that_of_the_source() -> None:
    assert fields_of(Path(compiled_linear.__file__).with_name("linear.c"), "Product") == list(Product._fields_)


def layer_of(entering: int, leaving: int, bias: bool, transposed: bool) -> Any:
    layer: Any = Conv1D(leaving, entering) if transposed else nn.Linear(entering, leaving, bias)
    return layer.requires_grad_(False)


def reference(layer: Any, given: Tensor) -> tuple[Tensor, Tensor]:
    """Element by element in double precision, and how far rounding may take each."""
    weight = layer.weight.double() if type(layer) is Conv1D else layer.weight.double().T
    exact = given.double() @ weight + (0 if layer.bias is None else layer.bias.double())
    terms = given.double().abs() @ weight.abs() + (0 if layer.bias is None else layer.bias.double().abs())
    return exact, (given.shape[-1] + 2) * 2**-24 * terms


class TestTheProduct:
    @given(
        st.integers(1, 70), st.integers(1, 400), st.integers(1, 130), st.booleans(), st.booleans(), st.integers(0, 9)
    )
    def test_it_is_that_of_the_layer(
        self, rows: int, entering: int, leaving: int, bias: bool, transposed: bool, seed: int
    ) -> None:
        torch.manual_seed(seed)
        layer, given = layer_of(entering, leaving, bias, transposed), torch.randn(rows, entering)
        exact, off = reference(layer, given)
        for build in BUILT:
            spec = find_spec(f"headscope.{build}")
            assert spec is not None
            library = ctypes.CDLL(str(spec.origin))
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(compiled_linear, "_library", lambda library=library: library)
                assert ((multiplied(layer, given) - exact).abs() <= off).all()

    def test_a_row_does_not_depend_on_the_others(self, build: ctypes.CDLL) -> None:
        layer, given = layer_of(300, 100, True, False), torch.randn(37, 300)
        together = multiplied(layer, given)
        for row in range(37):
            assert torch.equal(multiplied(layer, given[row : row + 1])[0], together[row])

    def test_rows_may_lie_apart(self, build: ctypes.CDLL) -> None:
        layer, wide = layer_of(64, 32, True, False), torch.randn(2, 40, 100)
        assert torch.equal(multiplied(layer, wide[..., :64]), multiplied(layer, wide[..., :64].contiguous()))

    def test_infinity_and_nan_stay_in_their_rows(self, build: ctypes.CDLL) -> None:
        layer, given = layer_of(64, 50, True, False), torch.randn(20, 64)
        given[3, 5], given[7, 9] = torch.inf, torch.nan
        put_out = multiplied(layer, given)
        assert not put_out[[3, 7]].isfinite().any()
        assert put_out[[row for row in range(20) if row not in (3, 7)]].isfinite().all()


class TestWhereItIsUsed:
    def test_only_after_the_same_came_of_both(self, build: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
        layer, given = layer_of(64, 48, True, False), torch.randn(2, FEWEST_ROWS, 64)
        calls: list[int] = []

        def counted(module: Any, given: Tensor) -> Tensor:
            calls.append(len(given))
            put_out: Tensor = nn.Linear.forward(module, given)
            return put_out + off

        monkeypatch.setattr(compiled_linear, "multiplied", counted)
        for off, wanted in ((0.0, 3), (1e-6, 1)):
            products = Products()
            calls.clear()
            for _ in range(3):
                assert torch.equal(products.of(layer, given), layer(given))
            assert len(calls) == wanted, off

    def test_what_differs_in_size_is_compared_anew(self, build: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
        products, compared = Products(), []
        monkeypatch.setattr(torch, "equal", lambda one, other: compared.append(one.shape) or False)
        for rows, entering, leaving in ((64, 8, 4), (64, 8, 4), (65, 8, 4), (64, 9, 4), (64, 8, 5)):
            products.of(layer_of(entering, leaving, True, False), torch.randn(rows, entering))
        assert compared == [(64, 4), (65, 4), (64, 4), (64, 5)]

    def test_nan_proves_nothing(self, build: ctypes.CDLL) -> None:
        layer, products = layer_of(64, 48, True, False), Products()
        assert products.of(layer, torch.full((FEWEST_ROWS, 64), torch.nan)).isnan().all()
        assert not products._same

    @pytest.mark.parametrize(
        "given",
        [
            torch.randn(FEWEST_ROWS - 1, 64),
            torch.randn(64),
            torch.randn(FEWEST_ROWS, 64, dtype=torch.float64),
            torch.randn(64, FEWEST_ROWS).T,
        ],
        ids=["few rows", "one vector", "another type", "rows that are not dense"],
    )
    def test_what_it_does_not_take_is_left_to_the_model(self, build: ctypes.CDLL, given: Tensor) -> None:
        layer, products = layer_of(64, 48, True, False).to(given.dtype), Products()
        assert torch.equal(products.of(layer, given), layer(given))
        assert not products._same

    def test_a_wrong_width_is_the_error_that_it_was(self, build: ctypes.CDLL) -> None:
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            Products().of(layer_of(64, 48, True, False), torch.randn(FEWEST_ROWS, 63))

    def test_layers_are_as_they_were_afterwards(self, build: ctypes.CDLL) -> None:
        class Own(nn.Linear):
            """May do more than multiply."""

        network = nn.Sequential(nn.Linear(8, 8), Own(8, 8), nn.ReLU())
        with pytest.raises(RuntimeError, match="cannot be multiplied"), multiplying(network, Products()):
            network(torch.randn(2, 9))
        with multiplying(network, Products()):
            assert ["forward" in module.__dict__ for module in network] == [True, False, False]
        assert not any("forward" in module.__dict__ for module in network)

    def test_hooks_are_called(self, build: ctypes.CDLL) -> None:
        layer, seen = layer_of(64, 48, True, False), []
        layer.register_forward_pre_hook(lambda module, given: seen.append(given[0].shape))
        with multiplying(layer, Products()):
            layer(torch.randn(FEWEST_ROWS, 64))
        assert seen == [(FEWEST_ROWS, 64)]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=[family.name for family in FAMILIES])
def test_what_is_captured_is_the_same_to_the_last_bit(family: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if compiled_linear._library() is None:
        pytest.skip("no compiled linear layers for this processor, or no C compiler")
    if family.refused:
        pytest.skip("refused")
    network = small_network(family)
    inputs, mask = family_inputs(family, network)
    runs: list[list[Tensor]] = []
    monkeypatch.setattr(compiled_linear, "FEWEST_ROWS", 1)
    for _ in range(2):
        found: list[Tensor] = []
        capture = Capture(network)
        for _ in range(2):  # in the first pass products are compared, in the second used
            found.clear()
            capture.run_by_heads(inputs, mask, lambda *one, found=found: found.extend(t.clone() for t in one[2:4]))
        runs.append(found)
        monkeypatch.setattr(compiled_linear, "_library", lambda: None)
    assert all(torch.equal(one, other) for one, other in zip(*runs, strict=True))


def test_without_a_compiler_the_model_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "find_spec", lambda name: None)
    for kept in (compiled.library, compiled_linear._library):
        kept.cache_clear()
    try:
        layer = layer_of(64, 48, True, False)
        with multiplying(layer, Products()):
            assert "forward" not in layer.__dict__
    finally:
        monkeypatch.undo()
        for kept in (compiled.library, compiled_linear._library):
            kept.cache_clear()
