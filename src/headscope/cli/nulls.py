"""headscope nulls"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headscope.cli.options import (
    ADDRESS,
    DEVICE,
    ENGINE,
    FIELDS,
    LINES,
    QUIET,
    SKIP_BAD,
    THREADS,
    WORKERS,
    fields_named,
)

if TYPE_CHECKING:
    from headscope.show.objects import Study

EXAMPLES = """[bold]Examples[/bold]\n
headscope nulls headscope-study   [dim]then every head has a role, or none[/dim]\n
headscope nulls wiki --max-windows 500   [dim]500 of its windows, evenly spread[/dim]\n
headscope nulls wiki articles.jsonl.gz --model ./my-model   [dim]where both were moved since[/dim]"""


def command(
    folder: Annotated[Path, typer.Argument(help="A finished study folder.", show_default=False)],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="The texts of the study, if they are no longer where it read them, or were given in Python.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="The model of the study, if it is no longer where it was.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    max_windows: Annotated[
        int | None,
        typer.Option(
            help="So many of the study's windows, evenly spread; by default all.", metavar="N", show_default=False
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            help="tokens, sentences or weights; roles take all three.", metavar="NAME,...", show_default=False
        ),
    ] = None,
    lines: LINES = False,
    field: FIELDS = "text",
    skip_bad: SKIP_BAD = False,
    device: DEVICE = "auto",
    workers: WORKERS = None,
    threads: THREADS = None,
    engine: ENGINE = "local",
    address: ADDRESS = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Measure nulls again that are there.")] = False,
    quiet: QUIET = False,
) -> None:
    """Measure the same windows where there is nothing to know, and say which heads have a role.

    Tokens shuffled, sentences shuffled, random weights: three small studies in FOLDER/nulls, which can be stopped and
    gone on with. What stands over them is learned. Roles go to FOLDER/roles.csv; figures, report, findings, compare and
    reproduce show the nulls from then on.
    """
    from headscope.corpus.texts import read_texts
    from headscope.jobs.null_studies import nulls

    given = read_texts(texts, lines=lines, field=fields_named(field), skip_bad=skip_bad) if texts else None
    chosen = None if only is None else [name.strip() for name in only.split(",")]
    finished = nulls(
        folder,
        model,
        given,
        max_windows=max_windows,
        only=chosen,  # type: ignore[arg-type]
        overwrite=overwrite,
        progress=not quiet,
        device=device,
        engine=engine,
        workers=workers,
        threads=threads,
        address=address,
    )
    if not quiet:
        show_roles(finished)


def show_roles(study: Study) -> None:
    """How many heads have which role, layer by layer, and what shows it."""
    from rich.markup import escape

    from headscope.console import console as opened
    from headscope.insight.roles import rules_of, summary
    from headscope.show.role_tables import by_layer
    from headscope.wording import counted

    console = opened()
    told = ", ".join(f"{null} {one.windows:,}" for null, one in study.nulls.items())
    console.print(f"Null studies of {escape(study.model_name)}, windows of each: {told}")
    table = study.roles
    if table is None:
        console.print("Roles take all three nulls; run headscope nulls again without --only.")
        return
    console.print(summary(study, table))
    shown = by_layer(study)
    if shown is not None:
        console.print(shown)
        for role, rule in rules_of(table["role"]).items():
            console.print(f"[dim]{role}: {escape(rule)}[/dim]")
    short = int((table["falls_short"] != "").sum())
    if short:
        console.print(
            f"{counted(short, 'head')} more {'meets' if short == 1 else 'meet'} the bounds of a rule, but "
            f"{'stands' if short == 1 else 'stand'} over no null beyond doubt: column falls_short of roles.csv."
        )
    console.print(f"Roles: {escape(str(study.folder / 'roles.csv'))}", soft_wrap=True)
