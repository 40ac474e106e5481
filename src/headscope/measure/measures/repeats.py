"""Repeated tokens (Fig. 6): the share of high pairs whose two tokens are equal; 6b: among those in one sentence."""

from collections.abc import Mapping

from torch import Tensor

from headscope.measure.measures.base import Arrays, Column, Ratio, add_shares, share_states
from headscope.measure.observation import Seen, Tokens

STATES = share_states("repeat", chance=True) | share_states("repeat_in_sentence")


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    chance = tokens.equal_count.double() / tokens.pair_count.clamp(min=1)
    add_shares(states, "repeat", seen.repeats, seen.pairs, chance)
    add_shares(states, "repeat_in_sentence", seen.repeats_together, seen.together)


def columns(arrays: Arrays) -> Mapping[str, Column]:
    windows = arrays["repeat_windows"]
    return {
        "repeat_probability": Ratio(arrays["repeat_share_sum"], windows),
        "repeat_probability_in_sentence": Ratio(
            arrays["repeat_in_sentence_share_sum"], arrays["repeat_in_sentence_windows"]
        ),
        "repeat_chance": Ratio(arrays["repeat_chance_sum"], windows),
    }
