"""headscope report"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """[bold]Examples[/bold]\n
headscope report headscope-study --open\n
headscope report wiki --out wiki.html"""


def command(
    folder: Annotated[Path, typer.Argument(help="A study folder.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page; by default FOLDER/report.html.", metavar="FILE")
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Put a study on one page that opens without a network."""
    from headscope.console import say
    from headscope.show.objects import read
    from headscope.show.report import write_report

    page = write_report(read(folder), out, progress=True)
    say(f"Report: {page}")
    if show:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
