"""The paper's claims, shown: as a DataFrame, and in the terminal as the table of a study or the matrix of several."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from headscope.errors import HeadscopeError
from headscope.folder.study_folder import StudyFolder
from headscope.insight.claims import NO_THRESHOLD, Claim, claims_table
from headscope.insight.comparing import Compared, side_by_side
from headscope.insight.verdicts import VERDICTS, Verdict
from headscope.wording import visible

if TYPE_CHECKING:
    import pandas as pd

STYLES = {"yes": "green", "no": "red", "near": "yellow", "open": "dim"}
ROOMY = 110
"""So wide a terminal has room for every verdict and topic on one line."""
NUMBERED = 4
"""Cells that a model takes under its number."""


def claims(
    *studies: StudyFolder | str | os.PathLike[str] | Sequence[StudyFolder | str | os.PathLike[str]],
) -> pd.DataFrame:
    """Hold the paper's claims against one study or several: a row per model and claim.

    studies: each a `Study` or the folder of one, or a list of them; several must be measured with the same options.
    `verdict` says whether a claim holds, `measured`, `value`, `low`, `high` and `chance` what decides it, `criterion`
    when it holds.

    >>> import headscope
    >>> headscope.claims("wiki")[["topic", "verdict", "measured"]]  # doctest: +SKIP
    >>> headscope.claims("wiki", "other").groupby("model")["verdict"].value_counts()  # doctest: +SKIP
    """
    every: list[Any] = [one for given in studies for one in (given if isinstance(given, list | tuple) else [given])]
    if not every:
        raise HeadscopeError("Give one study or more to hold the paper's claims against; none was given.")
    opened = [study if isinstance(study, StudyFolder) else StudyFolder(study) for study in every]
    return claims_table(Compared(side_by_side(opened)).judged)


def table_of(console: Console, judged: Sequence[Claim], *, full: bool = False) -> Table:
    """The claims of one study, a row each: verdict, topic, what decides it. full: with all that is said of each."""
    table = _table(leading=1)
    roomy = console.width >= ROOMY
    table.add_column()
    table.add_column("verdict", width=None if roomy else 13)
    table.add_column("claim", width=None if roomy else 14)
    table.add_column("what decides it", overflow="fold")
    for claim in judged:
        symbol = _symbol(console, claim.verdict)
        verdict, topic = Text(claim.verdict, symbol.style), Text(claim.topic, "bold")
        table.add_row(symbol, verdict, topic, _in_full(claim) if full else _in_short(claim))
    return table


def _in_short(claim: Claim) -> Text:
    return Text.assemble(visible(claim.measured), ("\nneeded: " + claim.needed, "dim"))


def _in_full(claim: Claim) -> Text:
    parts = {"The paper": claim.paper, "It holds here if": claim.criterion, "Measured": visible(claim.measured)}
    if claim.thresholds not in ("", NO_THRESHOLD):
        parts["Threshold"] = claim.thresholds
    return Text("\n").join(Text.assemble((f"{name}: ", "dim"), said) for name, said in parts.items())


def matrix_of(console: Console, compared: Compared) -> list[RenderableType]:
    """Claims by models: which models, the matrix, what its symbols mean.

    Models stand under their names where these have room, under numbers otherwise; where even numbers have none, the
    matrix is cut.
    """
    models = compared.models
    headings = {name: name for name in models}
    parts = [_matrix(console, compared, headings)]
    if _width(console, parts[0]) > console.width:
        headings = {name: str(number) for number, name in enumerate(models, 1)}
        most = max(1, (console.width - _width(console, _matrix(console, compared, {}))) // NUMBERED)
        blocks = [models[first : first + most] for first in range(0, len(models), most)]
        parts = [_matrix(console, compared, {name: headings[name] for name in block}) for block in blocks]
    return [_models(compared, headings), Text(), *parts, Text(), _legend(console, compared)]


def _matrix(console: Console, compared: Compared, headings: Mapping[str, str]) -> Table:
    """headings: what some of the models stand under."""
    verdicts, models = compared.claims, compared.models
    table = _table(show_footer=True)
    table.add_column("claim", "claims that hold", no_wrap=True)
    for name, heading in headings.items():
        held = str((verdicts[name] == "holds").sum())
        table.add_column(escape(heading), held, justify="center", no_wrap=True, min_width=NUMBERED - 2)
    table.add_column("holds in", no_wrap=True)
    for _, row in verdicts.iterrows():
        holding = sum(row[name] == "holds" for name in models)
        table.add_row(row["claim"], *(_symbol(console, row[name]) for name in headings), f"{holding} of {len(models)}")
    return table


def _models(compared: Compared, headings: Mapping[str, str]) -> Table:
    """What was measured, by what it stands under in the matrix."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, study in compared.studies.items():
        model = study.manifest.model
        number = [] if headings[name] == name else [headings[name]]
        table.add_row(*number, escape(name), f"{model.layers} layers x {model.heads} heads", study.extent)
    return table


def _legend(console: Console, compared: Compared) -> Columns:
    """Of the verdicts that there are."""
    found = {claim.verdict for judged in compared.judged.values() for claim in judged}
    marks = [Text.assemble(_symbol(console, verdict), f" {verdict}") for verdict in VERDICTS if verdict in found]
    return Columns(marks, padding=(0, 3))


def _symbol(console: Console, verdict: Verdict) -> Text:
    mark = VERDICTS[verdict]
    return Text(mark.letter if console.options.ascii_only else mark.symbol, STYLES[mark.tone])


def _table(**settings: Any) -> Table:
    return Table(box=box.SIMPLE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), **settings)


def _width(console: Console, table: Table) -> int:
    """Cells that it takes where nothing is wrapped."""
    return Measurement.get(console, console.options.update(max_width=10**6), table).maximum
