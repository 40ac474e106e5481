"""headscope doctor"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headscope.cli.options import DEVICE, DTYPE, SEED, STACK
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console
    from rich.table import Table

    from headscope.model.diagnosis import Diagnosis
    from headscope.model.proof import LayerCheck

EXAMPLES = """[bold]Examples[/bold]\n
headscope doctor minilm\n
headscope doctor google-t5/t5-small --stack cross\n
headscope doctor --all   [dim]every family, from small random models; no download[/dim]"""

LEGEND = (
    "[dim]ΔA, ΔZ: greatest difference from what the model computes by itself, ΔZ as a share of the largest element and "
    "over two runs, with eager attention and with the attention that the model was loaded with; "
    "rows ≠ 1: rows of attention that do not add up to 1.[/dim]"
)


def command(
    name: Annotated[
        str | None, typer.Argument(help="minilm (built in), a folder, a hub id, or random:FOLDER.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every family, from small models with random weights.")] = False,
    stack: STACK = None,
    device: DEVICE = "auto",
    dtype: DTYPE = "float32",
    seed: SEED = 0,
) -> int:
    """Prove that what is captured of a model is what the model computes. Exit code 1 if it is not."""
    if (name is None) == (not every):
        raise HeadscopeError("Give the name of one model, or --all for every family.")
    from headscope.console import console as opened

    console = opened()
    if every:
        return _all(console)

    from headscope.model.diagnosis import doctor
    from headscope.model.loading import load

    diagnoses = doctor(load(str(name), device=device, dtype=dtype, seed=seed), stack=stack)
    for diagnosis in diagnoses:
        _one(console, diagnosis)
    return 0 if all(diagnosis.right for diagnosis in diagnoses) else 1


def _one(console: Console, diagnosis: Diagnosis) -> None:
    from rich.markup import escape

    if diagnosis.reason:
        console.print(f"[bold red]Not captured:[/bold red] {escape(diagnosis.reason)}", soft_wrap=True)
        return
    of = f", {diagnosis.stack}" if diagnosis.stack else ""
    table = _table(f"{escape(diagnosis.name)}{of}: captured by {diagnosis.route}", "layer")
    for layer in diagnosis.layers:
        table.add_row(
            str(layer.layer),
            str(layer.heads),
            str(layer.head_width),
            *_differences([layer.attention_difference], [_of_z(layer)], [layer.rows_off]),
            "[green]right[/green]" if layer.right else "[bold red]WRONG[/bold red]",
        )
    console.print(table)
    console.print(LEGEND, soft_wrap=True)
    console.print(f"[dim]Compared: {diagnosis.way}.[/dim]", soft_wrap=True)
    if diagnosis.others:
        others = ", ".join(f"{number} ({escape(kind)})" for number, kind in diagnosis.others)
        console.print(f"Layers without attention, which are not measured: {others}.", soft_wrap=True)
    if diagnosis.right:
        console.print(
            f"[green]Every head of all {len(diagnosis.layers)} layers is captured as the model computes it.[/green]"
        )
    else:
        wrong = [layer for layer in diagnosis.layers if not layer.right]
        console.print(f"[bold red]{len(wrong)} layers differ from what the model computes.[/bold red]")
        for layer in wrong:
            console.print(f"Layer {layer.layer}: {layer.wrong}.", soft_wrap=True)


def _all(console: Console) -> int:
    from headscope.model.diagnosis import doctor_all

    table = _table("Every family, from small models with random weights", "family", "route", "layers")
    refused: list[Diagnosis] = []
    wrong = 0
    for family, diagnosis in doctor_all():
        if diagnosis.reason:
            refused.append(diagnosis)
            wrong += not family.refused
            continue
        wrong += not diagnosis.right
        layers = diagnosis.layers
        table.add_row(
            f"{family.name}{f', {diagnosis.stack}' if diagnosis.stack else ''}",
            str(diagnosis.route),
            str(len(layers)),
            str(layers[0].heads),
            str(layers[0].head_width),
            *_differences(
                [layer.attention_difference for layer in layers],
                [_of_z(layer) for layer in layers],
                [layer.rows_off for layer in layers],
            ),
            "[green]right[/green]" if diagnosis.right else "[bold red]WRONG[/bold red]",
        )
    console.print(table)
    console.print(LEGEND, soft_wrap=True)
    for diagnosis in refused:
        console.print(f"[bold]{diagnosis.name}[/bold] is not captured. {diagnosis.reason}", soft_wrap=True)
    return 1 if wrong else 0


def _table(title: str, *first: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for column in (*first, "heads", "width", "ΔA", "ΔZ", "rows ≠ 1", "verdict"):
        table.add_column(column, no_wrap=True, min_width=4 if column in ("ΔA", "ΔZ") else None)
    return table


def _differences(
    attention: Iterable[float | None], output: Iterable[float], rows_off: Iterable[float]
) -> tuple[str, str, str]:
    from headscope.model.proven import short

    a, z, off = max((one for one in attention if one is not None), default=None), max(output), max(rows_off)
    return ("–" if a is None else short(a), short(z), f"{off:.0%}" if off else "none")


def _of_z(layer: LayerCheck) -> float:
    return max(layer.output_difference, layer.default_difference)
