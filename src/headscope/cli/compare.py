"""headscope compare"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLES = """[bold]Examples[/bold]\n
headscope compare minilm-study mpnet-study\n
headscope compare base tuned --out tuned.html\n
headscope compare wiki-bert wiki-gpt2 wiki-random --out models.html"""

LINEAGE = "Head h of one model is head h of the other only if one was made from the other; no hash can tell that."


def command(
    folders: Annotated[list[Path], typer.Argument(help="Two or more study folders.", metavar="FOLDER FOLDER...")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="PAGE.html",
            help="The page; beside it go the table as .csv and .parquet, all of it as .json, and differences head by "
            "head as -differences.csv.",
        ),
    ] = Path("compare.html"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is at --out.")] = False,
) -> None:
    """Put studies side by side: what differs, the same quantities by relative depth, the paper's claims, heads that
    match. Two studies of one model, or of models of the same shape, are compared head by head as well: the second less
    the first, with intervals."""
    if out.suffix != ".html":
        raise HeadscopeError(f"--out {out} must end with .html; the tables go beside it as .csv, .parquet and .json.")

    from rich.markup import escape

    from headscope.console import console as opened
    from headscope.insight.differing import shortened
    from headscope.insight.notices import notices
    from headscope.show.claims import matrix_of
    from headscope.show.comparison import compare, files_of
    from headscope.show.role_tables import by_model

    comparison = compare(*folders)
    taken = [path for path in files_of(out) if path.exists()]
    if taken and not overwrite:
        raise HeadscopeError(f"{taken[0]} exists; give another --out, or --overwrite.")
    written = comparison.save(out)
    console = opened()
    console.print(f"[bold]{escape(comparison.heading)}[/bold]")
    for what, *values in comparison.what_differs.to_numpy().tolist():
        told = ", ".join(map(shortened, values))
        console.print(f"  [dim]{escape(what)}: {escape(told)}[/dim]", soft_wrap=True)
    console.print()
    if comparison.head_by_head is not None:
        console.print("[bold]Head by head[/bold]\n")
        _bullets(console, comparison.head_by_head.sentences)
        if not comparison.same_model:
            console.print(f"[dim]{LINEAGE}[/dim]", soft_wrap=True)
        console.print()
    if comparison.of_texts:
        console.print("[bold]The paper's claims: does each hold?[/bold]\n")
        for part in matrix_of(console, comparison):
            console.print(part)
        console.print()
    if len(comparison.roles):
        console.print("[bold]Heads with a role (early, middle, late layers)[/bold]\n")
        console.print(by_model(comparison))
        console.print()
    _bullets(console, comparison.common)
    for name, study in comparison.studies.items():
        for notice in notices(study):
            console.print(f"[yellow]{escape(name)}: {escape(notice)}[/yellow]", soft_wrap=True)
    if not comparison.same_model and not comparison.same_texts:
        console.print("[dim]Both models and texts differ: a difference may be due to either.[/dim]", soft_wrap=True)
    beside = ", ".join(path.name for path in written[1:])
    console.print(f"Page: {escape(str(out))}; beside it {escape(beside)}", soft_wrap=True)


def _bullets(console: Console, sentences: list[str]) -> None:
    from rich.markup import escape

    for sentence in sentences:
        console.print(f"  • {escape(sentence)}", soft_wrap=True)
