"""Verdicts: every word has its mark, and sentences count them over claims and models."""

from __future__ import annotations

from typing import get_args

import pandas as pd

from headscope.insight.verdicts import VERDICTS, Verdict, counted_verdicts, verdicts_in_words


def by_model(**models: str) -> pd.DataFrame:
    """A letter a verdict: "yn" holds of the first claim and not of the second."""
    words = {mark.letter: verdict for verdict, mark in VERDICTS.items()}
    topics = [f"claim {number}" for number in range(len(next(iter(models.values()))))]
    return pd.DataFrame({name: [words[letter] for letter in said] for name, said in models.items()}, index=topics)


def test_every_verdict_has_a_mark_that_no_other_has() -> None:
    assert tuple(VERDICTS) == get_args(Verdict)
    for part in ("symbol", "letter", "many"):
        assert len({getattr(mark, part) for mark in VERDICTS.values()}) == len(VERDICTS)
    assert all(len(mark.symbol) == len(mark.letter) == 1 for mark in VERDICTS.values())


def test_verdicts_are_counted_in_one_order_and_one_is_not_many() -> None:
    said = ["does not hold", "can't be said", "holds", "holds without learning", "does not hold"]
    assert counted_verdicts(said) == "1 holds, 1 holds without learning, 2 do not hold, 1 can't be said"
    assert counted_verdicts(["holds on shuffled tokens"] * 2) == "2 hold on shuffled tokens"


def test_sentences_say_what_holds_everywhere_somewhere_and_nowhere() -> None:
    assert verdicts_in_words(by_model(a="yyn", b="ynn", c="ynn")) == [
        "Of the paper's 3 claims, 2 hold in a, 1 in b and 1 in c.",
        "Claims that hold in every model: “claim 0”.",
        "Claims that hold in some models: “claim 1” in 1 of 3.",
        "Claims that hold in no model: “claim 2”.",
    ]


def test_claims_that_hold_in_as_many_models_stand_together() -> None:
    told = verdicts_in_words(by_model(a="yyyn", b="ynyn", c="nnyy"))
    assert told[0] == "Of the paper's 4 claims, 3 hold in a, 2 in b and 2 in c."
    assert "Claims that hold in some models: “claim 0” in 2 of 3; “claim 1”, “claim 3” in 1 of 3." in told
    assert "Claims that hold in no model: none." in told


def test_what_holds_for_another_reason_is_neither_everywhere_nor_nowhere() -> None:
    told = verdicts_in_words(by_model(a="dwsn", b="nwyn"))
    assert told[1:] == [
        "Claims that hold in every model: none.",
        "Claims that hold in some models: “claim 2” in 1 of 2.",
        "Claims that hold in no model: “claim 3”.",
        "Claims that hold only by distance: “claim 0” (a).",
        "Claims that hold without learning: “claim 1” (a and b).",
        "Claims that hold on shuffled tokens: “claim 2” (a).",
    ]


def test_what_can_not_be_said_of_any_model_does_not_hold_in_none() -> None:
    told = verdicts_in_words(by_model(a="??", b="n?", c="n?"))
    assert "Claims that hold in no model: “claim 0”." in told
    assert told[-1] == "Claims that can't be said: “claim 0” (a), “claim 1” (3 of 3 models)."


def test_a_model_of_random_weights_does_not_hide_what_all_others_have() -> None:
    verdicts = by_model(a="yn", b="yn", drawn="nn")
    assert "Claims that hold in every trained model: “claim 0”." in verdicts_in_words(verdicts, ["drawn"])
    for drawn in ([], list(verdicts.columns)):
        assert not any("trained" in sentence for sentence in verdicts_in_words(verdicts, drawn))
