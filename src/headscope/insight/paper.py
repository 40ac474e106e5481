"""The example of the paper's Fig. 9, and how well a model agrees with the high pairs it lists."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from headscope.errors import HeadscopeError
from headscope.model.loading import Model, as_model

Pair = tuple[int, int]


def paper_example(figure: int) -> dict[str, Any]:
    """The tokens that Fig. 4 or 9 of the paper shows; for 9 also the layer, and the high pairs of three heads."""
    text = (resources.files("headscope") / "data" / "paper" / f"fig{figure}.json").read_text("utf-8")
    example: dict[str, Any] = json.loads(text)
    return example


def agreement(found: Iterable[Pair], listed: Iterable[Pair]) -> dict[str, float]:
    """How well found pairs agree with listed ones; precision is NaN where nothing was found.

    >>> agreement([(0, 1), (0, 2)], [(0, 1), (1, 2), (3, 4), (2, 4)])
    {'listed': 4, 'found': 2, 'common': 1, 'precision': 0.5, 'recall': 0.25}
    """
    ours, theirs = set(found), set(listed)
    common = len(ours & theirs)
    return {
        "listed": len(theirs),
        "found": len(ours),
        "common": common,
        "precision": common / len(ours) if ours else float("nan"),
        "recall": common / len(theirs) if theirs else float("nan"),
    }


def fig9_agreement(model: Model | str) -> pd.DataFrame:
    """Precision and recall of a model's high pairs against those that Fig. 9 lists, a row a head.

    The model is fed the very tokens of the figure, so it must know them; the pairs are those of bert-base-uncased.
    """
    example = paper_example(9)
    model = as_model(model)
    found = _high_pairs(model, example)
    return pd.DataFrame(
        [
            {"layer": example["layer"], "head": int(head), **agreement(found[int(head)], map(tuple, pairs))}
            for head, pairs in example["high_pairs"].items()
        ]
    )


def _high_pairs(model: Model, example: dict[str, Any]) -> dict[int, list[Pair]]:
    """Head -> its high pairs, i < j, in the layer of the example."""
    import torch

    from headscope.measure.definitions_torch import context_similarity, normalise, pairs_among, peak
    from headscope.model.capture import Capture

    ids = token_ids(model.tokenizer, example["tokens"])
    layer, heads = example["layer"], [int(head) for head in example["high_pairs"]]
    capture = Capture(model.network)
    if capture.layers <= layer or capture.heads <= max(heads):
        raise HeadscopeError(
            f"{model.name} has {capture.layers} layers of {capture.heads} heads; Fig. 9 needs head {max(heads)} of "
            f"layer {layer}."
        )
    pairs = pairs_among(torch.ones(len(ids), dtype=torch.bool))
    found: dict[int, list[Pair]] = {}

    def receive(number: int, attention: torch.Tensor, output: torch.Tensor) -> None:
        if number == layer:
            similarity = context_similarity(output[0].cpu())
            high = (normalise(similarity, peak(similarity, pairs)) > example["threshold"]) & pairs
            found.update({head: [tuple(pair) for pair in high[head].nonzero().tolist()] for head in heads})

    batch = torch.from_numpy(ids)[None].to(model.device)
    capture.run(batch, torch.ones_like(batch), receive, last=layer)
    return found


def token_ids(tokenizer: Any, tokens: list[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The ids of tokens as a BERT vocabulary spells them; a tokenizer that lacks one has another vocabulary."""
    ids = tokenizer.convert_tokens_to_ids(tokens)
    unknown = [token for token, number in zip(tokens, ids, strict=True) if number in (None, tokenizer.unk_token_id)]
    if unknown:
        raise HeadscopeError(
            f"The tokenizer {type(tokenizer).__name__} does not know {unknown[0]!r}, a token of the paper's example; "
            "it has another vocabulary than bert-base-uncased."
        )
    return np.array(ids, dtype=np.int64)
