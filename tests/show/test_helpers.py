"""Helpers: other processes that draw. With them and without, the same is drawn, and the same said where it can't be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import headscope
from headscope.errors import HeadscopeError
from headscope.show import figures, helpers
from headscope.show.helpers import Helpers
from headscope.show.objects import Study
from headscope.show.report import page

FEW = ["3", "7", "13"]


@pytest.fixture(scope="module")
def study(tmp_path_factory, tiny, sample) -> Study:
    out = tmp_path_factory.mktemp("helped") / "study"
    return headscope.study(tiny, sample[:2], out=out, length=32, max_windows=8, progress=False)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(helpers, "_cores", lambda: 2)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_two_processes_write_the_same_files_as_one(study, tmp_path):
    alone = figures.save_all(study, tmp_path / "one", only=FEW, progress=False)
    with Helpers(study.folder) as two:
        helped = figures.save_all(study, tmp_path / "two", only=FEW, progress=False, helpers=two)
    assert [path.name for path in helped] == [path.name for path in alone]
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_the_page_is_the_same(study, monkeypatch):
    monkeypatch.setattr(figures, "drawable", lambda study: FEW)
    for threshold in (None, 0.2):
        shown = study if threshold is None else study.at(threshold)
        with Helpers(study.folder, threshold) as two:
            helped = page(shown, helpers=two)
        assert helped == page(shown)


def test_jobs_come_back_in_their_order(study):
    """A round of jobs takes a while; the helper is there by then."""
    done = []
    with Helpers(study.folder) as two:
        for _ in range(2):
            two.begin(study, [(figures.shown, (number,)) for number in FEW * 40], lambda: done.append(1))
            time.sleep(3)
            got = two.finish()
            assert [str(one) for one in got] == [str(figures.shown(study, number)) for number in FEW * 40]
    assert len(done) == 240


@pytest.mark.parametrize("executable", ["/nowhere/python", "/bin/false", "/bin/cat"])
def test_without_helpers_all_is_done_here(study, tmp_path, monkeypatch, executable):
    """One can't be started, one ends at once, one answers nonsense."""
    monkeypatch.setattr(sys, "executable", executable)
    with Helpers(study.folder) as none:
        written = figures.save_all(study, tmp_path, only=FEW, formats=["png"], progress=False, helpers=none)
    assert [path.name for path in written] == ["fig03.png", "fig07.png", "fig13.png"]


def test_an_error_is_the_same(study, tmp_path):
    with pytest.raises(HeadscopeError) as alone:
        figures.save_all(study, tmp_path, only=FEW, progress=False, layers=[99])
    with Helpers(study.folder) as two, pytest.raises(HeadscopeError) as helped:
        figures.save_all(study, tmp_path, only=FEW, progress=False, layers=[99], helpers=two)
    assert str(helped.value) == str(alone.value)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize("after", [0, 1.5, 3.5])
def test_an_interrupt_ends_all_processes_and_is_told_in_a_sentence(study, tmp_path, after):
    command = [sys.executable, "-m", "headscope", "figures", str(study.folder), "--out", str(tmp_path / "f")]
    mark = f"MARK={tmp_path}"
    environment = {**os.environ, "MARK": str(tmp_path)}
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment)
    until = time.monotonic() + 30
    while helpers._cores() > 1 and len(with_environment(mark)) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(after)
    running.send_signal(signal.SIGINT)
    told = running.communicate(timeout=60)[1]
    assert "Traceback" not in told
    if running.returncode:
        assert (running.returncode, "stopped" in told) == (130, True)
    assert not with_environment(mark)


def with_environment(mark: str) -> list[str]:
    """Processes that have something in their environment, as those that they start have."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
    return found
