"""The application: its verbs, and how errors reach the user."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib import metadata
from types import ModuleType
from typing import Annotated, Any

import typer

from headscope.cli import compare, doctor, figures, inspect, merge, report, reproduce, study, verify
from headscope.errors import HeadscopeError

app = typer.Typer(
    name="headscope",
    help="Measure what every attention head of a transformer puts out, over a whole corpus.",
    epilog="Start with: headscope study   (built-in model, sample texts, no download)",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"headscope {metadata.version('headscope')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Without this, typer would make the only verb the whole command."""


def _guarded(command: Callable[..., Any]) -> Callable[..., None]:
    """Bad input: one sentence and exit code 2. Ctrl-C: 130. A verb that finds something wrong returns its code."""

    @functools.wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            code = command(*args, **kwargs)
        except HeadscopeError as problem:
            print(f"headscope: {problem}", file=sys.stderr)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            print(
                "headscope: stopped; what is finished is kept, and the same command goes on from there.",
                file=sys.stderr,
            )
            raise typer.Exit(130) from None
        raise typer.Exit(code or 0)

    return guarded


def _verb(name: str, module: ModuleType) -> None:
    app.command(name, epilog=module.EXAMPLES)(_guarded(module.command))


_verb("study", study)
_verb("inspect", inspect)
_verb("compare", compare)
_verb("doctor", doctor)
_verb("figures", figures)
_verb("report", report)
_verb("reproduce", reproduce)
_verb("merge", merge)
_verb("verify", verify)


def main() -> None:
    app()
