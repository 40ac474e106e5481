"""Calling the command line without a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headscope import cli


@pytest.fixture
def call(monkeypatch, capsys):
    """Inside this process, which is faster: (exit code, standard output, standard error)."""

    def calling(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["headscope", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        told = capsys.readouterr()
        return code, told.out, told.err

    return calling
