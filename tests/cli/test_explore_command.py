"""headscope explore: what it prints, how it ends, what it refuses."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import httpx
import pytest
from typer.testing import CliRunner

from headscope.cli.app import app


def test_it_prints_its_address_answers_there_alone_and_ends_on_ctrl_c(tiny_folder):
    command = [sys.executable, "-m", "headscope", "explore", "--model", str(tiny_folder), "--no-browser"]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        line = running.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}", line)[0]
        answer = httpx.get(address, timeout=20)
        assert answer.status_code == 200
        assert "headscope explore" in answer.text
        assert httpx.get(address.split("?")[0], timeout=20).status_code == 403
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 0
        assert running.stderr.read() == ""
    finally:
        running.kill()
        running.wait()


def test_without_the_extra_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("headscope.cli.explore.find_spec", lambda name: None)
    told = CliRunner().invoke(app, ["explore"])
    assert told.exit_code == 2
    assert "pip install 'headscope[explore]'" in told.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no/such/folder"], "There is no study folder no/such/folder"),
        (["--model", "./no-such-model"], "no-such-model"),
        (["--port", "99999"], "65535"),
    ],
)
def test_what_can_not_be_done_is_said_with_exit_code_2(arguments, sentence):
    told = CliRunner().invoke(app, ["explore", "--no-browser", *arguments])
    assert told.exit_code == 2
    assert sentence in told.output
