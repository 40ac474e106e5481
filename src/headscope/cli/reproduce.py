"""headscope reproduce"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.cli.options import DEVICE, DTYPE, SEED
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    import pandas as pd

    from headscope.model.loading import Model
    from headscope.show.objects import Study

EXAMPLES = """[bold]Examples[/bold]\n
headscope reproduce wiki   [dim]the study in the folder wiki[/dim]\n
headscope reproduce --model bert-base-uncased wiki.jsonl.gz --max-windows 20000\n
headscope reproduce wiki --json - | jq '.claims[].verdict'"""

COLOURS = {"holds": "green", "holds only by distance": "yellow", "does not hold": "red", "can't be said": "dim"}


def command(
    given: Annotated[
        list[str] | None,
        typer.Argument(
            help="A study folder; with --model the texts to measure, as for headscope study.",
            metavar="FOLDER|TEXTS",
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
    field: Annotated[str, typer.Option(help="The field of .jsonl, column of .parquet or hf: with the text.")] = "text",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a study that is in --out.")] = False,
    json_file: Annotated[
        str | None, typer.Option("--json", help="Write all of it as JSON; - for standard output.", metavar="FILE")
    ] = None,
    csv_file: Annotated[
        str | None, typer.Option("--csv", help="Write the claims as CSV; - for standard output.", metavar="FILE")
    ] = None,
    device: DEVICE = "auto",
    dtype: DTYPE = "float32",
    seed: SEED = 0,
) -> None:
    """Hold the paper's claims against a model: what each says, what was measured, whether it holds."""
    loaded: Model | None = None
    if model is None:
        if not given or len(given) > 1:
            raise HeadscopeError("Name one study folder, or a model to measure with --model NAME.")
        if Path(given[0]).is_file():
            raise HeadscopeError(f"{given[0]} is no study folder; to measure texts, name a model with --model NAME.")
        from headscope.show.objects import read

        study = read(given[0])
    else:
        from headscope.corpus.texts import read_texts, sample_texts
        from headscope.folder.study_folder import claim
        from headscope.jobs.studying import study as run
        from headscope.model.loading import load

        texts = read_texts(given, lines=lines, field=field) if given else sample_texts()
        claim(out, overwrite)
        loaded = load(model, device=device, dtype=dtype, seed=seed)
        study = run(loaded, texts, out=out, overwrite=overwrite, max_windows=max_windows, seed=seed)

    from headscope.console import say
    from headscope.files import write_atomically
    from headscope.insight.claims import claims, claims_table, heading, is_paper_model
    from headscope.insight.notices import notices

    agreement, why_not = _fig9(study, loaded)
    whole: dict[str, Any] = {
        "heading": heading(study),
        "model": study.model_name,
        "texts": study.manifest.source.name,
        "windows": study.windows,
        "notices": notices(study),
        "claims": [asdict(claim) for claim in claims(study)],
        "fig9": None if agreement is None else json.loads(agreement.to_json(orient="records")),
        "fig9_left_out": why_not,
    }
    as_json, as_csv = json.dumps(whole, indent=1, ensure_ascii=False) + "\n", claims_table(study).to_csv(index=False)
    asked = [(file, content) for file, content in ((json_file, as_json), (csv_file, as_csv)) if file is not None]
    # Files come first: whoever reads along may stop reading.
    for file, content in asked:
        if file != "-":
            write_atomically(Path(file), content.encode())
    printed = [content for file, content in asked if file == "-"]
    if printed:
        print("".join(printed), end="")
        return
    _show(whole, agreement, is_paper_model(study))
    for file, _ in asked:
        say(f"Written: {file}")


def _fig9(study: Study, loaded: Model | None) -> tuple[pd.DataFrame | None, str | None]:
    """Agreement with Fig. 9, or why there is none."""
    from headscope.insight.claims import PAPER_MODEL, is_paper_model
    from headscope.insight.paper import fig9_agreement
    from headscope.model.loading import load

    if not is_paper_model(study):
        return None, f"Fig. 9 lists pairs of {PAPER_MODEL}, so only that model can be held against it."
    try:
        return fig9_agreement(loaded or load(study.model_name)), None
    except HeadscopeError as problem:
        return None, str(problem)


def _show(whole: dict[str, Any], agreement: pd.DataFrame | None, paper_model: bool) -> None:
    from rich.markup import escape
    from rich.table import Table

    from headscope.console import console as opened
    from headscope.insight.claims import NO_THRESHOLD

    console = opened()
    table = Table(show_lines=True, title=escape(whole["heading"]), title_justify="left", title_style="bold")
    for name, ratio in (("The paper says", 5), ("It holds here if", 6), ("Measured", 5), ("Verdict", 2)):
        table.add_column(name, ratio=ratio, overflow="fold")
    for claim in whole["claims"]:
        verdict = f"[{COLOURS[claim['verdict']]}]{claim['verdict']}[/]"
        depends = claim["thresholds"] not in ("", NO_THRESHOLD)
        measured = claim["measured"] + (f" (threshold: {claim['thresholds']})" if depends else "")
        table.add_row(*(escape(words) for words in (claim["paper"], claim["criterion"], measured)), verdict)
    console.print(table)
    for notice in whole["notices"]:
        console.print(notice, style="yellow", markup=False)
    verdicts = [claim["verdict"] for claim in whole["claims"]]
    found = {word: verdicts.count(verdict) for verdict, word in _COUNTED.items()}
    counted = ", ".join(f"{count} {word}" for word, count in found.items() if count)
    console.print(
        f"Of {len(verdicts)} claims: {counted}. Over {whole['windows']:,} windows of {escape(whole['texts'])}."
    )
    if not paper_model:
        console.print(
            "[dim]The paper's layers stand for those at the same depth here, counted from 0; its distances are scaled "
            "to the window. That a claim does not hold here says nothing against the paper.[/dim]"
        )
    if agreement is None:
        console.print(f"[dim]Agreement with Fig. 9 is left out: {escape(whole['fig9_left_out'])}[/dim]")
        return
    pairs = Table(title="Agreement with the high pairs of Fig. 9", title_justify="left", title_style="bold")
    for name in agreement.columns:
        pairs.add_column(name, justify="right")
    for row in agreement.itertuples(index=False):
        pairs.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row))
    console.print(pairs)


_COUNTED = {
    "holds": "hold",
    "holds only by distance": "hold only by distance",
    "does not hold": "do not",
    "can't be said": "can't be said",
}
