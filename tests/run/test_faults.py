"""Faults, tried for real: kills, damaged checkpoints, a full disk, two runs at once, texts that change, Ctrl-C.

`make faults` tries 25 random kills and a kill before every single step on the disk; here are a few of them.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from runs import digests, during, group_is_empty, interrupt, small_study, started, stop, study_arguments, wait_until

import headscope
from headscope.errors import HeadscopeError
from headscope.model.loading import Model

KILLS = os.environ.get("HEADSCOPE_KILLS", "2")
STRIDE = os.environ.get("HEADSCOPE_STRIDE", "19")

pytestmark = pytest.mark.usefixtures("small_shards")


def stopped(model: Model, out: Path, shard: int = 7) -> None:
    """A study that was stopped when it began a shard."""
    with pytest.MonkeyPatch.context() as patch:
        during(patch, shard, stop)
        with pytest.raises(KeyboardInterrupt):
            small_study(model, out)


def checkpoints(out: Path, kind: str = "*") -> list[Path]:
    return sorted((out / "unfinished").glob(f"{kind}-*.safetensors"))


def test_studies_killed_at_any_moment_go_on_to_the_same_bytes(tiny_folder: Path, tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "killing.py"
    arguments = [sys.executable, script, tiny_folder, tmp_path, KILLS, "5", STRIDE]
    process = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    print(process.stdout)
    killed = re.findall(r"(\d+) of (\d+) identical", process.stdout)
    assert len(killed) == 2
    assert all(same == rounds != "0" for same, rounds in killed)
    assert "no worker outlives the first process: True" in process.stdout
    assert "out of memory: status 0" in process.stdout
    assert "A batch of 2048 windows does not fit into memory; going on with 1024." in process.stderr
    manifest = json.loads((tmp_path / "memory" / "study.json").read_text())
    assert manifest["run"]["batch_size"] < manifest["options"]["batch_size"] == 2048


def test_ctrl_c_says_how_to_go_on_and_leaves_no_process(tiny: Model, tiny_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "s"
    process = started(*study_arguments(tiny_folder, out, 1600), "--workers", "2")
    wait_until(lambda: len(checkpoints(out)) > 1)
    with pytest.raises(HeadscopeError, match="Another run is writing to"):
        small_study(tiny, out)
    interrupt(process)
    _, complaints = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (
        "headscope: stopped; whole shards (of 256 windows) that are finished are kept, and the same command "
        in complaints
    )
    assert "Traceback" not in complaints
    wait_until(lambda: group_is_empty(process.pid))
    assert checkpoints(out)
    with pytest.raises(HeadscopeError, match=r"differs in max_windows \(1600 there, 160 now\)"):
        small_study(tiny, out)


@pytest.mark.parametrize("damage", ["truncated", "altered", "deleted"])
def test_a_damaged_checkpoint_is_found_said_and_measured_again(
    tiny: Model, tmp_path: Path, whole: dict[str, str], capfd: pytest.CaptureFixture[str], damage: str
) -> None:
    stopped(tiny, tmp_path / "s")
    (path,) = checkpoints(tmp_path / "s", "shard-000005")
    content = path.read_bytes()
    if damage == "deleted":
        path.unlink()
    else:
        path.write_bytes(content[:-100] if damage == "truncated" else content[:-100] + b"?" + content[-99:])
    study = small_study(tiny, tmp_path / "s")
    assert digests(study.folder) == whole
    said = " ".join(capfd.readouterr().err.split())
    if damage == "deleted":
        assert "There is no checkpoint of shard 5; measured now." in said
    else:
        assert "The checkpoint of shard 5 was damaged; shard 5 is measured again." in said


def test_a_full_disk_is_one_sentence_and_the_study_goes_on_after_space_is_made(
    tiny: Model, tmp_path: Path, whole: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files may grow to less than a sum of shards needs, but not less than one shard."""
    stopped(tiny, tmp_path / "probe", shard=4)
    single, total = (checkpoints(tmp_path / "probe", kind)[0].stat().st_size for kind in ("shard", "sum"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((single + total) // 2, hard))
    try:
        with pytest.raises(HeadscopeError, match=r"sum-000004\.safetensors can't be written: File too large; what is"):
            small_study(tiny, tmp_path / "s")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(checkpoints(tmp_path / "s", "shard")) >= 4
    assert not list((tmp_path / "s").glob("**/*.part"))
    assert digests(small_study(tiny, tmp_path / "s").folder) == whole


def test_a_study_that_is_stopped_goes_on_with_what_was_not_on_disk_yet(
    tiny: Model, tmp_path: Path, whole: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headscope.run.checkpoints.SECONDS", 10**9)
    stopped(tiny, tmp_path / "s")
    assert [path.name[:10] for path in checkpoints(tmp_path / "s")] == ["sum-000007"]
    for shard in range(7):
        during(monkeypatch, shard, lambda: pytest.fail("nothing should be measured again"))
    assert digests(small_study(tiny, tmp_path / "s").folder) == whole


@pytest.mark.parametrize("seconds", [0, 10**9])
def test_a_disk_that_fills_up_while_results_are_written_costs_nothing(
    tiny: Model, tmp_path: Path, whole: dict[str, str], monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    monkeypatch.setattr("headscope.run.checkpoints.SECONDS", seconds)
    with monkeypatch.context() as patch:
        patch.setattr("headscope.files.os.fsync", full_for("heads.csv"))
        with pytest.raises(HeadscopeError, match=r"heads\.csv can't be written: No space left on device"):
            small_study(tiny, tmp_path / "s")
    assert not (tmp_path / "s" / "study.json").exists()
    with pytest.raises(HeadscopeError, match=r"is not finished; run the same headscope\.study\(\.\.\.\) again"):
        headscope.read(tmp_path / "s")
    during(monkeypatch, 0, lambda: pytest.fail("nothing should be measured again"))
    assert digests(small_study(tiny, tmp_path / "s").folder) == whole


def full_for(name: str) -> Callable[[int], None]:
    """A sync that fails for one file."""
    sync = os.fsync

    def syncing(handle: int) -> None:
        if name in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(28, os.strerror(28))
        sync(handle)

    return syncing


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="mounting a small disk needs root")
def test_a_small_disk_fills_up_for_real(tiny: Model, tmp_path: Path, whole: dict[str, str]) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "none", disk], capture_output=True, check=False
    ).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(3_200_000))
        with pytest.raises(HeadscopeError, match="can't be written: No space left on device; what is finished is kept"):
            small_study(tiny, disk / "s")
        assert checkpoints(disk / "s")
        ballast.unlink()
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        assert digests(small_study(tiny, disk / "s").folder) == whole
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_folder_that_can_not_be_written_to_is_one_sentence(tiny_folder: Path, tmp_path: Path) -> None:
    """Root may write anywhere, unless it gives up that right."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    command = [sys.executable, "-m", "headscope", *map(str, study_arguments(tiny_folder, folder / "s"))]
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("root ignores permissions, and there is no setpriv to give up that right")
        command = [setpriv, "--bounding-set=-dac_override,-dac_read_search", *command]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 2
    assert process.stderr == f"headscope: The folder {folder} can't be written to; give another --out.\n"


def test_a_text_file_that_changes_during_the_run_is_noticed(
    tiny: Model, tmp_path: Path, sample: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "texts.jsonl"
    content = "".join(json.dumps({"text": text}) + "\n" for text in sample[:12])
    path.write_text(content)
    alone = small_study(tiny, tmp_path / "alone", texts=headscope.read_texts([path]))
    with monkeypatch.context() as patch:
        during(patch, 5, lambda: path.write_text(content + '{"text": "More of it."}\n') and None)
        with pytest.raises(HeadscopeError, match=r"texts\.jsonl changed while it was measured"):
            small_study(tiny, tmp_path / "s", texts=headscope.read_texts([path]))
    assert not (tmp_path / "s" / "study.json").exists()
    path.write_text(content)
    during(monkeypatch, 0, lambda: pytest.fail("nothing should be measured again"))
    again = small_study(tiny, tmp_path / "s", texts=headscope.read_texts([path]))
    assert digests(again.folder) == digests(alone.folder)


def test_other_texts_do_not_go_on_with_a_study(tiny: Model, tmp_path: Path, sample: list[str]) -> None:
    stopped(tiny, tmp_path / "s")
    with pytest.raises(HeadscopeError, match=r"The texts differ .* \(in windows 0 to 15\); give the same texts"):
        small_study(tiny, tmp_path / "s", texts=sample[1:])
    with pytest.raises(HeadscopeError, match="The texts differ"):
        small_study(tiny, tmp_path / "s", texts=sample[:1])
    assert len(checkpoints(tmp_path / "s", "shard")) == 7


def test_another_model_does_not_go_on_with_a_study(tiny: Model, minilm: Model, tmp_path: Path) -> None:
    stopped(tiny, tmp_path / "s")
    with pytest.raises(HeadscopeError, match=r"differs in model \('BertModel \w+' there, 'BertModel \w+' now\)"):
        small_study(minilm, tmp_path / "s")
    with pytest.raises(HeadscopeError, match=r"differs in length \(32 there, 48 now\)"):
        small_study(tiny, tmp_path / "s", length=48)


def test_another_number_of_threads_goes_on_with_a_study(tiny: Model, tmp_path: Path, whole: dict[str, str]) -> None:
    stopped(tiny, tmp_path / "s")
    assert digests(small_study(tiny, tmp_path / "s", threads=2).folder) == whole


def test_overwrite_starts_anew(tiny: Model, tmp_path: Path, whole: dict[str, str]) -> None:
    stopped(tiny, tmp_path / "s")
    study = small_study(tiny, tmp_path / "s", threshold=0.4, overwrite=True)
    assert study.manifest.options.threshold == 0.4
    assert digests(small_study(tiny, tmp_path / "s", overwrite=True).folder) == whole
    with pytest.raises(HeadscopeError, match="holds a finished study that differs in threshold"):
        small_study(tiny, tmp_path / "s", threshold=0.4)


def test_a_failed_first_try_leaves_nothing_in_the_way(tiny: Model, tmp_path: Path) -> None:
    with pytest.raises(HeadscopeError, match="shorter than a window"):
        small_study(tiny, tmp_path / "s", texts=["Too short."], short="drop")
    assert not (tmp_path / "s").exists()
    assert small_study(tiny, tmp_path / "s", texts=["Too short."], short="pad").windows == 1


def test_files_of_the_user_are_left_alone(tiny: Model, tmp_path: Path) -> None:
    out = tmp_path / "s"
    (out / "unfinished").mkdir(parents=True)
    mine = [out / "notes.txt", out / "unfinished" / "novel.txt", out / "unfinished" / "sum-1.safetensors"]
    for path in mine:
        path.write_text("mine")
    small_study(tiny, out, max_windows=32, overwrite=True)
    assert [path.read_text() for path in mine] == ["mine"] * 3


def test_checkpoints_of_an_older_version_are_refused_and_not_gone_on_with(tiny: Model, tmp_path: Path) -> None:
    stopped(tiny, tmp_path / "s", shard=2)
    kept = checkpoints(tmp_path / "s")
    plan = tmp_path / "s" / "unfinished" / "plan.json"
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"headscope": "0.1.0"}))
    with pytest.raises(
        HeadscopeError, match=r"differs in headscope \('0.1.0' there, '.*' now\); give the same, or give another"
    ):
        small_study(tiny, tmp_path / "s")
    assert checkpoints(tmp_path / "s") == kept
