"""Same sentence (Fig. 8): of the high pairs, the share within one sentence; beside it the share among all pairs."""

from collections.abc import Mapping

from torch import Tensor

from headscope.measure.measures.base import Arrays, Column, Ratio, add_shares, share_states
from headscope.measure.observation import Seen, Tokens

STATES = share_states("same_sentence", chance=True)


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    chance = tokens.together_count.double() / tokens.pair_count.clamp(min=1)
    add_shares(states, "same_sentence", seen.together, seen.pairs, chance)


def columns(arrays: Arrays) -> Mapping[str, Column]:
    windows = arrays["same_sentence_windows"]
    return {
        "same_sentence_probability": Ratio(arrays["same_sentence_share_sum"], windows),
        "same_sentence_chance": Ratio(arrays["same_sentence_chance_sum"], windows),
    }
