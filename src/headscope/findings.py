"""What a study shows, in sentences computed from its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from headscope.results import Study

PUNCTUATION = ["attention_to_sentence_end", "attention_to_comma", "attention_to_punctuation"]


@dataclass(frozen=True)
class Finding:
    """A sentence, the number that supports it, and what chance gives (None where chance has no meaning)."""

    sentence: str
    value: float
    chance: float | None = None


def findings(study: Study) -> list[Finding]:
    """The most telling first; those that need high pairs are absent where a model has none."""
    found = [_separators(study), _sentences(study), _repeats(study), _distance(study)]
    return [finding for finding in found if finding is not None]


def _separators(study: Study) -> Finding:
    shares = study.layers[PUNCTUATION].sum(axis=1)
    top = shares.idxmax()
    layer, share, last = study.layers.layer[top], shares[top], shares.iloc[-1]
    sentence = f"Punctuation draws most attention in layer {layer}: {share:.0%}"
    if top != shares.index[-1]:
        sentence += f"; the last layer gives it {last:.0%}"
    return Finding(sentence + ".", float(share))


def _sentences(study: Study) -> Finding | None:
    layers = study.layers.dropna(subset="same_sentence_probability")
    if layers.empty:
        return None
    row = layers.loc[(layers.same_sentence_probability - layers.same_sentence_chance).idxmax()]
    return Finding(
        f"High pairs stay within one sentence most in layer {row.layer:.0f}: {row.same_sentence_probability:.0%}, "
        f"where chance gives {row.same_sentence_chance:.0%}.",
        float(row.same_sentence_probability),
        float(row.same_sentence_chance),
    )


def _repeats(study: Study) -> Finding | None:
    heads = study.heads.dropna(subset="repeat_probability")
    if heads.empty:
        return None
    row = heads.loc[heads.repeat_probability.idxmax()]
    return Finding(
        f"Layer {row.layer:.0f}, head {row['head']:.0f} pairs equal tokens most: {row.repeat_probability:.0%} of its high pairs, "
        f"where chance gives {row.repeat_chance:.1%}.",
        float(row.repeat_probability),
        float(row.repeat_chance),
    )


def _distance(study: Study) -> Finding | None:
    heads = study.heads.dropna(subset="mean_distance")
    if heads.empty:
        return None
    near, far = heads.loc[heads.mean_distance.idxmin()], heads.loc[heads.mean_distance.idxmax()]
    return Finding(
        f"The shortest-ranged head is {near['head']:.0f} of layer {near.layer:.0f} (mean distance {near.mean_distance:.0f} "
        f"tokens), the longest-ranged {far['head']:.0f} of layer {far.layer:.0f} ({far.mean_distance:.0f}).",
        float(near.mean_distance),
    )
