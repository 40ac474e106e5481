"""headscope segment"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headscope.cli.options import DEVICE, DTYPE, FIELD, MODEL, SEED, SENTENCES, STACK
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from headscope.corpus.texts import Texts
    from headscope.show.objects import Segmentation

EXAMPLES = """[bold]Examples[/bold]\n
headscope segment article.txt   [dim]its topics, with ========== between them[/dim]\n
headscope segment lecture.txt --lines --segments 8 --json > lecture.json\n
headscope segment notes/ --granularity 2 --html notes.html   [dim]finer, on one page[/dim]\n
headscope segment letter.txt --level sentences --model sentence-transformers/all-mpnet-base-v2\n
curl -s https://example.org/book.txt | headscope segment - --using heads"""

SEPARATOR = "=========="
"""Between segments, as the data sets of the field have it."""


def command(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Text files, .jsonl, .json, .csv, .tsv, .parquet (any of them .gz), folders, - for "
            "standard input, hf:DATASET.",
            show_default=False,
        ),
    ],
    model: MODEL = "minilm",
    level: Annotated[
        str, typer.Option(help="topics, or sentences (sentence-like units, by attention lines).", metavar="WHICH")
    ] = "topics",
    segments: Annotated[
        int | None, typer.Option(help="How many; if not given, each text decides.", metavar="N", show_default=False)
    ] = None,
    granularity: Annotated[
        float, typer.Option(help="2 cuts where a boundary is half as clear, 0.5 only where it is twice as clear.")
    ] = 1.0,
    using: Annotated[
        str,
        typer.Option(help="For topics: vectors of heads, pooled ones (of the last layer), or both.", metavar="WHAT"),
    ] = "both",
    lines: Annotated[bool, typer.Option("--lines", help="Every line is a sentence already.")] = False,
    sentences: SENTENCES = "auto",
    layers: Annotated[
        str | None,
        typer.Option(
            help="Layers whose heads are used, for example 8-11; by default the last third, for sentences all.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="A list of start, end, score, first_sentence and last_sentence.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write a page: segments tinted, scores beneath.", metavar="FILE")
    ] = None,
    field: FIELD = "text",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Pass over unusable records instead of stopping.")
    ] = False,
    stack: STACK = None,
    device: DEVICE = "auto",
    dtype: DTYPE = "float32",
    seed: SEED = 0,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress bar, nothing about how it was cut.")
    ] = False,
) -> None:
    """Cut a text where the model does: into topics, or into sentence-like units."""
    from headscope.corpus.texts import read_texts
    from headscope.options import parse_layers
    from headscope.segments.wishes import Wishes

    wishes = Wishes(
        level=level,  # type: ignore[arg-type]
        segments=segments,
        granularity=granularity,
        using=using,  # type: ignore[arg-type]
        sentences="lines" if lines else sentences,  # type: ignore[arg-type]
        layers=parse_layers(layers) if layers is not None else None,
        stack=stack,  # type: ignore[arg-type]
    )
    if html is not None and not os.access(html if html.exists() else html.resolve().parent, os.W_OK):
        raise HeadscopeError(f"{html} can't be written; check the folder it is in.")
    texts = read_texts(files, field=field, skip_bad=skip_bad)

    from headscope.jobs.segmenting import segment_all
    from headscope.model.loading import load

    loaded = load(model, device=device, dtype=dtype, seed=seed)
    shown = _Shown(json, quiet)
    kept = []
    for cut in segment_all(loaded, texts, wishes, progress=not quiet):
        shown.add(cut)
        if html is not None:
            kept.append(cut)
    shown.finish(texts)
    if html is not None:
        from headscope.console import say
        from headscope.show.objects import save_html

        save_html(kept, html)
        if not quiet:
            say(f"Page: {html}", error=True)


class _Shown:
    """Prints each text as soon as it is cut: segments on standard output, how they were found on standard error."""

    def __init__(self, json: bool, quiet: bool) -> None:
        self._json = json
        self._quiet = quiet
        self._waiting: Segmentation | None = None
        self._count = 0

    def add(self, cut: Segmentation) -> None:
        """The first waits for a second: only where there are several texts is each of them named."""
        self._count += 1
        if self._count == 1:
            self._waiting = cut
            return
        if self._waiting is not None:
            self._print(self._waiting, named=True)
            self._waiting = None
        self._print(cut, named=True)

    def finish(self, texts: Texts) -> None:
        from headscope.console import say

        if not self._count:
            raise HeadscopeError(f"{texts.name} holds no text; there is nothing to cut.")
        if self._waiting is not None:
            self._print(self._waiting, named=False)
        elif self._json:
            say("]")
        if texts.bad and not self._quiet:
            say(f"{texts.bad:,} unusable records were passed over.", error=True)

    def _print(self, cut: Segmentation, named: bool) -> None:
        from headscope.console import say

        if self._json:
            self._print_json(cut, named)
        else:
            if named:
                say(f"==> {cut.origin} <==")
            pieces = (piece.replace("\r\n", "\n").strip("\n") for piece in cut.pieces())
            say(f"\n{SEPARATOR}\n".join(pieces))
        if not self._quiet:
            say(f"{f'{cut.origin}: ' if named else ''}{cut.about}", error=True)
            for notice in (cut.about_heads, *cut.notices):
                if notice:
                    say(notice, error=True)

    def _print_json(self, cut: Segmentation, named: bool) -> None:
        """One list of all segments of all texts; those of several texts say which they are of."""
        import json

        from headscope.console import say

        rows = [{**({"origin": cut.origin} if named else {}), **row} for row in cut.as_json()]
        told = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows)
        if not named:
            say(f"[\n{told}\n]")
        else:
            say(f"[\n{told}" if self._waiting is not None else f",\n{told}")
