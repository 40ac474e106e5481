"""headscope reproduce"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.cli.options import DEVICE, DTYPE, FIELDS, SEED, fields_named
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    import pandas as pd

    from headscope.folder.study_folder import StudyFolder
    from headscope.insight.comparing import Compared
    from headscope.model.loading import Model

EXAMPLES = """[bold]Examples[/bold]\n
headscope reproduce wiki   [dim]one study; writes wiki/claims.json[/dim]\n
headscope reproduce wiki --full   [dim]in the paper's words, every criterion[/dim]\n
headscope reproduce wiki other   [dim]which claim holds in which model[/dim]\n
headscope reproduce --model bert-base-uncased wiki.jsonl.gz\n
headscope reproduce wiki --json - | jq '.claims[].verdict'"""

SCALED = (
    "The paper's layers stand for those at the same depth here, counted from 0; its distances are scaled to the "
    "window. That a claim does not hold here says nothing against the paper."
)


def command(
    given: Annotated[
        list[str] | None,
        typer.Argument(
            help="A study folder, or several; with --model the texts to measure, as for headscope study.",
            metavar="FOLDER...|TEXTS",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Measure this model first.", metavar="NAME")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The study folder, with --model.")] = Path(
        "headscope-reproduce"
    ),
    max_windows: Annotated[int | None, typer.Option(help="Stop after this many windows.", metavar="N")] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Text files hold one text a line.")] = False,
    field: FIELDS = "text",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a study that is in --out.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Show the paper's sentences, the criteria and the thresholds too.")
    ] = False,
    json_file: Annotated[
        str | None, typer.Option("--json", help="Write all of it as JSON; - for standard output.", metavar="FILE")
    ] = None,
    csv_file: Annotated[
        str | None,
        typer.Option("--csv", help="Write a row per model and claim as CSV; - for standard output.", metavar="FILE"),
    ] = None,
    device: DEVICE = "auto",
    dtype: DTYPE = "float32",
    seed: SEED = 0,
) -> None:
    """Hold the paper's claims against a model, or several: whether each holds, and what decides it."""
    loaded: Model | None = None
    if model is None:
        studies = _read(given or [])
    else:
        from headscope.corpus.texts import read_texts, sample_texts
        from headscope.folder.study_folder import claim
        from headscope.jobs.studying import study as run
        from headscope.model.loading import load

        texts = read_texts(given, lines=lines, field=fields_named(field)) if given else sample_texts()
        claim(out, overwrite)
        loaded = load(model, device=device, dtype=dtype, seed=seed)
        studies = [run(loaded, texts, out=out, overwrite=overwrite, max_windows=max_windows, seed=seed)]

    from headscope.console import say
    from headscope.files import write_atomically
    from headscope.insight.claims import claims_table
    from headscope.insight.comparing import Compared, side_by_side

    compared = Compared(side_by_side(studies))
    alone = studies[0] if len(studies) == 1 else None
    agreement, why_not = (None, None) if alone is None else _fig9(alone, loaded)
    facts = compared.claims_facts if alone is None else _facts(alone, compared, agreement, why_not)
    as_json = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
    as_csv = claims_table(compared.judged).to_csv(index=False)
    asked = [(file, content) for file, content in ((json_file, as_json), (csv_file, as_csv)) if file is not None]
    # Files come first: whoever reads along may stop reading.
    for file, content in asked:
        if file != "-":
            write_atomically(Path(file), content.encode())
    printed = [content for file, content in asked if file == "-"]
    if printed:
        print("".join(printed), end="")
        return
    if alone is None:
        _show_matrix(compared, full)
    else:
        kept = _keep(alone, as_json)
        _show(alone, compared, facts, agreement, full)
        say(kept)
    for file, _ in asked:
        say(f"Written: {file}")


def _read(folders: list[str]) -> list[StudyFolder]:
    from headscope.folder.study_folder import StudyFolder

    if not folders:
        raise HeadscopeError("Name a study folder, or several, or a model to measure with --model NAME.")
    for folder in folders:
        if Path(folder).is_file():
            raise HeadscopeError(f"{folder} is no study folder; to measure texts, name a model with --model NAME.")
    return [StudyFolder(folder) for folder in folders]


