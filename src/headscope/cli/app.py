"""The application: its verbs, and how errors reach the user."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Annotated

import click
import typer

from headscope.cli import study
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


app.command("study", epilog=study.EXAMPLES)(study.command)


def main() -> None:
    """Entry point. Bad input: one sentence and exit code 2. Ctrl-C: exit code 130."""
    try:
        app(standalone_mode=False)
    except HeadscopeError as problem:
        _stop(str(problem), 2)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _stop("stopped; what is finished is kept, and the same command goes on from there.", 130)
    except BrokenPipeError:
        sys.exit(141)


def _stop(sentence: str, code: int) -> None:
    print(f"headscope: {sentence}", file=sys.stderr)
    sys.exit(code)
