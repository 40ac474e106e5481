"""Checkpoints: any one damaged file costs at most one shard, sums do not depend on their order, nothing is mixed up."""

from __future__ import annotations

import itertools
import json
import math
import os
import stat
from copy import deepcopy
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from headscope.errors import HeadscopeError
from headscope.files import checksum, file_checksum, safetensors_pieces, write_atomically
from headscope.run.checkpoints import FOLD, FOLDER, Checkpoints, locked, remove
from headscope.run.sums import ExactSum

SPECS = {"total": ("float64", (2, 3, 4, 4)), "count": ("int64", (2, 3)), "map": ("int16", (2, 3, 5))}
IDENTITY = {"model": "a", "threshold": 0.3}


@pytest.fixture(autouse=True)
def every_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is on disk before the next; the tests below that say otherwise say it."""
    monkeypatch.setattr("headscope.run.checkpoints.SECONDS", 0)


def arrays_of(shard: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(shard)
    return {
        "total": rng.random((2, 3, 4, 4)) ** 9,
        "count": rng.integers(0, 9, (2, 3)),
        "map": rng.integers(0, 30_000, (2, 3, 5), dtype=np.int16),
    }


def opened(study: Path, identity: dict = IDENTITY) -> Checkpoints:
    (study / FOLDER).mkdir(parents=True, exist_ok=True)
    checkpoints = Checkpoints(study, SPECS)
    checkpoints.begin(identity)
    return checkpoints


def filled(study: Path, order: list[int]) -> Checkpoints:
    checkpoints = opened(study)
    for shard in order:
        checkpoints.add(shard, f"windows {shard}", arrays_of(shard), batch_size=8)
    checkpoints.flush()
    return checkpoints


def total_of(checkpoints: Checkpoints, count: int) -> dict[str, np.ndarray]:
    total = checkpoints.total(count)
    assert total is not None
    return total.whole


def assert_same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert sorted(one) == sorted(other)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], strict=True)


def files(study: Path, kind: str) -> list[Path]:
    return sorted((study / FOLDER).glob(f"{kind}-*.safetensors"))


def test_a_study_goes_on_with_every_shard_that_was_finished(tmp_path: Path) -> None:
    whole = total_of(filled(tmp_path / "whole", list(range(11))), 11)
    filled(tmp_path / "stopped", list(range(7)))
    again = opened(tmp_path / "stopped")
    assert again.fingerprints == {shard: f"windows {shard}" for shard in range(7)}
    assert again.told == []
    for shard in range(7, 11):
        again.add(shard, f"windows {shard}", arrays_of(shard), 8)
    assert_same(total_of(again, 11), whole)


def test_narrow_counts_of_shards_add_up_to_wide_ones(tmp_path: Path) -> None:
    expected = np.sum([arrays_of(shard)["map"].astype(np.int64) for shard in range(9)], axis=0)
    assert expected.max() > np.iinfo(np.int16).max
    filled(tmp_path, list(range(6)))
    again = opened(tmp_path)
    for shard in range(6, 9):
        again.add(shard, f"windows {shard}", arrays_of(shard), 8)
    np.testing.assert_array_equal(total_of(again, 9)["map"], expected, strict=True)


@pytest.mark.parametrize("order", [[3, 1, 0, 2, 5, 4, 6, 8, 7], [8, 7, 6, 5, 4, 3, 2, 1, 0]])
def test_shards_may_arrive_in_any_order(tmp_path: Path, order: list[int]) -> None:
    assert_same(total_of(filled(tmp_path / "a", order), 9), total_of(filled(tmp_path / "b", list(range(9))), 9))


def test_the_disk_holds_only_a_few_shards(tmp_path: Path) -> None:
    checkpoints = opened(tmp_path)
    for shard in range(40):
        checkpoints.add(shard, "f", arrays_of(shard), 8)
        checkpoints.flush()
        assert len(files(tmp_path, "sum")) <= 2
        assert len(files(tmp_path, "shard")) < 2 * FOLD + 1


def test_shards_that_come_quickly_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("headscope.run.checkpoints.time.monotonic", lambda: now)
    monkeypatch.setattr("headscope.run.checkpoints.SECONDS", 30)
    checkpoints = opened(tmp_path)
    written = []
    for shard, now in enumerate([12, 24, 36, 48, 60, 95, 140, 150, 171]):  # noqa: B007 - told to the clock
        checkpoints.add(shard, f"windows {shard}", arrays_of(shard), 8)
        checkpoints.flush()
        written.append([path.name[:10] for kind in ("shard", "sum") for path in files(tmp_path, kind)])
    assert written == [
        [],
        [],
        ["sum-000003"],
        ["sum-000003"],
        ["sum-000003"],
        ["sum-000003", "sum-000006"],
        ["shard-0000", "sum-000003", "sum-000006"],
        ["shard-0000", "sum-000003", "sum-000006"],
        ["shard-0000", "sum-000006", "sum-000009"],
    ]
    checkpoints.close()
    again = opened(tmp_path)
    assert (sorted(again.fingerprints), again.told) == (list(range(9)), [])
    assert_same(total_of(again, 9), total_of(filled(tmp_path / "whole", list(range(9))), 9))


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [3, 1, 0, 4, 2], [4, 3, 2, 1, 0]])
@pytest.mark.parametrize("stopped", [1, 3, 5])
def test_what_is_in_memory_alone_is_written_when_a_study_ends_without_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: list[int], stopped: int
) -> None:
    monkeypatch.setattr("headscope.run.checkpoints.SECONDS", 10**9)
    one = opened(tmp_path / "s")
    for count, shard in enumerate(order[:stopped], 1):
        one.add(shard, f"windows {shard}", arrays_of(shard), 8, last=count == len(order))
    one.flush()
    one.close()
    again = opened(tmp_path / "s")
    assert sorted(again.fingerprints) == sorted(order[:stopped])
    for shard in order[stopped:]:
        again.add(shard, f"windows {shard}", arrays_of(shard), 8)
    assert_same(total_of(again, 5), total_of(filled(tmp_path / "whole", list(range(5))), 5))


def test_results_that_are_written_need_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headscope.run.checkpoints.SECONDS", 10**9)
    checkpoints = filled(tmp_path, [0, 1, 2])
    checkpoints.superfluous()
    checkpoints.close()
    assert not files(tmp_path, "*")


def test_the_last_shard_waits_for_no_disk(tmp_path: Path) -> None:
    checkpoints = filled(tmp_path, [0, 1])
    checkpoints.add(2, "windows 2", arrays_of(2), 8, last=True)
    checkpoints.flush()
    assert [path.name[:12] for path in files(tmp_path, "*")] == ["shard-000000", "shard-000001"]
    checkpoints.close()
    assert sorted(opened(tmp_path).fingerprints) == [0, 1, 2]


@pytest.mark.parametrize("damage", ["truncate", "flip", "delete", "empty"])
def test_damage_to_any_one_file_costs_at_most_one_shard(tmp_path: Path, damage: str) -> None:
    count = 2 * FOLD + 3
    whole = total_of(filled(tmp_path / "whole", list(range(count))), count)
    names = [path.name for kind in ("shard", "sum") for path in files(tmp_path / "whole", kind)]
    assert any(name.startswith("sum") for name in names)
    for number, name in enumerate(names):
        study = tmp_path / str(number)
        filled(study, list(range(count)))
        path = study / FOLDER / name
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        if damage == "delete":
            path.unlink()
        else:
            path.write_bytes({"truncate": content[:-5], "flip": content, "empty": b""}[damage])
        again = opened(study)
        lost = sorted(set(range(count)) - set(again.fingerprints))
        assert len(lost) <= 1
        if damage != "delete":
            assert len(again.told) == 1
            assert "damaged" in again.told[0]
            assert (f"shard {lost[0]} is measured again" if lost else "nothing was lost") in again.told[0]
        elif lost and lost[0] < count - 1:
            assert again.told == [f"There is no checkpoint of shard {lost[0]}; measured now."]
        for shard in lost:
            again.add(shard, f"windows {shard}", arrays_of(shard), 8)
        assert_same(total_of(again, count), whole)


def test_a_damaged_plan_loses_nothing(tmp_path: Path) -> None:
    filled(tmp_path, [0, 1, 2])
    (tmp_path / FOLDER / "plan.json").write_text("{")
    again = opened(tmp_path)
    assert sorted(again.fingerprints) == [0, 1, 2]
    assert "plan.json was damaged or missing" in again.told[0]


def test_a_damaged_plan_does_not_let_another_study_in(tmp_path: Path) -> None:
    filled(tmp_path, [0])
    (tmp_path / FOLDER / "plan.json").unlink()
    with pytest.raises(HeadscopeError, match="checkpoint of another study"):
        opened(tmp_path, {"model": "b", "threshold": 0.3})
    assert len(files(tmp_path, "shard")) == 1


def test_another_model_or_option_is_refused_by_name(tmp_path: Path) -> None:
    filled(tmp_path, [0])
    with pytest.raises(HeadscopeError, match=r"differs in threshold \(0.3 there, 0.4 now\); give the same"):
        opened(tmp_path, {"model": "a", "threshold": 0.4})


def test_a_plan_without_any_finished_shard_binds_nobody(tmp_path: Path) -> None:
    opened(tmp_path)
    other = opened(tmp_path, {"model": "b"})
    assert other.fingerprints == {}
    assert json.loads((tmp_path / FOLDER / "plan.json").read_text()) == {"model": "b"}


def test_fewer_texts_than_were_measured_are_refused(tmp_path: Path) -> None:
    checkpoints = filled(tmp_path, [0, 1, 2])
    with pytest.raises(HeadscopeError, match="texts make 2 shards"):
        checkpoints.total(2)


def test_the_smallest_batch_size_is_remembered(tmp_path: Path) -> None:
    checkpoints = opened(tmp_path)
    for shard, size in enumerate([8, 8, 2, 4, 8]):
        checkpoints.add(shard, "f", arrays_of(shard), size)
    checkpoints.flush()
    assert opened(tmp_path).batch_size == 2


def test_a_forged_checkpoint_with_a_right_checksum_is_not_taken(tmp_path: Path) -> None:
    filled(tmp_path, [0])
    (whole,) = files(tmp_path, "shard")
    identity = checksum(json.dumps(IDENTITY, sort_keys=True).encode())
    for arrays, about in [
        ({"total": np.zeros((2, 3, 4, 5)), "count": np.zeros((2, 3), int)}, {}),
        ({"total": np.zeros((2, 3, 4, 4))}, {}),
        ({**arrays_of(0), "more": np.zeros(3)}, {}),
        (arrays_of(0), {"fingerprints": []}),
        (arrays_of(0), {"batch_size": None}),
    ]:
        facts = {"identity": identity, "fingerprints": ["f"], "batch_size": 8, **about}
        pieces = [*safetensors_pieces(arrays, {"headscope": json.dumps(facts)})]
        (whole.parent / f"shard-000001-{checksum(pieces)}.safetensors").write_bytes(b"".join(pieces))
        again = opened(tmp_path)
        assert sorted(again.fingerprints) == [0]
        assert "checkpoint of shard 1 was damaged" in again.told[0]


def test_a_shard_is_let_go_before_the_disk_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = filled(tmp_path, [0])
    arrays = arrays_of(1)
    held = []
    monkeypatch.setattr("headscope.files.os.fsync", lambda handle: held.append(len(arrays)))
    checkpoints.add(1, "f1", arrays, 8)
    checkpoints.flush()
    assert held[0] == 0


@pytest.mark.parametrize("at_once", [1, 7, 64, 10**6])
def test_a_file_is_never_far_ahead_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr("headscope.files.SYNCED_AT_ONCE", at_once)
    sync = os.fsync
    sizes = [0]

    def syncing(handle: int) -> None:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            sizes.append(os.fstat(handle).st_size)
        sync(handle)

    monkeypatch.setattr("headscope.files.os.fsync", syncing)
    content = [b"x" * 5, memoryview(b"y" * 100), b"", b"z" * 3]
    write_atomically(tmp_path / "file", content)
    assert (tmp_path / "file").read_bytes() == b"".join(content)
    assert sizes[-1] == 108
    assert max(np.diff(sizes)) < 2 * at_once


def test_only_checkpoints_are_removed(tmp_path: Path) -> None:
    filled(tmp_path, [0, 1])
    note = tmp_path / FOLDER / "note.txt"
    note.write_text("mine")
    for unfinished in ("shard-000002.safetensors.part", "plan.json.part"):
        (tmp_path / FOLDER / unfinished).write_bytes(b"half")
    remove(tmp_path)
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == ["note.txt"]
    note.unlink()
    remove(tmp_path)
    assert not (tmp_path / FOLDER).exists()


def test_a_second_run_in_the_same_folder_is_refused_and_the_first_keeps_its_lock(tmp_path: Path) -> None:
    with locked(tmp_path / "s"):
        for _ in range(2):
            with pytest.raises(HeadscopeError, match="Another run is writing to"), locked(tmp_path / "s"):
                pass
    assert not (tmp_path / "s").exists()
    with locked(tmp_path / "s"):
        filled(tmp_path / "s", [0])
    assert len(files(tmp_path / "s", "shard")) == 1


def test_arrays_are_written_as_the_safetensors_library_reads_them(tmp_path: Path) -> None:
    arrays = {**arrays_of(1), "turned": arrays_of(2)["total"].swapaxes(0, 2), "none": np.zeros((0, 3), np.int64)}
    pieces = [*safetensors_pieces(arrays, {"a": "ä"})]
    write_atomically(tmp_path / "x", pieces)
    assert_same(load_file(tmp_path / "x"), arrays)
    assert file_checksum(tmp_path / "x") == checksum(pieces) == checksum(b"".join(pieces))


def test_a_file_that_can_not_be_written_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(HeadscopeError, match="can't be written: Is a directory"):
        write_atomically(tmp_path / "x", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(-1e12, 1e12).filter(lambda x: x == 0 or abs(x) > 1e-12), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_a_sum_is_the_float_nearest_to_the_truth_in_any_order_and_grouping(values: list[float], chance) -> None:
    truth = math.fsum(values)
    parts = [{"x": np.full((1, 1, 1), value)} for value in values]
    chance.shuffle(parts)
    cut = chance.randrange(len(parts))
    one = ExactSum(deepcopy(parts[0]))
    for part in parts[1:]:
        one.add(part)
    one.settle()
    assert one.whole["x"].item() == truth
    if cut:
        groups = []
        for group in (parts[:cut], parts[cut:]):
            total = ExactSum(deepcopy(group[0]))
            for part in group[1:]:
                total.add(part)
            total.settle()
            groups.append(total)
        groups[0].add(groups[1].whole, groups[1].rest)
        groups[0].settle()
        assert groups[0].whole["x"].item() == truth


def test_sums_of_shards_are_the_same_for_every_grouping_into_parts() -> None:
    parts = [arrays_of(shard) for shard in range(6)]
    exact = sum(Fraction(part["total"][0, 0, 0, 0].item()) for part in parts)
    results = set()
    for order in itertools.permutations(range(6)):
        total = ExactSum(deepcopy(parts[order[0]]))
        for index in order[1:]:
            total.add(parts[index])
        total.settle()
        results.add(total.whole["total"].tobytes())
    assert len(results) == 1
    assert total.whole["total"][0, 0, 0, 0] == float(exact)
