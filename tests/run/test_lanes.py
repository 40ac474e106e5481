"""Threads that take whole batches: their order, their failures, and what they share."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import digests, small_study
from transformers import MPNetConfig, MPNetModel

from headscope.model.capture import Capture
from headscope.model.loading import Model
from headscope.run.threads import Lanes, Turns

CPU = torch.device("cpu")


class Idle:
    """In the place of a capture."""

    def twin(self) -> Idle:
        return Idle()


def run(count: int, items: Any, take: Any, turns: Turns | None = None, finished: Any = lambda item: None) -> None:
    with closing(Lanes(Idle(), CPU, count)) as lanes:  # type: ignore[arg-type]
        lanes.run(items, take, turns or Turns(), finished)


def lanes_alive() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "lane" in thread.name]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_batches_pass_every_place_in_their_order(count: int) -> None:
    chance = random.Random(count)
    turns = Turns()
    passed: list[list[int]] = [[], [], []]
    finished: list[str] = []

    def take(capture: Any, number: int, item: str) -> None:
        for place in range(3):
            time.sleep(chance.random() / 500)
            with turns.turn(place, number):
                time.sleep(chance.random() / 1000)
                passed[place].append(number)

    run(count, map(str, range(20)), take, turns, finished.append)
    assert passed == [list(range(20))] * 3
    assert sorted(finished, key=int) == [str(number) for number in range(20)]


def test_lanes_work_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=20)
    run(3, range(3), lambda capture, number, item: together.wait())


def test_every_lane_has_a_capture_of_its_own() -> None:
    together = threading.Barrier(3, timeout=20)
    captures: set[int] = set()

    def take(capture: Any, number: int, item: int) -> None:
        captures.add(id(capture))
        together.wait()

    run(3, range(3), take)
    assert len(captures) == 3


@pytest.mark.parametrize("failing", [0, 1, 7])
def test_a_failure_in_one_lane_is_what_the_caller_sees_and_ends_all(failing: int) -> None:
    turns = Turns()

    def take(capture: Any, number: int, item: int) -> None:
        if number == failing:
            raise ValueError(f"batch {number}")
        with turns.turn(0, number):
            pass

    with pytest.raises(ValueError, match=f"batch {failing}"):
        run(3, range(1000), take, turns)
    assert lanes_alive() == []


def test_a_failure_while_batches_are_made_is_raised() -> None:
    def items() -> Iterator[int]:
        yield 0
        raise OSError("unreadable")

    with pytest.raises(OSError, match="unreadable"):
        run(2, items(), lambda capture, number, item: None)


def test_a_failure_of_the_caller_ends_the_lanes() -> None:
    def full(item: int) -> None:
        raise KeyboardInterrupt

    taken: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        run(2, range(10**9), lambda capture, number, item: taken.append(number), finished=full)
    assert lanes_alive() == []
    assert len(taken) < 10**9


def test_a_lane_computes_with_one_thread_and_the_caller_as_before() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seen: list[int] = []
        run(2, range(4), lambda capture, number, item: seen.append(torch.get_num_threads()))
        assert (seen, torch.get_num_threads()) == ([1] * 4, 2)
    finally:
        torch.set_num_threads(before)


def test_the_same_threads_take_one_run_after_another_and_end_when_closed() -> None:
    used: set[int] = set()
    with closing(Lanes(Idle(), CPU, 2)) as lanes:  # type: ignore[arg-type]
        for _ in range(5):
            together = threading.Barrier(2, timeout=20)

            def take(capture: Any, number: int, item: int, together: threading.Barrier = together) -> None:
                used.add(threading.get_native_id())
                together.wait()

            lanes.run(range(2), take, Turns(), lambda item: None)
        assert (len(used), len(lanes_alive())) == (2, 2)
    assert lanes_alive() == []


def test_one_lane_is_enough_for_a_gpu() -> None:
    captures = []
    with closing(Lanes(Idle(), torch.device("meta"), 8)) as lanes:  # type: ignore[arg-type]
        lanes.run(range(20), lambda capture, number, item: captures.append(capture), Turns(), lambda item: None)
    assert len(set(captures)) == 1


def test_a_twin_has_the_same_weights_and_modules_of_its_own(tiny: Model) -> None:
    capture = Capture(tiny.network)
    twin = capture.twin()
    assert twin._network is not capture._network
    assert twin._network.config is not capture._network.config
    ours, theirs = (dict(one._network.named_parameters()) for one in (capture, twin))
    assert all(ours[name].data_ptr() == theirs[name].data_ptr() for name in ours)


@pytest.mark.usefixtures("small_shards")
def test_a_model_that_is_hooked_gives_the_same_bytes_with_any_number_of_threads(tiny: Model, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = MPNetConfig(
        vocab_size=700, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64
    )
    model = Model(MPNetModel(config).eval().requires_grad_(False), tiny.tokenizer, "mpnet")
    found = [
        digests(small_study(model, tmp_path / str(count), max_windows=48, batch_size=2, threads=count).folder)
        for count in (1, 2, 3)
    ]
    assert found[0] == found[1] == found[2]
