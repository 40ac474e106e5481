"""Findings about attention: which tokens draw it, where its lines stand, what it carries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headscope.corpus.windows import SEPARATORS
from headscope.folder.study_folder import StudyFolder
from headscope.insight.chance import attention_chance, is_causal, kind_chance
from headscope.insight.choices import head_at
from headscope.insight.findings.finding import Finding, Quantity
from headscope.insight.findings.reading import around_peak, last_layer, layer_column, layers_at, standing_for
from headscope.wording import against_chance, capital, head_name, in_words, percent

PUNCTUATION = ("sentence_end", "comma", "punctuation")
OF_TOKENS, IF_EVEN = "of the tokens", "if it were spread evenly over what a token sees"
AS_MUCH = 0.75, 1.25
"""Times the attention that tokens draw: within these bounds they carry about as much as it seems."""


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
    columns = tuple(f"attention_to_{kind}" for kind in kinds)
    shares, chance, even = layer_column(study, *columns), kind_chance(study, kinds), OF_TOKENS
    if chance == 0:
        return None
    if kinds == ("first",) and is_causal(study):
        chance, even = attention_chance(study), IF_EVEN
    numbers, top, last = study.manifest.layers, int(shares.argmax()), len(shares) - 1
    favoured = chance is None or against_chance(shares[top], chance) == "above"
    most = around_peak(shares) if favoured else np.array([top])
    quantity = Quantity("layers", columns, tuple(most.tolist()))
    where, named = in_words([numbers[place] for place in most]), standing_for(study, most, shares)
    if favoured:
        verb, whose = ("puts", "its") if len(most) == 1 else ("put", "their")
        claim = f"{capital(where)} {verb} {quantity.told(study, 'share')} of {whose} attention on {called}"
        claim, rest = (claim, "") if chance is None else (f"{claim} ({percent(chance)} {even}", ")")
        if most[-1] != last:
            rest, named = f"{rest}; {last_layer(study)} {percent(shares[last])}", (*named, last)
    else:
        there = "goes to what is" if even == OF_TOKENS else "goes there, and would be"
        claim = f"No layer favours {called}: at most {percent(shares[top])} of attention, in {where}, {there} "
        claim, rest = f"{claim}{percent(chance or 0)} {even}", ""
    return Finding(
        topic,
        claim,
        f"{rest}.",
        float(shares[most].mean()),
        f"attention on {called}, {where}",
        chance,
        figure=figure,
        quantity=quantity,
        layers=layers_at(study, *named),
        nothing_there=not favoured,
    )


def lines(study: StudyFolder) -> Finding | None:
    shares = layer_column(study, "line_separator_share")
    if np.isnan(shares).all():
        return None
    chance = kind_chance(study, SEPARATORS)
    most, least = around_peak(shares), int(np.nanargmin(shares))
    quantity = Quantity("layers", ("line_separator_share",), tuple(most.tolist()))
    value, numbers = float(shares[most].mean()), study.manifest.layers
    where, named = in_words([numbers[place] for place in most]), standing_for(study, most, shares)
    favoured = chance is None or against_chance(np.nanmax(shares), chance) == "above"
    if favoured:
        claim = f"In {where}, {quantity.told(study, 'share')} of the attention lines stand on separators"
        claim, rest = (claim, "") if chance is None else (f"{claim} ({percent(chance)} of the tokens", ")")
        if least not in most:
            rest, named = f"{rest}; in layer {numbers[least]}, {percent(shares[least])}", (*named, least)
    else:
        claim = f"Attention lines do not favour separators: {percent(value)} stand on them in {where}, and they are "
        claim, rest = f"{claim}{percent(chance or 0)} of the tokens", ""
    return Finding(
        "Lines",
        claim,
        f"{rest}.",
        value,
        f"lines on separators, {where}",
        chance,
        figure="4",
        quantity=quantity,
        layers=layers_at(study, *named),
        nothing_there=not favoured,
    )


def neighbours(study: StudyFolder) -> Finding:
    called = {"self": "itself", "previous": "the token before it", "next": "the token after it"}
    weights = np.array([study.column("heads", f"attention_{name}") for name in called])
    many = int((weights.max(0) >= 0.5).sum())
    place = int(weights.max(0).argmax())
    name = list(called)[int(weights[:, place].argmax())]
    head, target = head_at(study, place), called[name]
    quantity = Quantity("heads", (f"attention_{name}",), (place,))
    value, chance = float(weights[:, place].max()), attention_chance(study, back=int(name == "previous"))
    found = value >= 2 * chance
    if found:
        claim = (
            f"In {head_name(head)}, a token gives {quantity.told(study, 'share')} of its attention to {target}, where "
            f"evenly spread it would be {percent(chance)}"
        )
        give = {0: "No head gives", 1: "It is the only head that gives"}.get(many, f"{many} heads give")
        rest = f". {give} half or more to one such place."
    else:
        claim = (
            "No head looks at neighbours: the most that a token gives to itself or to one beside it is "
            f"{percent(value)} of its attention, in {head_name(head)}; evenly spread it would be {percent(chance)}"
        )
        rest = "."
    return Finding(
        "Neighbours",
        claim,
        rest,
        value,
        f"attention to {target}, {head_name(head)}",
        chance,
        figure="2",
        quantity=quantity,
        heads=(head,),
        nothing_there=not found,
    )


def carried(study: StudyFolder) -> Finding | None:
    """Whether the separators that draw attention move anything: what they carry, for what they draw."""
    drawn, moved = (
        tuple(f"{what}_to_{kind}" for kind in (*PUNCTUATION, "first", "special")) for what in ("attention", "carried")
    )
    attention, carries = layer_column(study, *drawn), layer_column(study, *moved)
    if np.isnan(carries).all() or not study.manifest.model.carried_by:
        return None
    most = around_peak(attention)
    places = tuple(most.tolist())
    where = in_words([study.manifest.layers[place] for place in most])
    value = float(carries[most].mean() / attention[most].mean())
    quantity = Quantity("layers", moved, places, per=drawn, lower_is_more=value < 1)
    paid, brought = (Quantity("layers", columns, places).told(study, "share") for columns in (drawn, moved))
    meaning = "less than" if value < AS_MUCH[0] else "more than" if value > AS_MUCH[1] else "about as much as"
    claim = (
        f"In {where}, separators draw {paid} of the attention and bring {brought} of what it carries, each weight "
        f"times the length of the value it brings: {meaning} it seems, {quantity.told(study, 'share')} of it"
    )
    return Finding(
        "What attention carries",
        claim,
        ".",
        value,
        f"of the attention on separators is carried, {where}",
        1.0,
        full=max(1.0, value),
        beside="as it seems",
        quantity=quantity,
        layers=layers_at(study, *standing_for(study, most, attention)),
        nothing_there=AS_MUCH[0] <= value <= AS_MUCH[1],
    )
