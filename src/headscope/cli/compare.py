"""headscope compare"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headscope.errors import HeadscopeError

EXAMPLES = """[bold]Examples[/bold]\n
headscope compare minilm-study mpnet-study\n
headscope compare wiki-bert wiki-gpt2 wiki-random --out models.html"""


def command(
    folders: Annotated[list[Path], typer.Argument(help="Two or more study folders.", metavar="FOLDER FOLDER...")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The page; the table goes beside it, as .csv and .parquet.")
    ] = Path("compare.html"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is at --out.")] = False,
) -> None:
    """Put models side by side: the same quantities by relative depth, the paper's claims, heads that match."""
    if out.suffix != ".html":
        raise HeadscopeError(f"--out {out} must end with .html; the table goes beside it as .csv and .parquet.")

    from rich.markup import escape

    from headscope.console import console as opened
    from headscope.insight.notices import notices
    from headscope.show.claims import matrix_of
    from headscope.show.comparison import compare
    from headscope.show.role_tables import by_model

    comparison = compare(folders)
    taken = [path for path in (out, out.with_suffix(".csv"), out.with_suffix(".parquet")) if path.exists()]
    if taken and not overwrite:
        raise HeadscopeError(f"{taken[0]} exists; give another --out, or --overwrite.")
    comparison.save(out)
    console = opened()
    if comparison.of_texts:
        console.print("[bold]The paper's claims: does each hold?[/bold]\n")
        for part in matrix_of(console, comparison):
            console.print(part)
        console.print()
    if len(comparison.roles):
        console.print("[bold]Heads with a role (early, middle, late layers)[/bold]\n")
        console.print(by_model(comparison))
        console.print()
    for sentence in comparison.sentences:
        console.print(f"  • {escape(sentence)}", soft_wrap=True)
    for name, study in comparison.studies.items():
        for notice in notices(study):
            console.print(f"[yellow]{escape(name)}: {escape(notice)}[/yellow]", soft_wrap=True)
    if not comparison.same_texts:
        console.print("[dim]The studies are of different texts: differences may be due to them.[/dim]", soft_wrap=True)
    console.print(f"Page: {escape(str(out))}, table beside it as .csv and .parquet", soft_wrap=True)
