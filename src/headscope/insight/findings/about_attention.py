"""Findings about attention: which tokens draw it, where its lines stand, what it carries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from headscope.corpus.windows import SEPARATORS
from headscope.folder.study_folder import StudyFolder
from headscope.insight.chance import attention_chance, kind_chance
from headscope.insight.findings.finding import Finding
from headscope.insight.findings.reading import around_peak, last_layer, layer_column
from headscope.insight.sureness import told
from headscope.wording import against_chance, capital, head_name, in_words, percent

PUNCTUATION = ("sentence_end", "comma", "punctuation")


def punctuation(study: StudyFolder) -> Finding | None:
    return _drawn(study, "Punctuation", PUNCTUATION, "punctuation", figure="4")


def first_token(study: StudyFolder) -> Finding | None:
    return _drawn(study, "First token", ("first",), "the first token", figure="2")


def special_tokens(study: StudyFolder) -> Finding | None:
    """Absent where there are none, or where they draw next to nothing."""
    if layer_column(study, "attention_to_special").max() < 0.05:
        return None
    return _drawn(study, "Special tokens", ("special",), "special tokens other than the first", figure="2")


def _drawn(study: StudyFolder, topic: str, kinds: Sequence[str], called: str, figure: str) -> Finding | None:
    """Attention that tokens of some kinds draw: where most, and in the last layer. Absent without such tokens."""
    columns = [f"attention_to_{kind}" for kind in kinds]
    shares = sum(layer_column(study, name) for name in columns)
    assert isinstance(shares, np.ndarray)
    chance = kind_chance(study, kinds)
    if chance == 0:
        return None
    numbers, top = study.manifest.layers, int(shares.argmax())
    if chance is not None and against_chance(shares[top], chance) != "above":
        sentence = (
            f"No layer favours {called}: at most {percent(shares[top])} of attention, in layer {numbers[top]}, "
            f"goes to what is {percent(chance)} of the tokens."
        )
        where, value = f"layer {numbers[top]}", float(shares[top])
    else:
        most = around_peak(shares)
        where, value = in_words([numbers[place] for place in most]), float(shares[most].mean())
        verb, whose = ("puts", "its") if len(most) == 1 else ("put", "their")
        sure = told(study, "layers", columns, most, value, "share")
        sentence = f"{capital(where)} {verb} {sure} of {whose} attention on {called}"
        sentence += f" ({percent(chance)} of the tokens)" if chance is not None else ""
        sentence += f"; {last_layer(study)} {percent(shares[-1])}." if most[-1] != len(shares) - 1 else "."
    return Finding(topic, sentence, value, f"attention on {called}, {where}", chance, figure=figure)


def lines(study: StudyFolder) -> Finding | None:
    shares = layer_column(study, "line_separator_share")
    if np.isnan(shares).all():
        return None
    chance = kind_chance(study, SEPARATORS)
    most, least = around_peak(shares), int(np.nanargmin(shares))
    value, numbers = float(shares[most].mean()), study.manifest.layers
    where = in_words([numbers[place] for place in most])
    if chance is not None and against_chance(np.nanmax(shares), chance) != "above":
        sentence = (
            f"Attention lines do not favour separators: {percent(value)} stand on them in {where}, and they are "
            f"{percent(chance)} of the tokens."
        )
    else:
        sure = told(study, "layers", "line_separator_share", most, value, "share")
        sentence = f"In {where}, {sure} of the attention lines stand on separators"
        sentence += f" ({percent(chance)} of the tokens)" if chance is not None else ""
        sentence += f"; in layer {numbers[least]}, {percent(shares[least])}." if least not in most else "."
    return Finding("Lines", sentence, value, f"lines on separators, {where}", chance, figure="3")


def neighbours(study: StudyFolder) -> Finding:
    called = {"self": "itself", "previous": "the token before it", "next": "the token after it"}
    table = pd.DataFrame({f"attention_{name}": study.column("heads", f"attention_{name}") for name in called})
    many = int((table.max(axis=1) >= 0.5).sum())
    place = int(table.max(axis=1).to_numpy().argmax())
    head, name = study.heads.iloc[place].to_dict(), table.columns[int(table.iloc[place].to_numpy().argmax())]
    target = called[name.removeprefix("attention_")]
    value, chance = float(head[name]), attention_chance(study)
    if value < 2 * chance:
        sentence = (
            "No head looks at neighbours: the most that a token gives to itself or to one beside it is "
            f"{percent(value)} of its attention, in {head_name(head)}; evenly spread it would be {percent(chance)}."
        )
    else:
        sure = told(study, "heads", name, place, value, "share")
        sentence = f"In {head_name(head)}, a token gives {sure} of its attention to {target}"
        sentence += f", where evenly spread it would be {percent(chance)}. "
        sentence += {0: "No head gives", 1: "It is the only head that gives"}.get(many, f"{many} heads give")
        sentence += " half or more to one such place."
    return Finding("Neighbours", sentence, value, f"attention to {target}, {head_name(head)}", chance, figure="2")


def carried(study: StudyFolder) -> Finding | None:
    """Whether the separators that draw attention move anything."""
    drawn, moved = (
        [f"{what}_to_{kind}" for kind in (*PUNCTUATION, "first", "special")] for what in ("attention", "carried")
    )
    attention, carries = (sum(layer_column(study, name) for name in names) for names in (drawn, moved))
    assert isinstance(attention, np.ndarray)
    assert isinstance(carries, np.ndarray)
    if np.isnan(carries).all() or not study.manifest.model.carried_by:
        return None
    most = around_peak(attention)
    numbers = study.manifest.layers
    where = in_words([numbers[place] for place in most])
    paid, value = float(attention[most].mean()), float(carries[most].mean())
    sure_paid, sure = (
        told(study, "layers", names, most, number, "share") for names, number in ((drawn, paid), (moved, value))
    )
    meaning = (
        "less than it seems" if value < 0.75 * paid else "more than it seems" if value > 1.25 * paid else "as much"
    )
    sentence = (
        f"In {where}, separators draw {sure_paid} of the attention and bring {sure} of what it carries, each "
        f"weight times the length of the value it brings: {meaning}."
    )
    what = f"carried from separators, {where}"
    return Finding("What attention carries", sentence, value, what, paid, beside="attention")
