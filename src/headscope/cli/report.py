"""headscope report"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """[bold]Examples[/bold]\n
headscope report headscope-study --open\n
headscope report wiki --out wiki.html\n
headscope report wiki --threshold 0.2   [dim]as it reads there, without a new run: wiki/report-0.20.html[/dim]"""


def command(
    folder: Annotated[Path, typer.Argument(help="A study folder.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page; by default FOLDER/report.html.", metavar="FILE")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Read the study at another threshold, 0.05 to 0.95 in steps of 0.01; shares are pooled over pairs.",
            metavar="NUMBER",
            show_default=False,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Put a study on one page that opens without a network."""
    from headscope.console import say
    from headscope.garbage import without_collecting
    from headscope.show.helpers import Helpers

    with Helpers(folder, threshold) as helpers:
        with without_collecting():
            from headscope.show.objects import read
            from headscope.show.report import write_report

        study = read(folder)
        study = study if threshold is None else study.at(threshold)
        page = write_report(study, out, progress=True, helpers=helpers)
    say(f"Report: {page}")
    if show:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
