"""What is written one way on the command line and another in Python: `--max-windows 8` and `max_windows=8`.

A message holds both, between marks; whoever shows it chooses. So there is one text of each message.
"""

from __future__ import annotations

import re
from typing import Any

_MARKED = re.compile("⟦([^⟦¦⟧]*)¦([^⟦¦⟧]*)⟧")
_NO_MARKS = str.maketrans("", "", "⟦¦⟧")


def either(typed: str, python: str) -> str:
    """What is typed at a command line, and what stands for it in Python.

    >>> for_python(f"run {either('headscope nulls wiki', 'headscope.nulls(...)')}")
    'run headscope.nulls(...)'
    """
    return f"⟦{typed.translate(_NO_MARKS)}¦{python.translate(_NO_MARKS)}⟧"


def option(name: str, value: Any = None) -> str:
    """An option of a command, which is an argument in Python, or one with a value; `...` is any.

    >>> message = f"{option('max_windows')}, {option('length', 64)}, {option('overwrite', True)}, {option('out', ...)}"
    >>> for_commands(message)
    '--max-windows, --length 64, --overwrite, --out'
    >>> for_python(message)
    'max_windows, length=64, overwrite=True, out=...'
    """
    typed = "--" + name.replace("_", "-")
    if value is None:
        return either(typed, name)
    if value is ...:
        return either(typed, f"{name}=...")
    return either(typed if value is True else f"{typed} {value}", f"{name}={value!r}")


SAME = either("the same command", "the same call")
ELSEWHERE = f"give another {option('out', ...)}, or {option('overwrite', True)}"


def for_commands(message: str) -> str:
    return _MARKED.sub(r"\1", message)


def for_python(message: str) -> str:
    return _MARKED.sub(r"\2", message)
