"""headscope study"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headscope.cli.options import (
    ADDRESS,
    DEVICE,
    DTYPE,
    ENGINE,
    FIELDS,
    LAYERS,
    LENGTH,
    LINE_THRESHOLD,
    LINES,
    MODEL,
    QUIET,
    SAMPLE,
    SEED,
    SENTENCES,
    SHORT,
    SIMILARITY,
    SKIP_BAD,
    SPECIAL,
    STACK,
    THREADS,
    THRESHOLD,
    WINDOWS,
    WORKERS,
    fields_named,
)
from headscope.garbage import without_collecting

if TYPE_CHECKING:
    from headscope.corpus.images import Images
    from headscope.corpus.texts import Texts
    from headscope.show.objects import Study

EXAMPLES = """[bold]Examples[/bold]\n
headscope study   [dim]sample texts, built-in model[/dim]\n
headscope study wiki.jsonl.gz --model bert-base-uncased --out wiki --sample 2000\n
headscope study reviews.csv --field review --out reviews   [dim]a text a row[/dim]\n
headscope study nli.jsonl --field premise,hypothesis --out nli   [dim]pairs, each one window[/dim]\n
headscope study notes/ --lines --model ./my-model --length 64 --short pad\n
cat book.txt | headscope study - --layers 0-5"""


def command(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text files, .jsonl, .json, .csv, .tsv, .parquet (any of them .gz), folders, - for "
            "standard input, hf:DATASET; "
            "for a vision model image files or folders of them. "
            "None: the built-in sample.",
            show_default=False,
        ),
    ] = None,
    model: MODEL = "minilm",
    out: Annotated[Path, typer.Option("--out", "-o", help="The study folder.")] = Path("headscope-study"),
    length: LENGTH = 128,
    threshold: THRESHOLD = 0.3,
    line_threshold: LINE_THRESHOLD = 0.3,
    windows: WINDOWS = "all",
    short: SHORT = "auto",
    special: SPECIAL = "keep",
    similarity: SIMILARITY = "dot",
    sentences: SENTENCES = "auto",
    max_windows: Annotated[
        int | None, typer.Option(help="Stop after this many windows: only the first texts are measured.", metavar="N")
    ] = None,
    sample: SAMPLE = None,
    layers: LAYERS = None,
    stack: STACK = None,
    example: Annotated[
        int, typer.Option(help="The window that is kept for figures that show one text.", metavar="N")
    ] = 0,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Windows at once in each thread; if not given, as many as make 1,024 tokens.",
            metavar="N",
        ),
    ] = None,
    device: DEVICE = "auto",
    dtype: DTYPE = "float32",
    seed: SEED = 0,
    lines: LINES = False,
    field: FIELDS = "text",
    skip_bad: SKIP_BAD = False,
    workers: WORKERS = None,
    threads: THREADS = None,
    engine: ENGINE = "local",
    address: ADDRESS = None,
    shard: Annotated[str, typer.Option(help="3/16 measures part 3 of 16, for headscope merge.", metavar="K/N")] = "1/1",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a study that is in --out.")] = False,
    nulls: Annotated[
        bool,
        typer.Option("--nulls", help="Measure nulls too, as headscope nulls does: heads have roles then."),
    ] = False,
    maps: Annotated[
        str,
        typer.Option(
            help="Maps of every head to write: all, location (of high pairs), none, or auto: all unless they take over "
            "200 MB. They are most of a folder: of 12 x 12 heads and 128 tokens 56 of 90 MB.",
            metavar="WHICH",
        ),
    ] = "auto",
    keep_windows: Annotated[
        bool,
        typer.Option(
            "--keep-windows",
            help="Write the numbers of every window too (windows.parquet): of 12 x 12 heads about 60 KB a window.",
        ),
    ] = False,
    meta: Annotated[
        str | None,
        typer.Option(
            help="Columns or fields of the texts to keep with every window, for example label,year; tables for each of "
            "their values are written.",
            metavar="NAMES",
        ),
    ] = None,
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Draw all figures and write report.html at the end.")
    ] = True,
    quiet: QUIET = False,
) -> None:
    """Measure every head of a model over a corpus."""
    from headscope.corpus.images import Images, are_images
    from headscope.corpus.texts import read_texts, sample_texts
    from headscope.options import Options, parse_layers

    chosen = Options(
        length=length,
        threshold=threshold,
        line_threshold=line_threshold,
        windows=windows,  # type: ignore[arg-type]
        short=short,  # type: ignore[arg-type]
        special=special,  # type: ignore[arg-type]
        similarity=similarity,  # type: ignore[arg-type]
        sentences=sentences,  # type: ignore[arg-type]
        max_windows=max_windows,
        sample=sample,
        layers=parse_layers(layers) if layers is not None else None,
        batch_size=batch_size,
        seed=seed,
        stack=stack,  # type: ignore[arg-type]
        maps=maps,  # type: ignore[arg-type]
        keep_windows=keep_windows,
        meta=tuple(name.strip() for name in meta.split(",")) if meta is not None else (),
    )
    source: Texts | Images
    if texts and are_images(texts):
        source = Images(texts, skip_bad)
    else:
        source = (
            read_texts(texts, lines=lines, skip_bad=skip_bad, field=fields_named(field)) if texts else sample_texts()
        )

    with without_collecting():
        from headscope.folder.study_folder import claim

        claim(out, overwrite, finished=True)

        from headscope.jobs.studying import study
        from headscope.model.loading import load

    loaded = load(model, device=device, dtype=dtype, seed=seed)
    finished = study(
        loaded,
        source,
        out=out,
        overwrite=overwrite,
        progress=not quiet,
        example=example,
        engine=engine,
        workers=workers,
        threads=threads,
        address=address,
        shard=shard,
        nulls=nulls,
        **chosen.as_fields(),
    )
    if figures and finished.manifest.part is None:
        from headscope.show.helpers import Helpers
        from headscope.show.report import write_report

        with Helpers(finished.folder) as helpers:
            finished.figures(progress=not quiet, helpers=helpers)
            finished.figures(findings=True, formats=["png"], progress=not quiet, helpers=helpers)
            write_report(finished, progress=not quiet, helpers=helpers)
    if not quiet:
        _summary(finished, figures)


def _summary(study: Study, figures: bool) -> None:
    from rich.markup import escape

    from headscope.console import console as opened
    from headscope.insight.findings import findings
    from headscope.insight.notices import notices
    from headscope.insight.roles import summary as roles_summary
    from headscope.insight.sources import sources_used
    from headscope.wording import counted

    console = opened(soft_wrap=True)
    manifest = study.manifest
    model, counts = manifest.model, manifest.counts
    about = ", ".join(fact for fact in (model.stack, model.dtype) if fact)
    sources = f" from {counted(counts.texts, 'text')}" if manifest.kind == "texts" else ""
    console.print(
        f"[bold]{escape(model.name)}[/bold] ({about}): {counted(len(manifest.layers), 'layer')} x "
        f"{counted(model.heads, 'head')} over "
        f"{study.extent}{sources}, measured in {manifest.seconds:.1f} s"
    )
    if model.proof is not None:
        console.print(f"[dim]{escape(model.proof.sentence)}[/dim]")
    if counts.windows_drawn_from is not None:
        drawn_from = counted(counts.windows_drawn_from, "window")
        console.print(f"[dim]drawn by seed {manifest.options.seed} from the {drawn_from} of all texts[/dim]")
    if len(manifest.source.files or ()) > 1 or manifest.source.files_not_reached:
        for line in sources_used(manifest.source):
            console.print(f"[dim]{escape(line)}[/dim]")
    left_out = counts.short_windows_left_out
    if left_out:
        console.print(
            f"[dim]left out: {counted(left_out, 'short window')} at the ends of texts (--short pad keeps them)[/dim]"
        )
    if counts.unreadable_records_left_out:
        console.print(f"[dim]left out: {counted(counts.unreadable_records_left_out, 'unusable record')}[/dim]")
    if counts.other_files_left_out:
        others = counted(counts.other_files_left_out, "file")
        console.print(f"[dim]left out: {others} in the folders that are no texts by their names[/dim]")
    for notice in notices(study):
        console.print(f"[yellow]{escape(notice)}[/yellow]")
    part = manifest.part
    if part is not None:
        console.print(
            f"Part {part.number} of {part.of}, {counts.windows:,} of {counted(part.windows_in_all or 0, 'window')}; "
            "headscope merge adds all parts up."
        )
        return
    for finding in findings(study)[:4]:
        console.print(f"  • {escape(finding.sentence)}")
    if study.roles is not None:
        console.print(escape(roles_summary(study, study.roles)))
    elif manifest.kind == "texts":
        console.print(
            f"[dim]What is learned, and which head does what: headscope nulls {escape(str(study.folder))}[/dim]"
        )
    size = sum(file.stat().st_size for file in study.folder.rglob("*") if file.is_file())
    console.print(
        f"Tables: {escape(str(study.folder / 'heads.csv'))}, arrays and manifest beside it ({size / 1e6:.0f} MB in all)"
    )
    if figures:
        console.print(f"Figures: {escape(str(study.folder / 'figures'))}")
        console.print(f"Report: {escape(str(study.folder / 'report.html'))}")
