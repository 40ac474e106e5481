"""Messages name arguments in Python and options on the command line, from one text."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headscope
from headscope.errors import HeadscopeError
from headscope.folder.array_file import AbsentError
from headscope.speaking import either, for_commands, for_python, option

ROOT = Path(headscope.__file__).parent


def test_an_error_speaks_python_and_the_command_line_what_is_typed():
    problem = HeadscopeError(f"give {option('max_windows', 8)}, or {option('overwrite', True)}.")
    assert str(problem) == "give max_windows=8, or overwrite=True."
    assert problem.typed == "give --max-windows 8, or --overwrite."
    assert str(AbsentError(option("threshold"))) == "threshold"


def test_an_error_keeps_both_on_its_way_through_processes_and_other_errors():
    problem = pickle.loads(pickle.dumps(HeadscopeError(option("short", "pad"))))
    assert (str(problem), problem.typed) == ("short='pad'", "--short pad")
    around = HeadscopeError(f"It fails ({problem.sentence}).")
    assert (str(around), around.typed) == ("It fails (short='pad').", "It fails (--short pad).")


@given(st.text(), st.text(), st.text())
def test_whatever_is_said_both_ways_no_mark_is_left(typed, python, around):
    marks = dict.fromkeys(map(ord, "⟦¦⟧"))
    around = around.translate(marks)
    message = around + either(typed, python) + around
    assert for_commands(message) == around + typed.translate(marks) + around
    assert for_python(message) == around + python.translate(marks) + around


@pytest.mark.parametrize(
    ("ask", "python", "typed"),
    [
        (lambda: headscope.Options(threshold=2), "threshold is 2;", "--threshold is 2;"),
        (lambda: headscope.Options(line_threshold=-1), "line_threshold is -1;", "--line-threshold is -1;"),
        (lambda: headscope.Options(batch_size=0), "batch_size is 0;", "--batch-size is 0;"),
        (lambda: headscope.study(shard="5/3"), "shard is '5/3'", "--shard is '5/3'"),
        (lambda: headscope.load("minilm", dtype="int8"), "dtype is 'int8'", "--dtype is 'int8'"),
    ],
)
def test_arguments_are_named_as_they_are_given(ask, python, typed):
    with pytest.raises(HeadscopeError) as caught:
        ask()
    assert str(caught.value).startswith(python)
    assert caught.value.typed.startswith(typed)


def test_no_message_of_the_library_writes_an_option_by_hand():
    """Outside of `cli`, they go through `option`; what belongs to other programs is theirs."""
    others = (
        "ray start --head",
        "pip install --no-deps",
        "doctor --all",
        "--max-windows",
        "--top 0",
        "--field",
        "--no-loss",
    )
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        if "cli" in path.parts or path.name == "speaking.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " --" in f" {node.value}":
                words = [word for word in node.value.split() if word.startswith("--") and word[2:3].isalpha()]
                if words and not any(other in node.value for other in others):
                    found.append((path.name, node.value))
    assert not found
