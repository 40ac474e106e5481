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
