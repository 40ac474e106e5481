"""headscope figures"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLES = """[bold]Examples[/bold]\n
headscope figures headscope-study   [dim]all of them, into headscope-study/figures[/dim]\n
headscope figures wiki --only 7,8,atlas --layers 0,5,11 --format pdf --out paper\n
headscope figures wiki --only 2,4 --head 3\n
headscope figures wiki --findings   [dim]at the layers and heads that findings name: fig08-findings.png, ...[/dim]"""


def command(
    folder: Annotated[Path, typer.Argument(help="A study folder.", show_default=False)],
    only: Annotated[
        str | None,
        typer.Option(
            help="Figures to draw, for example 7,8,atlas: their numbers in the paper, spectrum, signal, thresholds, "
            "atlas, and of images grid; by default all.",
            metavar="N,...",
            show_default=False,
        ),
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(
            help="Layers to show, for example 1,6 or 0-3; by default the paper's, at the same depth of this model.",
            metavar="N,...",
            show_default=False,
        ),
    ] = None,
    heads: Annotated[
        str | None,
        typer.Option(
            "--heads",
            "--head",
            help="Heads to show; figures that show one head take the first.",
            metavar="N,...",
            show_default=False,
        ),
    ] = None,
    findings: Annotated[
        bool,
        typer.Option(
            "--findings", help="Draw the figures that findings refer to, at the layers and heads that they name."
        ),
    ] = False,
    map: Annotated[str, typer.Option(help="In the atlas: location or similarity.", metavar="WHAT")] = "location",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to put them; by default FOLDER/figures.", metavar="FOLDER"),
    ] = None,
    formats: Annotated[str, typer.Option("--format", help="png, svg or pdf.", metavar="NAME,...")] = "png,svg",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Draw the figures of the paper from a study folder."""
    from headscope.errors import HeadscopeError
    from headscope.garbage import without_collecting
    from headscope.options import parse_layers
    from headscope.show.helpers import Helpers

    if findings and (layers is not None or heads is not None):
        raise HeadscopeError("--findings chooses layers and heads by itself; leave out --layers and --heads.")
    choices: dict[str, Any] = {} if findings else {"map": map}
    if layers is not None:
        choices["layers"] = parse_layers(layers)
    if heads is not None:
        choices["heads"] = parse_layers(heads)
    choices |= {"only": _listed(only), "formats": _listed(formats) or (), "progress": not quiet}
    with Helpers(folder) as helpers:
        with without_collecting():
            from headscope.show import figures as figures
            from headscope.show.objects import read

        written = read(folder).figures(out, findings=findings, helpers=helpers, **choices)
    if not quiet:
        from headscope.console import say

        say(
            f"{len(written)} files in {written[0].parent}"
            if written
            else "Nothing to draw: the figures of the paper show all that the findings name."
        )


def _listed(text: str | None) -> list[str] | None:
    """`7, 8,atlas` -> 7, 8 and atlas, each once."""
    if text is None:
        return None
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
