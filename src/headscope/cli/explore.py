"""headscope explore"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from headscope.cli.options import DEVICE, DTYPE
from headscope.errors import HeadscopeError

EXAMPLES = """[bold]Examples[/bold]\n
headscope explore   [dim]any text, with the built-in model[/dim]\n
headscope explore wiki   [dim]a study: its example, its sums, and any text with its model[/dim]\n
headscope explore --model bert-base-uncased --model minilm   [dim]two models side by side[/dim]\n
headscope explore wiki --port 8765 --no-browser"""


def command(
    folder: Annotated[
        Path | None,
        typer.Argument(help="A study folder; its numbers stand beside those of a text.", show_default=False),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="minilm (built in), a folder, a hub id, or random:NAME; may be given several times. "
            "By default that of the study, or minilm.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="By default any that is free.", metavar="N", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in a browser.")] = True,
    device: DEVICE = "auto",
    dtype: DTYPE = "float32",
) -> None:
    """Every head at a glance, on any text: a web page on this machine alone. Ctrl-C ends it."""
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise HeadscopeError(f"headscope explore needs {' and '.join(missing)}: pip install 'headscope[explore]'")

    from headscope.console import say
    from headscope.server.serving import bound

    listening = bound(port)

    from headscope.model.loading import load
    from headscope.server.explorer import Explorer
    from headscope.server.serving import serve
    from headscope.show.objects import read

    study = None if folder is None else read(folder)
    if study is not None:
        study.check_not_empty()
        if study.manifest.kind != "texts":
            raise HeadscopeError(f"{study.folder} is a study of images; give one of texts.")
    models = []
    for name in model or [study.model_name if study else "minilm"]:
        try:
            models.append(load(name, device=device, dtype=dtype))
        except HeadscopeError as problem:
            if model or study is None:
                raise
            say(f"Only what the study keeps can be shown; its model can't be loaded: {problem}")
    for loaded in models:
        for notice in loaded.notices:
            say(notice)
    serve(Explorer(models, study), listening, lambda address: say(f"Explorer: {address}   (Ctrl-C ends it)"), browser)
