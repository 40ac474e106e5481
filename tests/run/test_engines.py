"""Wherever and with however many workers a study runs, it gives the same bytes; lost workers cost a shard at most."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from runs import digests, measures, small_study
from torch import nn

from headscope.corpus.windows import Batch
from headscope.errors import HeadscopeError
from headscope.measure.accumulate import ShardOfMeasures
from headscope.model.capture import Capture
from headscope.model.loading import Model
from headscope.options import Options
from headscope.run.engines import Place, processes
from headscope.run.engines.base import TRIES
from headscope.run.engines.weights import ALIGNMENT, align, pack, unpack
from headscope.run.shards import Shard, ShardRunner

pytestmark = pytest.mark.usefixtures("small_shards")


def when_working(monkeypatch: pytest.MonkeyPatch, action: Callable[[Any], None], after: int = 3) -> None:
    """Do something when the third shard has come back from a worker."""
    listen = processes._Pool._listen
    finished = 0

    def listening(pool: Any, worker: Any) -> Any:
        nonlocal finished
        result = listen(pool, worker)
        finished += result is not None
        if result is not None and finished == after:
            action(pool)
        return result

    monkeypatch.setattr(processes._Pool, "_listen", listening)


def test_two_workers_give_the_bytes_of_one(tiny: Model, tmp_path: Path, whole: dict[str, str]) -> None:
    study = small_study(tiny, tmp_path / "s", workers=2)
    assert digests(study.folder) == whole
    assert study.manifest.run.engine == "processes"
    assert (study.manifest.run.workers, study.manifest.run.threads) == (2, 1)
    assert multiprocessing.active_children() == []


def test_four_workers_of_which_one_is_killed_give_the_bytes_of_one(
    tiny: Model,
    tmp_path: Path,
    whole: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def kill(pool: Any) -> None:
        busy = next(worker for worker in pool._workers if worker.shard is not None)
        os.kill(busy.process.pid, signal.SIGKILL)

    when_working(monkeypatch, kill)
    study = small_study(tiny, tmp_path / "s", workers=4)
    assert digests(study.folder) == whole
    assert "A worker was lost (by signal 9); its shard" in capfd.readouterr().err


def test_ctrl_c_ends_all_workers_and_the_study_goes_on(
    tiny: Model, tmp_path: Path, whole: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    when_working(monkeypatch, lambda pool: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        small_study(tiny, tmp_path / "s", workers=2)
    assert multiprocessing.active_children() == []
    kept = len(list((tmp_path / "s" / "unfinished").glob("shard-*")))
    assert kept >= 2
    assert digests(small_study(tiny, tmp_path / "s").folder) == whole


def test_another_number_of_threads_changes_no_byte(tiny: Model, minilm: Model, tmp_path: Path) -> None:
    for name, model in {"tiny": tiny, "minilm": minilm}.items():
        found = {
            count: digests(small_study(model, tmp_path / f"{name}-{count}", max_windows=48, threads=count).folder)
            for count in (1, 2, 3)
        }
        assert found[1] == found[2] == found[3]


def test_threads_of_the_caller_are_left_as_they_were(tiny: Model, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    small_study(tiny, tmp_path / "s", max_windows=16, threads=before + 1)
    assert torch.get_num_threads() == before


def test_cores_are_divided_among_workers() -> None:
    cores = torch.get_num_threads()
    assert Place().threads_per_worker == cores
    assert Place(workers=cores).threads_per_worker == 1
    assert Place(workers=1000).threads_per_worker == 1
    assert Place(workers=2, threads=5).threads_per_worker == 5


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"engine": "cloud"}, "engine is 'cloud'; it must be local or ray"),
        ({"workers": 0}, "workers is 0; it must be a whole number"),
        ({"threads": 99999}, "threads is 99999"),
        ({"address": "auto"}, "address is for engine='ray' only"),
        ({"shard": "0/4"}, "shard is '0/4'; write for example 3/16"),
        ({"shard": "5/4"}, "shard is '5/4'"),
        ({"shard": "1"}, "shard is '1'"),
    ],
)
def test_wrong_places_are_refused(tiny: Model, tmp_path: Path, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(HeadscopeError, match=message):
        small_study(tiny, tmp_path / "s", **({"threads": None} | asked))
    assert not (tmp_path / "s").exists()


# What a pool of workers does when they fail, tried with threads in place of processes.


class Threads:
    """An engine whose workers are threads that run `work(connection)`."""

    def __init__(self, work: Callable[[Any], None], workers: int = 2) -> None:
        self.work = work
        self.workers = workers
        self.begun = 0

    def start(self, number: int) -> processes._Worker:
        self.begun += 1
        here, there = multiprocessing.Pipe()

        def run() -> None:
            with there, suppress(OSError):
                self.work(there)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        process = SimpleNamespace(join=thread.join, exitcode=-9, terminate=here.close, kill=here.close)
        return processes._Worker(process, here)


def shards(count: int) -> list[Shard]:
    return [Shard(index, Batch(*[np.zeros((4, 3), np.int64)] * 6)) for index in range(count)]


def obedient(connection: Any) -> None:
    connection.send(("ready", None))
    try:
        while True:
            shard = connection.recv()
            connection.send(("tick", len(shard.batch)))
            processes._send(connection, 8, {"index": np.array([shard.index])})
    except (EOFError, OSError):
        return


def test_a_pool_measures_every_shard_once_and_counts_every_window() -> None:
    ticks: list[int] = []
    pool = processes._Pool(Threads(obedient), shards(7), ticks.append, pytest.fail)  # type: ignore[arg-type]
    found = [(measured.shard.index, measured.arrays["index"].item()) for measured in pool.measured()]
    assert sorted(found) == [(index, index) for index in range(7)]
    assert sum(ticks) == 28


def test_a_shard_that_kills_every_worker_is_given_up_with_one_sentence() -> None:
    def fragile(connection: Any) -> None:
        connection.send(("ready", None))
        while connection.recv().index != 2:
            processes._send(connection, 8, {"x": np.zeros(1)})
        connection.send(("tick", 4))

    ticks: list[int] = []
    said: list[str] = []
    engine = Threads(fragile, workers=1)
    pool = processes._Pool(engine, shards(5), ticks.append, said.append)  # type: ignore[arg-type]
    done = []
    with pytest.raises(
        HeadscopeError, match=rf"Shard 2 was lost with its worker {TRIES} times, the last one by signal 9"
    ):
        done.extend(measured.shard.index for measured in pool.measured())
    assert engine.begun == TRIES
    assert said == ["A worker was lost (by signal 9); its shard 2 is measured again."] * (TRIES - 1)
    assert sum(ticks) == 0


def test_workers_that_never_start_are_given_up() -> None:
    pool = processes._Pool(Threads(lambda connection: None), shards(3), print, print)  # type: ignore[arg-type]
    with pytest.raises(HeadscopeError, match="The workers do not start"):
        list(pool.measured())


def test_what_is_wrong_with_the_model_is_said_by_the_first_process() -> None:
    def complaining(connection: Any) -> None:
        connection.send(("ready", None))
        connection.recv()
        connection.send(("problem", "Layer 1, head 2 puts out NaN."))

    pool = processes._Pool(Threads(complaining), shards(3), print, print)  # type: ignore[arg-type]
    with pytest.raises(HeadscopeError, match=r"^Layer 1, head 2 puts out NaN\.$"):
        list(pool.measured())


# Weights that processes share.


def test_a_network_is_the_same_after_packing_and_its_weights_are_shared(tiny: Model) -> None:
    packed = pack(tiny.network, "tiny")
    network = unpack(packed)
    ids = torch.arange(32).view(2, 16)
    before, after = [], []
    for found, model in ((before, tiny.network), (after, network)):
        Capture(model).run(ids, torch.ones_like(ids), lambda layer, A, Z, found=found: found.append((A.clone(), Z)))
    assert all(
        torch.equal(a, b) for one, other in zip(before, after, strict=True) for a, b in zip(one, other, strict=True)
    )
    begin, end = packed.weights.data_ptr(), packed.weights.data_ptr() + packed.weights.nbytes
    assert all(begin <= tensor.data_ptr() < end for tensor in network.parameters())
    assert len(packed.skeleton) < 100_000 < packed.weights.nbytes


def test_tied_weights_stay_tied_and_odd_tensors_survive() -> None:
    network = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    network[1].weight = network[0].weight
    network.register_buffer("flag", torch.tensor(True))
    network.register_buffer("nothing", torch.zeros(0, 4))
    network.register_buffer("turned", torch.arange(6.0).view(2, 3).T)
    copy = unpack(pack(network, "odd"))
    assert copy[0].weight is copy[1].weight
    assert copy.flag.item() is True
    assert copy.nothing.shape == (0, 4)
    assert torch.equal(copy.turned, network.turned)


def test_a_model_that_can_not_be_sent_is_refused_by_name() -> None:
    network = nn.Linear(2, 2)
    network.act = lambda x: x  # type: ignore[assignment]
    with pytest.raises(HeadscopeError, match=r"The model odd can't be handed to other processes .* use workers=1"):
        pack(network, "odd")


def test_weights_begin_at_the_same_place_in_a_cache_line_everywhere() -> None:
    network = nn.Linear(5, 5)
    raw = torch.zeros(26)
    network.weight.data = raw[1:].view(5, 5).copy_(network.weight.data)
    before = network.weight.detach().clone()
    align(network)
    assert network.weight.data_ptr() % ALIGNMENT == 0
    assert torch.equal(network.weight, before)
    assert all(tensor.data_ptr() % ALIGNMENT == 0 for tensor in unpack(pack(network, "n")).parameters())


# Memory.


class Crowded:
    """Memory for so many windows at once and no more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int, problem: Exception) -> None:
        take = ShardOfMeasures.take

        def taking(shard: ShardOfMeasures, capture: Any, batch: Batch, in_turn: Any) -> None:
            if len(batch) > room:
                raise problem
            take(shard, capture, batch, in_turn)

        monkeypatch.setattr(ShardOfMeasures, "take", taking)


