"""headscope merge"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """[bold]Examples[/bold]\n
headscope merge parts/* --out wiki   [dim]parts made with headscope study --shard 1/16, 2/16, ...[/dim]\n
headscope merge english german --out both   [dim]studies of different texts[/dim]"""


def command(
    folders: Annotated[list[Path], typer.Argument(help="Study folders: all parts of one study, or whole studies.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The study folder to write.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a study that is in --out.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary.")] = False,
) -> None:
    """Add up the parts of a study, or several studies of one model."""
    from headscope.jobs.merging import merge

    merged = merge(folders, out=out, overwrite=overwrite)
    if not quiet:
        from headscope.console import say

        say(f"{merged}, merged from {len(folders)} folders")
