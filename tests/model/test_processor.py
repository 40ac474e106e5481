"""A processor that says more than it can do ends no study."""

from __future__ import annotations

import os

import pytest

from headscope.model import processor
from headscope.model.processor import LIMIT


@pytest.mark.parametrize(
    ("says", "ended", "limit"), [(True, True, "AVX512_CORE_BF16"), (True, False, None), (False, True, None)]
)
def test_tiles_are_left_alone_only_where_they_end_a_process(says, ended, limit, monkeypatch):
    monkeypatch.delenv(LIMIT, raising=False)
    monkeypatch.setattr(processor, "_says_tiles", lambda: says)
    monkeypatch.setattr(processor, "_is_ended", lambda: ended)
    processor.keep_off_tiles.__wrapped__()
    assert os.environ.get(LIMIT) == limit


def test_what_the_user_set_stays(monkeypatch):
    monkeypatch.setenv(LIMIT, "AVX2")
    monkeypatch.setattr(processor, "_is_ended", lambda: True)
    processor.keep_off_tiles.__wrapped__()
    assert os.environ[LIMIT] == "AVX2"


@pytest.mark.parametrize(("code", "ended"), [("", False), ("import os; os.abort()", True)])
def test_a_process_that_is_ended_is_told_from_one_that_ends(code, ended, monkeypatch):
    monkeypatch.setattr(processor, "_TRY", code)
    assert processor._is_ended() == ended
