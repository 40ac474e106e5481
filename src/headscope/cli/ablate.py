"""headscope ablate"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headscope.cli.options import (
    ADDRESS,
    DEVICE,
    DTYPE,
    ENGINE,
    FIELD,
    LENGTH,
    LINES,
    MODEL_OR_THAT_OF_STUDY,
    QUIET,
    SAMPLE,
    SEED,
    SHORT,
    SKIP_BAD,
    STACK,
    THREADS,
    WINDOWS,
    WORKERS,
    model_or_that_of,
)
from headscope.garbage import without_collecting

if TYPE_CHECKING:
    from headscope.show.ablation import Ablation

EXAMPLES = """[bold]Examples[/bold]\n
headscope ablate wiki.jsonl.gz --model gpt2 --out ablation --max-windows 200\n
headscope ablate wiki.jsonl.gz --study wiki   [dim]held against the study, into wiki/ablation[/dim]\n
headscope ablate wiki.jsonl.gz --model gpt2 --out ablation --order importance --order measure:focal_share\n
headscope ablate notes/ --model ./my-model --heads 3:1,5:7   [dim]a set at once; --only keeps one[/dim]"""


def command(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text files, .jsonl, .json, .csv, .tsv, .parquet (any of them .gz), folders, hf:DATASET; - for "
            "standard input with --by zero. None: the built-in sample.",
            show_default=False,
        ),
    ] = None,
    model: MODEL_OR_THAT_OF_STUDY = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The ablation folder; by default headscope-ablation, or with --study the folder ablation in it.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            help="What takes the place of a head's output: its mean over the corpus, zero, or shuffle (its output on "
            "another window).",
            metavar="HOW",
        ),
    ] = "mean",
    heads: Annotated[
        str | None,
        typer.Option(help="Silence this set at once, for example 3:1,5:7 (layer:head).", metavar="L:H,..."),
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Keep this set and silence all other heads.", metavar="L:H,...")
    ] = None,
    order: Annotated[
        list[str] | None,
        typer.Option(
            help="Remove more and more heads: importance (least first), measure:COLUMN of --study (lowest first; "
            "measure:-COLUMN highest first), random. May be given several times.",
            metavar="ORDER",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of a curve from no head to none left.", metavar="N")] = 12,
    random_orders: Annotated[int, typer.Option(help="Random orders beside each curve.", metavar="N")] = 5,
    study: Annotated[
        Path | None,
        typer.Option(
            help="A study of the same model: which of its measures tell what a head is worth?", show_default=False
        ),
    ] = None,
    loss: Annotated[
        bool | None,
        typer.Option(
            "--loss/--no-loss",
            help="Demand the loss, or leave it out; by default it is taken where there is a language-model head.",
            show_default=False,
        ),
    ] = None,
    length: LENGTH = 128,
    windows: WINDOWS = "all",
    short: SHORT = "auto",
    max_windows: Annotated[int | None, typer.Option(help="Stop after this many windows.", metavar="N")] = None,
    sample: SAMPLE = None,
    layers: Annotated[
        str | None, typer.Option(help="Layers whose heads are silenced, for example 0-5 or 3,7,11; by default all.")
    ] = None,
    stack: STACK = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Windows that run through the model at once in each thread; 1.", metavar="N")
    ] = None,
    device: DEVICE = "auto",
    dtype: DTYPE = "float32",
    seed: SEED = 0,
    lines: LINES = False,
    field: FIELD = "text",
    skip_bad: SKIP_BAD = False,
    workers: WORKERS = None,
    threads: THREADS = None,
    engine: ENGINE = "local",
    address: ADDRESS = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an ablation that is in --out.")] = False,
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Draw importance beside roles, and curves.")
    ] = True,
    quiet: QUIET = False,
) -> None:
    """Does a head matter? Silence each in turn and see what moves.

    Hidden states, sentence embeddings and, where the checkpoint has a language-model head, the loss. A run that is
    stopped goes on where it was when the same command is given again.
    """
    from headscope.corpus.texts import read_texts, sample_texts
    from headscope.options import Options, parse_heads, parse_layers

    chosen = Options(
        length=length,
        windows=windows,  # type: ignore[arg-type]
        short=short,  # type: ignore[arg-type]
        max_windows=max_windows,
        sample=sample,
        layers=parse_layers(layers) if layers is not None else None,
        batch_size=batch_size,
        seed=seed,
        stack=stack,  # type: ignore[arg-type]
    )
    silent = None if heads is None else parse_heads(heads, "--heads")
    kept = None if only is None else parse_heads(only, "--only")
    source = read_texts(texts, lines=lines, skip_bad=skip_bad, field=field) if texts else sample_texts()
    with without_collecting():
        from headscope.jobs.ablating import ablate
        from headscope.model.loading import load

    finished = ablate(
        load(model_or_that_of(study, model), device=device, dtype=dtype, seed=seed),
        source,
        by=by,  # type: ignore[arg-type]
        heads=silent,
        only=kept,
        order=order or (),
        random_orders=random_orders,
        steps=steps,
        study=study,
        loss=loss,
        out=out or (Path("headscope-ablation") if study is None else study / "ablation"),
        overwrite=overwrite,
        progress=not quiet,
        engine=engine,
        workers=workers,
        threads=threads,
        address=address,
        **chosen.as_fields(),
    )
    if figures:
        finished.figures()
    if not quiet:
        _summary(finished)


def _summary(ablation: Ablation) -> None:
    from headscope.console import console as opened

    console = opened(soft_wrap=True)
    for line in ablation.summary():
        console.print(line, markup=False, highlight=False)
