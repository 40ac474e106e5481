"""Names that were mistyped: the nearest of those there are is told."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar, cast

from headscope.errors import HeadscopeError

Function = TypeVar("Function", bound=Callable[..., Any])


class UnknownArgument(HeadscopeError, TypeError):
    """An argument that a function does not have."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like another; None where none is.

    >>> nearest("treshold", ["threads", "threshold", "line_threshold"])
    'threshold'
    """
    return next(iter(get_close_matches(name, sorted(known), n=1)), None)


def naming_typos(also: Iterable[str] = ()) -> Callable[[Function], Function]:
    """Makes a function name the nearest argument where one is given that it does not have. also: those that it takes
    beside the ones in its signature."""

    def decorate(function: Function) -> Function:
        by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        own = [item.name for item in inspect.signature(function).parameters.values() if item.kind in by_name]
        known = {*own, *also}

        @wraps(function)
        def checked(*given: Any, **named: Any) -> Any:
            for name in named:
                if name not in known:
                    found = nearest(name, known)
                    called = f"headscope.{function.__name__}"
                    then = f"the nearest is {found}" if found else f"help({called}) shows those there are"
                    raise UnknownArgument(f"{called} has no argument {name}; {then}.")
            return function(*given, **named)

        return cast(Function, checked)

    return decorate
