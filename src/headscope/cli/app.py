"""The application: its verbs, and how errors reach the user."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib import metadata
from types import ModuleType
from typing import Annotated, Any, NoReturn, get_args, get_type_hints

import typer

from headscope.arguments import nearest
from headscope.cli import (
    ablate,
    compare,
    doctor,
    explore,
    figures,
    inspect,
    merge,
    nulls,
    report,
    reproduce,
    segment,
    study,
    verify,
)
from headscope.cli.streams import LOST, LostOutput, Streams
from headscope.console import say
from headscope.errors import HeadscopeError

UsageError: Any = typer.BadParameter.__base__
"""Of what typer is built on, which it carries under another name from version to version."""

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
    """Bad input, a full disk, no memory: one sentence and exit code 2. A verb that finds something wrong returns its
    code."""

    @functools.wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            code = command(*args, **kwargs)
        except HeadscopeError as problem:
            _end(problem.typed, 2)
        except OSError as problem:
            where = f"{problem.filename} can't be read or written" if problem.filename else "A file can't be written"
            _end(str(HeadscopeError(f"{where}: {problem.strerror or problem}.")), 2)
        except (MemoryError, RuntimeError) as problem:
            if not _lacks_memory(problem):
                raise
            _end("there is not enough memory; a smaller --batch-size or --length, or fewer --workers, need less.", 2)
        except KeyboardInterrupt:
            _end(
                "stopped; whole shards (of 256 windows) that are finished are kept, and the same command goes on "
                "from there.",
                130,
            )
        raise typer.Exit(code or 0)

    return guarded


def _end(sentence: str, code: int) -> NoReturn:
    say(f"headscope: {sentence}", error=True)
    raise typer.Exit(code) from None


def _lacks_memory(problem: Exception) -> bool:
    """Torch has errors of its own: some say so by their name, some in words."""
    told = f"{type(problem).__name__} {problem}"
    return isinstance(problem, MemoryError) or any(sign in told for sign in ("OutOfMemory", "allocate memory"))


def _untype_flags(command: Callable[..., Any]) -> None:
    """A flag takes no value, so the help is to name no type after it."""
    command.__annotations__ = get_type_hints(command, include_extras=True)
    for hint in command.__annotations__.values():
        kind, *about = get_args(hint) or (hint,)
        if bool in (kind, *get_args(kind)):
            for info in about:
                info.metavar = ""


def _verb(name: str, module: ModuleType) -> None:
    _untype_flags(module.command)
    app.command(name, epilog=module.EXAMPLES)(_guarded(module.command))


_verb("study", study)
_verb("nulls", nulls)
_verb("inspect", inspect)
_verb("explore", explore)
_verb("segment", segment)
_verb("ablate", ablate)
_verb("compare", compare)
_verb("doctor", doctor)
_verb("figures", figures)
_verb("report", report)
_verb("reproduce", reproduce)
_verb("merge", merge)
_verb("verify", verify)


def main() -> None:
    with Streams() as streams:
        try:
            code = _run()
            streams.finish()
        except LostOutput as lost:
            code = lost.code
            if code == LOST:
                say(f"headscope: standard output can't be written to: {lost.reason}.", error=True)
        if streams.error_lost:
            code = code or LOST
    sys.exit(code)


def _run() -> int:
    """The exit code."""
    try:
        return app(prog_name="headscope", standalone_mode=False) or 0
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except typer.Abort:
        return 1
    except UsageError as problem:
        return _misused(problem)


def _misused(problem: Any) -> int:
    """One sentence instead of a box; the exit code."""
    if sys.argv[1:]:  # otherwise typer has shown the help
        say(f"headscope: {_usage_sentence(problem)}", error=True)
    return int(problem.exit_code)


def _usage_sentence(problem: Any) -> str:
    """What was typed wrongly, and the nearest that there is."""
    mistyped = getattr(problem, "option_name", None)
    if mistyped is None or problem.ctx is None:
        return str(HeadscopeError(problem.format_message()))
    options = [name for item in problem.ctx.command.get_params(problem.ctx) for name in item.opts]
    found = nearest(mistyped, options)
    verb = problem.ctx.command_path
    then = f"the nearest is {found}" if found else f"{verb} --help shows those there are"
    return str(HeadscopeError(f"{mistyped} is no option of {verb}; {then}."))
