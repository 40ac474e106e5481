"""headscope inspect"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headscope.cli.options import (
    DEVICE,
    DTYPE,
    LINE_THRESHOLD,
    MODEL_OR_THAT_OF_STUDY,
    SEED,
    SENTENCES,
    SIMILARITY,
    SPECIAL,
    STACK,
    THRESHOLD,
    model_or_that_of,
)
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from headscope.corpus.texts import Text
    from headscope.one_text.telling import Place
    from headscope.show.objects import View

EXAMPLES = """[bold]Examples[/bold]\n
headscope inspect "The cat sat. The dog saw the cat."\n
headscope inspect letter.txt --model bert-base-uncased --layer 11 --head 7,5,8\n
headscope inspect letter.txt --study wiki   [dim]beside what a study says[/dim]\n
headscope inspect letter.txt --words --html letter.html   [dim]every head, on one page[/dim]\n
fortune | headscope inspect - --csv pairs.csv --png maps.png"""


def command(
    text: Annotated[str, typer.Argument(help="A text, a file, or - for standard input.", show_default=False)],
    model: MODEL_OR_THAT_OF_STUDY = None,
    layer: Annotated[
        int | None,
        typer.Option(
            help="The layer to show; by default heads of all layers, with --head the last.",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            help="Heads to show, for example 8 or 5,7,8; by default the three that single out most.",
            metavar="N,...",
            show_default=False,
        ),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            help="A study of the same model: what it says of each head is shown beside it.",
            metavar="FOLDER",
            show_default=False,
        ),
    ] = None,
    words: Annotated[bool, typer.Option("--words", help="Merge the pieces of a word into one token.")] = False,
    top: Annotated[int, typer.Option(help="Pairs in each table; 0: all.", metavar="N", min=0)] = 12,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with every head, for any browser.", metavar="FILE")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write all high pairs of the heads shown.", metavar="FILE")] = None,
    png: Annotated[
        Path | None, typer.Option(help="Draw attention and similarity of the heads shown.", metavar="FILE")
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(help="The most tokens to take; by default 512, or what the model takes.", metavar="S"),
    ] = None,
    threshold: THRESHOLD = 0.3,
    line_threshold: LINE_THRESHOLD = 0.3,
    special: SPECIAL = "keep",
    similarity: SIMILARITY = "dot",
    sentences: SENTENCES = "auto",
    stack: STACK = None,
    device: DEVICE = "auto",
    dtype: DTYPE = "float32",
    seed: SEED = 0,
) -> None:
    """Look at one text closely: which tokens each head makes alike."""
    from headscope.options import Options, parse_layers

    Options(
        threshold=threshold,
        line_threshold=line_threshold,
        special=special,  # type: ignore[arg-type]
        similarity=similarity,  # type: ignore[arg-type]
        sentences=sentences,  # type: ignore[arg-type]
        stack=stack,  # type: ignore[arg-type]
    )
    heads = parse_layers(head) if head is not None else None
    for file in (html, csv, png):
        if file is not None and not os.access(file if file.exists() else file.resolve().parent, os.W_OK):
            raise HeadscopeError(f"{file} can't be written; check the folder it is in.")
    given = _read(text)

    from headscope.show.objects import read

    beside = None if study is None else read(study)

    from headscope.console import console as opened
    from headscope.jobs.inspecting import inspect
    from headscope.model.loading import load
    from headscope.one_text.describing import about_choice
    from headscope.show.terminal import show

    one_layer = layer is not None or heads is not None
    last_or_given = -1 if layer is None else layer
    loaded = load(model_or_that_of(study, model), device=device, dtype=dtype, seed=seed)
    view = inspect(
        loaded,
        given,
        length=length,
        threshold=threshold,
        line_threshold=line_threshold,
        special=special,  # type: ignore[arg-type]
        similarity=similarity,  # type: ignore[arg-type]
        sentences=sentences,  # type: ignore[arg-type]
        layers=(last_or_given,) if one_layer and html is None else None,
        stack=stack,  # type: ignore[arg-type]
        study=beside,
    )
    if words:
        view = view.words()
    if heads is None:
        chosen = view.telling_heads(layer)
    else:
        shown = view.layers[view.attention.place(last_or_given)]
        view.attention[shown, max(heads)]  # refuses a head that there is not
        chosen = [(shown, each) for each in heads]
    # Files come first: whoever reads along may stop reading.
    _write(view, chosen, html, csv, png)
    console = opened()
    for notice in loaded.notices:
        console.print(notice, style="yellow", markup=False, soft_wrap=True)
    show(console, view, chosen, top)
    if heads is None:
        console.print(f"{about_choice(view, layer)} --layer and --head choose others.", style="dim")
    for what, file in (("Pairs", csv), ("Picture", png), ("Page", html)):
        if file is not None:
            console.print(f"{what}: {file}", markup=False, soft_wrap=True)


def _read(text: str) -> Text:
    """Standard input, a file that exists, or the argument itself."""
    from headscope.corpus.texts import SUFFIXES, only_text, read_texts
    from headscope.corpus.texts import Text as Given

    if text == "-" or os.path.exists(text):
        given = only_text(read_texts([text]))
        if given is None:
            raise HeadscopeError(f"{text} holds no text; there is nothing to look at.")
        return given
    if not text.strip():
        raise HeadscopeError("The text is empty; there is nothing to look at.")
    if text.lower().removesuffix(".gz").endswith(SUFFIXES) and len(text.split()) == 1:
        raise HeadscopeError(f"There is no file {text}; check the path.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise HeadscopeError("The text is not UTF-8; give it in a file, or from a terminal set to UTF-8.") from None
    return Given("", text)


def _write(view: View, heads: list[Place], html: Path | None, csv: Path | None, png: Path | None) -> None:
    import pandas as pd

    file = None
    try:
        if (file := csv) is not None:
            tables = [view.pairs(layer, head).assign(layer=layer, head=head) for layer, head in heads]
            table = pd.concat(tables, ignore_index=True)
            table[["layer", "head", *table.columns[:-2]]].to_csv(csv, index=False)
        if (file := png) is not None:
            from headscope.show.figures.style import save
            from headscope.show.view_picture import draw

            save(draw(view, heads), file, "headscope inspect")
        if (file := html) is not None:
            file.write_text(view.html(*heads[0]), "utf-8")
    except OSError as problem:
        raise HeadscopeError(f"{file} can't be written: {problem.strerror or problem}.") from None
