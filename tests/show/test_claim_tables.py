"""The paper's claims in the terminal: verdict first, within its width, told apart without colour."""

from __future__ import annotations

import io
from typing import get_args

import pandas as pd
import pytest
from made_up import made_up_study
from rich.cells import cell_len

from headscope.console import console
from headscope.insight.claims import Claim
from headscope.insight.comparing import Compared
from headscope.insight.verdicts import VERDICTS, Verdict
from headscope.show.claims import matrix_of, table_of

NAMES = [f"a-model-of-some-name-{number}" for number in range(1, 31)]
WORDS = list(VERDICTS)


def claim(number: int, verdict: Verdict) -> Claim:
    paper, criterion = "That head finds equal tokens across the whole text.", "In layer 11, exactly one head does so."
    measured = "layer 4: 40.6 (40.3 to 40.9), layer 16: 33.8 (33.6 to 34.0), layer 29: 38.7 (38.6 to 38.9)"
    topic = f"Different focal topic{number}"
    return Claim(topic, paper, criterion, "over 50 % in every head", measured, verdict, "7", "met at 0.95")


def compared(models: int, names: list[str] = NAMES) -> Compared:
    """Models of claims that are made up: every verdict is among them."""
    facts = {"layers": pd.DataFrame(), "heads": pd.DataFrame(), "arrays": {}, "numbers": [0]}
    study = made_up_study(**facts, model={"layers": 12, "heads": 12})
    made = Compared(dict.fromkeys(names[:models], study))
    made.judged = {
        name: [claim(number, WORDS[(place + number) % len(WORDS)]) for number in range(8)]
        for place, name in enumerate(made.models)
    }
    return made


def shown(width: int, make, encoding: str = "utf-8") -> list[str]:
    """The lines that a terminal of some width shows."""
    written = io.TextIOWrapper(io.BytesIO(), encoding)
    terminal = console(file=written, width=width)
    parts = make(terminal)
    for part in parts if isinstance(parts, list) else [parts]:
        terminal.print(part)
    written.flush()
    return written.buffer.getvalue().decode(encoding).splitlines()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_the_verdict_stands_first_and_no_line_is_too_long(width, full):
    judged = [claim(number, verdict) for number, verdict in enumerate(get_args(Verdict))]
    lines = shown(width, lambda terminal: table_of(terminal, judged, full=full))
    assert max(map(cell_len, lines)) <= width
    begun = [line for line in lines if line[:1] in {mark.symbol for mark in VERDICTS.values()}]
    assert len(begun) == len(VERDICTS)
    for line, verdict in zip(begun, VERDICTS, strict=True):
        assert line.startswith(f"{VERDICTS[verdict].symbol}  {verdict[:13].rsplit(' ', 1)[0]}")
    text = " ".join(" ".join(lines).split())
    assert ("That head finds equal tokens" in text, "Threshold: met at 0.95" in text) == (full, full)
    assert ("needed: over 50 % in every head" in text) is not full


def test_where_there_is_room_a_verdict_and_a_topic_take_one_line():
    lines = shown(150, lambda terminal: table_of(terminal, [claim(1, "holds on shuffled tokens")]))
    assert lines[2].startswith("□  holds on shuffled tokens  Different focal topic1  layer 4: 40.6")
    assert len(lines) == 4


@pytest.mark.parametrize("models", [2, 9, 12, 30])
def test_the_matrix_has_a_row_a_claim_and_fits_80_columns(models):
    made = compared(models)
    lines = shown(80, lambda terminal: matrix_of(terminal, made))
    assert max(map(cell_len, lines)) <= 80
    verdicts = made.claims.set_index("claim")
    for topic, row in verdicts[made.models].iterrows():
        symbols = [VERDICTS[verdict].symbol for verdict in row]
        rows = [line.removeprefix(topic).split() for line in lines if line.startswith(topic)]
        assert [cell for cells in rows for cell in cells[:-3]] == symbols
        assert {" ".join(cells[-3:]) for cells in rows} == {f"{sum(row == 'holds')} of {models}"}
    assert sum("claims that hold" in line for line in lines) == (3 if models == 30 else 1)


def test_models_stand_under_their_names_where_these_fit_and_under_numbers_otherwise():
    few = shown(80, lambda terminal: matrix_of(terminal, compared(2, ["minilm", "gte-small"])))
    assert any(line.split() == ["claim", "minilm", "gte-small", "holds", "in"] for line in few)
    many = shown(80, lambda terminal: matrix_of(terminal, compared(9)))
    assert any(line.split() == ["claim", *"123456789", "holds", "in"] for line in many)
    assert many[8].startswith("9  a-model-of-some-name-9  12 layers x 12 heads")


def test_the_legend_explains_every_symbol_that_there_is_and_no_other():
    made = compared(2)
    made.judged = {name: [claim(1, word)] for name, word in zip(made.models, ["holds", "does not hold"], strict=True)}
    assert shown(80, lambda terminal: matrix_of(terminal, made))[-1] == "● holds   ○ does not hold"
    text = "\n".join(shown(80, lambda terminal: matrix_of(terminal, compared(6))))
    for verdict, mark in VERDICTS.items():
        assert f"{mark.symbol} {verdict}" in text


def test_a_terminal_that_knows_no_symbols_has_letters():
    lines = shown(80, lambda terminal: matrix_of(terminal, compared(6)), "ascii")
    row = next(line for line in lines if line.startswith("Different focal topic0"))
    assert row.replace("|", " ").split()[3:9] == list("ydwsn?")


def test_names_do_not_widen_the_matrix_or_colour_it():
    made = compared(2, ["[red]a[/red]", "m\x1b[31mx"])
    lines = shown(80, lambda terminal: matrix_of(terminal, made))
    assert "[red]a[/red]  m·[31mx" in lines[3]