@pytest.mark.parametrize(
    "problem",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_a_batch_too_large_for_memory_is_halved_said_and_recorded(
    tiny: Model,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    problem: Exception,
) -> None:
    alone = small_study(tiny, tmp_path / "alone", max_windows=48, batch_size=3)
    Crowded(monkeypatch, 3, problem)
    study = small_study(tiny, tmp_path / "s", max_windows=48, batch_size=13, threads=2)
    assert study.manifest.run.batch_size == 3
    assert study.manifest.options.batch_size == 13
    assert digests(study.folder) == digests(alone.folder)
    said = capfd.readouterr().err
    assert "A batch of 13 windows does not fit into memory; going on with 6." in said
    assert "A batch of 6 windows does not fit into memory; going on with 3." in said


def test_a_window_that_never_fits_into_memory_is_one_sentence(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    Crowded(monkeypatch, 0, MemoryError())
    ticks: list[int] = []
    with (
        closing(ShardRunner(tiny, measures(tiny, Options(length=32)), Options(length=32))) as runner,
        pytest.raises(HeadscopeError, match="Not even one window of 32 tokens fits into memory"),
    ):
        runner.run(shards(1)[0], ticks.append)
    assert sum(ticks) == 0


def test_other_errors_are_not_taken_for_a_lack_of_memory(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    Crowded(monkeypatch, 0, RuntimeError("a bug"))
    with (
        closing(ShardRunner(tiny, measures(tiny, Options(length=32)), Options(length=32))) as runner,
        pytest.raises(RuntimeError, match="a bug"),
    ):
        runner.run(shards(1)[0], lambda count: None)


# Ray.


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head that measures nothing, and two nodes of one CPU each."""
    pytest.importorskip("ray", reason="ray is not installed: pip install 'headscope[ray]'")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    small = {"object_store_memory": 80_000_000}
    quick = {
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 500,
        "health_check_timeout_ms": 1000,
        "health_check_failure_threshold": 3,
    }
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": quick, **small}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        nodes = [cluster.add_node(num_cpus=1, **small) for _ in range(2)]
        cluster.wait_for_nodes()
        yield SimpleNamespace(address=cluster.address, kill=lambda: cluster.remove_node(nodes[0], allow_graceful=False))
    finally:
        cluster.shutdown()


def test_a_ray_cluster_that_loses_a_node_midway_gives_the_bytes_of_one_process(
    tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], cluster: Any
) -> None:
    import ray

    from headscope.run.engines import ray_engine

    alone = small_study(tiny, tmp_path / "alone", max_windows=640)
    listen = ray_engine._Cluster._listen
    deliveries: list[Any] = []

    def listening(run: Any, worker: Any) -> Any:
        if not deliveries and not any(other.ready for other in run._workers):
            ray.wait([other.answer for other in run._workers], num_returns=2, timeout=120)
        result = listen(run, worker)
        if result is not None:
            deliveries.append(worker)
            if len(deliveries) == 12:
                cluster.kill()
        return result

    monkeypatch.setattr(ray_engine._Cluster, "_listen", listening)
    study = small_study(tiny, tmp_path / "s", max_windows=640, engine="ray", address=cluster.address)
    assert digests(study.folder) == digests(alone.folder)
    assert study.manifest.run.engine == "ray"
    assert study.manifest.run.workers == 2
    assert len(set(deliveries[:12])) == 2
    assert len(deliveries) == 40
    assert "its shard" in capfd.readouterr().err


def test_a_ray_cluster_that_is_not_there_is_one_sentence(tiny: Model, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed: pip install 'headscope[ray]'")
    with pytest.raises(HeadscopeError, match=r"No Ray cluster can be reached at nowhere:1 .*ray start --head"):
        small_study(tiny, tmp_path / "s", engine="ray", address="nowhere:1")


def test_without_ray_the_message_says_how_to_install_it(
    tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    monkeypatch.delitem(__import__("sys").modules, "headscope.run.engines.ray_engine", raising=False)
    with pytest.raises(HeadscopeError, match=r"pip install 'headscope\[ray\]'"):
        small_study(tiny, tmp_path / "s", engine="ray")
