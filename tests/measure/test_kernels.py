"""The compiled kernel is kept from run to run, and a run does without what can't be had: the kept one, or numba."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import CacheImpl
from runs import small_study

from headscope.measure import kernel, observation, observer, random_pairs
from headscope.measure.compiling import compiled_for_good
from headscope.measure.kernel import _COUNT, _NUMBER, Layer, _observe
from headscope.model.loading import Model


def doubled(number):
    return 2 * number


def compiled() -> numba.core.dispatcher.Dispatcher:
    return compiled_for_good(doubled, "int64(int64)")


def was_kept(function: numba.core.dispatcher.Dispatcher) -> bool:
    return bool(function.stats.cache_hits)


class TestKeeping:
    @pytest.fixture(autouse=True)
    def kept(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
        return tmp_path

    def test_a_function_is_compiled_once(self) -> None:
        assert not was_kept(compiled())
        again = compiled()
        assert was_kept(again)
        assert again(21) == 42

    @pytest.mark.parametrize("name", ["*.nbi", "*.nbc"])
    @pytest.mark.parametrize("content", [b"", b"no code", b"\x80\x05."])
    def test_a_damaged_one_is_compiled_and_kept_anew(self, kept: Path, name: str, content: bytes) -> None:
        compiled()
        (file,) = kept.rglob(name)
        file.write_bytes(content)
        assert compiled()(21) == 42
        assert not was_kept(compiled())
        assert was_kept(compiled())

    def test_where_nothing_can_be_kept_it_is_compiled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(CacheImpl, "_locator_classes", [])
        assert compiled()(21) == 42

    def test_where_the_disk_is_full_it_is_compiled(self, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.replace", refuse)
        assert compiled()(21) == 42
        assert not list(kept.rglob("*.nbi*"))

    def test_what_is_wrong_with_the_function_is_raised(self) -> None:
        with pytest.raises(numba.errors.NumbaError):
            compiled_for_good(lambda number: number.missing, "int64(int64)")


def test_all_that_is_summed_and_seen_goes_into_the_kernel_by_its_name() -> None:
    assert {field.name for field in fields(observation.LayerSums)} <= set(Layer._fields)
    places = {**_COUNT, **_NUMBER}
    by_torch = {"random_focal", "random_focal_pairs"}
    named = {value for name, value in vars(kernel).items() if name.isupper() and isinstance(value, int)}
    assert {place for name, place in places.items() if name not in by_torch} <= named


def test_the_kernel_has_one_version_and_takes_nothing_else() -> None:
    assert len(_observe.signatures) == 1
    with pytest.raises(TypeError, match="No matching definition"):
        _observe(0, tuple(range(len(Layer._fields))))


@pytest.fixture
def without_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "headscope.measure.kernel")
    monkeypatch.delattr("headscope.measure.kernel")
    monkeypatch.delitem(sys.modules, "headscope.measure.compiling")
    observer._compiled.cache_clear()
    random_pairs.compiled_draw.cache_clear()
    yield
    observer._compiled.cache_clear()
    random_pairs.compiled_draw.cache_clear()


@pytest.fixture
def study_of(tiny: Model, tmp_path: Path) -> Callable[[str], dict[str, np.ndarray]]:
    def run(name: str) -> dict[str, np.ndarray]:
        study = small_study(tiny, tmp_path / name, max_windows=24)
        return {array: np.asarray(study.arrays[array]) for array in study.arrays}

    return run


def test_a_study_without_numba_says_so_once_and_counts_the_same(study_of, request, capsys) -> None:
    fast = study_of("fast")
    assert "numba" not in capsys.readouterr().err
    request.getfixturevalue("without_numba")
    slow = study_of("slow")
    assert capsys.readouterr().err.count("numba can't be used") == 1
    assert fast.keys() == slow.keys()
    for name, array in fast.items():
        if array.dtype.kind == "i":
            np.testing.assert_array_equal(slow[name], array, err_msg=name)
        else:
            np.testing.assert_allclose(slow[name], array, rtol=1e-5, atol=1e-7, err_msg=name)