def _fig9(study: StudyFolder, loaded: Model | None) -> tuple[pd.DataFrame | None, str | None]:
    """Agreement with Fig. 9, or why there is none."""
    from headscope.insight.claims import PAPER_MODEL, is_paper_model
    from headscope.insight.paper import fig9_agreement
    from headscope.model.loading import load

    if not is_paper_model(study):
        return None, f"Fig. 9 lists pairs of {PAPER_MODEL}, so only that model can be held against it."
    try:
        return fig9_agreement(loaded or load(study.model_name)), None
    except HeadscopeError as problem:
        return None, problem.typed


def _facts(
    study: StudyFolder, compared: Compared, agreement: pd.DataFrame | None, why_not: str | None
) -> dict[str, Any]:
    """What there is to say of one study."""
    from headscope.insight.claims import claims_facts

    (judged,) = compared.judged.values()
    return {
        **claims_facts(study, judged),
        "fig9": None if agreement is None else json.loads(agreement.to_json(orient="records")),
        "fig9_left_out": why_not,
    }


def _keep(study: StudyFolder, content: str) -> str:
    """Write the claims into the folder of the study; a sentence says whether that could be done."""
    from headscope.files import write_atomically
    from headscope.insight.claims import CLAIMS_FILE

    path = study.folder / CLAIMS_FILE
    try:
        write_atomically(path, content.encode())
    except HeadscopeError:
        return f"{path} can't be written; the claims are not kept there."
    return f"Written: {path}"


def _show(
    study: StudyFolder, compared: Compared, facts: dict[str, Any], agreement: pd.DataFrame | None, full: bool
) -> None:
    from rich.markup import escape
    from rich.table import Table

    from headscope.console import console as opened
    from headscope.insight.claims import is_paper_model
    from headscope.insight.verdicts import counted_verdicts
    from headscope.show.claims import table_of
    from headscope.wording import counted

    console = opened()
    (judged,) = compared.judged.values()
    verdicts = counted_verdicts([claim.verdict for claim in judged])
    console.print(f"[bold]{escape(facts['heading'])}[/bold]")
    over = f"{counted(study.windows, 'window')} of {escape(facts['texts'])}"
    console.print(f"Of {len(judged)} claims: {verdicts}. Over {over}.\n")
    console.print(table_of(console, judged, full=full))
    console.print()
    for notice in facts["notices"]:
        console.print(notice, style="yellow", markup=False)
    if not full:
        console.print("[dim]--full adds the paper's sentences, the criteria in full and the thresholds.[/dim]")
    if not is_paper_model(study):
        console.print(f"[dim]{SCALED}[/dim]")
    if agreement is None:
        console.print(f"[dim]Agreement with Fig. 9 is left out: {escape(facts['fig9_left_out'])}[/dim]")
        return
    pairs = Table(title="Agreement with the high pairs of Fig. 9", title_justify="left", title_style="bold")
    for name in agreement.columns:
        pairs.add_column(name, justify="right")
    for row in agreement.itertuples(index=False):
        pairs.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row))
    console.print(pairs)


def _show_matrix(compared: Compared, full: bool) -> None:
    from rich.markup import escape
    from rich.table import Table

    from headscope.console import console as opened
    from headscope.insight.claims import PAPER_MODEL
    from headscope.insight.notices import notices
    from headscope.show.claims import matrix_of, table_of

    console = opened()
    console.print(f"[bold]The paper's claims about {PAPER_MODEL}, held against {len(compared.models)} models[/bold]\n")
    for part in matrix_of(console, compared):
        console.print(part)
    console.print()
    sentences = Table.grid(padding=(0, 1, 0, 0))
    for sentence in compared.claims_in_words:
        sentences.add_row("•", escape(sentence))
    console.print(sentences)
    console.print()
    for name, study in compared.studies.items():
        for notice in notices(study):
            console.print(f"[yellow]{escape(name)}: {escape(notice)}[/yellow]")
    if not compared.same_texts:
        console.print("[dim]The studies are of different texts: differences may be due to them.[/dim]")
    console.print(f"[dim]{SCALED}[/dim]")
    if not full:
        console.print("[dim]--full adds what decides each claim in each model.[/dim]")
        return
    for name, judged in compared.judged.items():
        console.print(f"\n[bold]{escape(name)}[/bold]\n")
        console.print(table_of(console, judged, full=True))
