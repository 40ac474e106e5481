"""Options that several verbs share, each written once."""

from pathlib import Path
from typing import Annotated

import typer

MODEL = Annotated[
    str, typer.Option("--model", "-m", help="minilm (built in), a folder, a hub id, or random:NAME.", metavar="NAME")
]
MODEL_OR_THAT_OF_STUDY = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="minilm (built in), a folder, a hub id, or random:NAME; by default that of --study, or minilm.",
        metavar="NAME",
    ),
]
DEVICE = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps, ...", metavar="NAME")]
DTYPE = Annotated[str, typer.Option(help="Precision of the weights: float32, float16 or bfloat16.", metavar="NAME")]
SEED = Annotated[int, typer.Option(help="For models with random weights, and for random draws.", metavar="N")]
LENGTH = Annotated[int, typer.Option(help="Tokens in a window, special tokens included.", metavar="S")]
WINDOWS = Annotated[str, typer.Option(help="all, or only the first of each text.", metavar="WHICH")]
SHORT = Annotated[
    str,
    typer.Option(
        help="Windows shorter than --length: drop (left out, counted), pad, or auto: pad where most of the first "
        "200 texts are shorter than a window.",
        metavar="HOW",
    ),
]
SAMPLE = Annotated[
    int | None,
    typer.Option(
        help="Measure this many windows, drawn by --seed and spread over all texts, which are read twice.",
        metavar="N",
    ),
]
THRESHOLD = Annotated[float, typer.Option(help="A pair is high where N is above this.", metavar="X")]
LINE_THRESHOLD = Annotated[
    float, typer.Option(help="A column of attention is a line above this share of the largest.", metavar="X")
]
SPECIAL = Annotated[str, typer.Option(help="Special tokens: keep (they take part in pairs) or drop.", metavar="HOW")]
SIMILARITY = Annotated[
    str,
    typer.Option(
        help="How outputs are compared: dot (the paper's), centred (less their mean over the window) or cosine.",
        metavar="HOW",
    ),
]
SENTENCES = Annotated[
    str,
    typer.Option(
        help="What ends a sentence: auto (by the script), english (nupunkt), unicode (marks of any script) or lines.",
        metavar="HOW",
    ),
]
LAYERS = Annotated[
    str | None, typer.Option(help="Layers to measure, for example 0-5 or 3,7,11; the model stops after the last.")
]
STACK = Annotated[
    str | None,
    typer.Option(
        help="Of an encoder-decoder: encoder, decoder or cross; of a model of two towers: text or vision.",
        metavar="NAME",
        show_default=False,
    ),
]
_FIELD = "The field of .jsonl and .json, column of .csv, .tsv, .parquet, hf: with the text"
FIELD = Annotated[str, typer.Option(help=f"{_FIELD}.", metavar="NAME")]
FIELDS = Annotated[
    str,
    typer.Option(
        help=f"{_FIELD}; or two, as in premise,hypothesis: pairs of texts, each pair one window.", metavar="NAME"
    ),
]


def fields_named(text: str) -> str | list[str]:
    """One field, or two.

    >>> fields_named("review"), fields_named("premise,hypothesis")
    ('review', ['premise', 'hypothesis'])
    """
    return [name.strip() for name in text.split(",")] if "," in text else text


LINES = Annotated[bool, typer.Option("--lines", help="Text files hold one text a line.")]
SKIP_BAD = Annotated[bool, typer.Option("--skip-bad", help="Count unusable records instead of stopping.")]
WORKERS = Annotated[
    int | None,
    typer.Option(help="Processes that measure at once; 1, or with Ray as many as have room.", metavar="N"),
]
THREADS = Annotated[
    int | None, typer.Option(help="Threads of each worker; the cores are divided if not given.", metavar="N")
]
ENGINE = Annotated[str, typer.Option(help="local (this machine) or ray (a Ray cluster).", metavar="NAME")]
ADDRESS = Annotated[str | None, typer.Option(help="The Ray cluster; none: one on this machine.")]
QUIET = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.")]


def model_or_that_of(study: Path | None, model: str | None) -> str:
    """The model that was named; otherwise that of the study, or the built-in one."""
    if model is not None or study is None:
        return model or "minilm"
    from headscope.folder.manifest import read_manifest

    return read_manifest(study).model.name
