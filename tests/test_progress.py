"""What is told beside a progress bar."""

from __future__ import annotations

import pytest

from headscope.progress import Bar


def test_a_sentence_is_printed_as_it_is_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "Going on with the unfinished study in a [bold]folder[/bold] " + "with a long name " * 10 + "[/red]."
    with Bar("Measuring", "windows", shown=False) as bar:
        bar.say(sentence)
    assert capsys.readouterr().err == sentence + "\n"


def test_the_bar_says_what_is_done_now() -> None:
    bar = Bar("Getting ready", "windows", shown=False)
    bar.name("Measuring minilm")
    assert [task.description for task in bar._progress.tasks] == ["Measuring minilm"]


def test_where_there_is_no_terminal_a_plain_line_comes_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    with Bar("Measuring minilm", "windows", clock=lambda: now) as bar:
        bar.expect(400, exact=True)
        for second in range(70):
            now = float(second)
            bar.advance(4)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" windows")[0] for line in lines] == [
        "Measuring minilm: 24 of 400",
        "Measuring minilm: 144 of 400",
        "Measuring minilm: 264 of 400",
    ]


def test_what_is_over_soon_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("Drawing", "figures") as bar:
        bar.advance(1)
    assert capsys.readouterr().err == ""
