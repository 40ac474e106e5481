"""The runner runs any consumer of A and Z: here one that is no study, through threads, workers, parts and stops."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from runs import during, stop

from headscope.corpus.text_windows import TextWindows
from headscope.corpus.texts import sample_texts
from headscope.errors import HeadscopeError
from headscope.measure.declaration import Specs
from headscope.model.capture import Capture
from headscope.model.loading import Model
from headscope.options import Options
from headscope.run import checkpoints, shards
from headscope.run.engines import Place
from headscope.run.runner import Ran, Run
from headscope.run.shards import Part
from headscope.run.sums import ExactSum

pytestmark = pytest.mark.usefixtures("small_shards", "unsynced")
OPTIONS = Options(length=32, max_windows=80, batch_size=4)


@dataclass(frozen=True)
class Lengths:
    """Adds up the squared length of Z: one number a head, and a count of windows."""

    layers: int
    heads: int
    scale: float = 1.0

    def specs(self) -> Specs:
        return {"squared": ("float64", (self.layers, self.heads)), "windows": ("int64", (1,))}

    def rows(self) -> Specs:
        return {}

    def begin(self, device: torch.device) -> ShardOfLengths:
        return ShardOfLengths(self)

    def identity(self) -> dict[str, Any]:
        return {"scale": self.scale}


class ShardOfLengths:
    def __init__(self, what: Lengths) -> None:
        self._scale = what.scale
        self._squared = np.zeros((what.layers, what.heads))
        self._windows = np.zeros(1, dtype=np.int64)

    def take(self, capture: Capture, batch: Any, in_turn: Callable[..., Any]) -> None:
        def receive(layer: int, heads: slice, attention: Any, output: torch.Tensor, lengths: Any) -> None:
            with in_turn((layer, heads.start)):
                self._squared[layer, heads] += self._scale * output.double().square().sum((0, 2, 3)).numpy()

        ids = torch.from_numpy(batch.ids)
        capture.run_by_heads(ids, torch.ones_like(ids), receive)
        with in_turn("windows"):
            self._windows += len(batch)

    def arrays(self) -> dict[str, Any]:
        return {"squared": self._squared, "windows": self._windows}


def measured(model: Model, folder: Path, *, shard: str = "1/1", scale: float = 1.0, **place: Any) -> ExactSum:
    capture = Capture(model.network)
    source = TextWindows(sample_texts(), model.tokenizer, OPTIONS, shards.WINDOWS_PER_SHARD)
    run = Run(
        model,
        capture,
        source,
        Lengths(capture.layers, capture.heads, scale),
        OPTIONS,
        folder=folder,
        place=Place(**place),
        part=Part.parse(shard),
        weights_hash=ThreadPoolExecutor(1).submit(lambda: model.weights_hash),
        progress=False,
    )

    def finish(total: ExactSum, ran: Ran) -> ExactSum:
        assert ran.windows == total.whole["windows"][0]
        return total

    with checkpoints.locked(folder):
        return run.measure(finish)


@pytest.fixture(scope="module")
def alone(tiny: Model, tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 16)
        total = measured(tiny, tmp_path_factory.mktemp("alone") / "s", threads=1)
    assert total.whole["windows"] == 80
    return total.whole["squared"]


def test_its_sum_is_that_of_the_windows_by_hand(tiny: Model, alone: np.ndarray) -> None:
    source = TextWindows(sample_texts(), tiny.tokenizer, OPTIONS, 256)
    expected = np.zeros_like(alone)

    def receive(layer: int, attention: torch.Tensor, output: torch.Tensor) -> None:
        expected[layer] += output[0].double().square().sum((1, 2)).numpy()

    for window in source.windows(None):
        ids = torch.from_numpy(window.ids)[None]
        Capture(tiny.network).run(ids, torch.ones_like(ids), receive)
    np.testing.assert_allclose(alone, expected, rtol=1e-6)


@pytest.mark.parametrize("place", [{"threads": 2}, {"workers": 2, "threads": 1}])
def test_threads_and_workers_change_no_bit(
    tiny: Model, tmp_path: Path, alone: np.ndarray, place: dict[str, int]
) -> None:
    assert np.array_equal(measured(tiny, tmp_path / "s", **place).whole["squared"], alone)


def test_a_stop_is_gone_on_with_and_changes_no_bit(
    tiny: Model, tmp_path: Path, alone: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        during(patch, 3, stop)
        with pytest.raises(KeyboardInterrupt):
            measured(tiny, tmp_path / "s", threads=1)
    begun: list[int] = []
    during(monkeypatch, 3, lambda: begun.append(3))
    during(monkeypatch, 0, lambda: begun.append(0))
    assert np.array_equal(measured(tiny, tmp_path / "s", threads=1).whole["squared"], alone)
    assert begun == [3]


def test_parts_add_up_to_the_whole(tiny: Model, tmp_path: Path, alone: np.ndarray) -> None:
    parts = [measured(tiny, tmp_path / str(k), shard=f"{k}/2", threads=1) for k in (1, 2)]
    total = ExactSum()
    for part in parts:
        total.add(part.whole, part.rest)
    total.settle()
    assert np.array_equal(total.whole["squared"], alone)


def test_another_consumer_does_not_go_on_with_its_checkpoints(tiny: Model, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        during(patch, 2, stop)
        with pytest.raises(KeyboardInterrupt):
            measured(tiny, tmp_path / "s", threads=1)
    with pytest.raises(HeadscopeError, match=r"differs in scale \(1.0 there, 2.0 now\)"):
        measured(tiny, tmp_path / "s", threads=1, scale=2.0)
