"""What moves when heads are silenced, over many windows: a consumer of runs (see `run.consumer`).

A case is a set of heads that are silenced at once: one head, for what each is worth, or many. Cases that begin at the
same layer run together, as copies of the same windows, and the layers below are not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.corpus.windows import Batch
from headscope.errors import HeadscopeError
from headscope.files import Arrays, checksum
from headscope.measure.declaration import GROUPS, Specs
from headscope.measure.drift import (
    drawn,
    embedding_cosines,
    hidden_changes,
    hidden_cosines,
    losses,
    masked_places,
    next_tokens,
)
from headscope.model.capture import Capture
from headscope.model.language_head import Predicts, logits
from headscope.model.resuming import Begin, LayerOutputs, Windows, kept_pass, resumed_pass
from headscope.model.silencing import Change, HeadName, edited
from headscope.speaking import option

By = Literal["mean", "zero", "shuffle"]
"""What takes the place of a head's output: its mean over all tokens of the corpus, zeros, or its output on another
window, token for token."""
Case = tuple[HeadName, ...]
InTurn = Callable[[Hashable], AbstractContextManager[None]]
TOKENS_AT_ONCE = 1024
"""Tokens of all copies of the windows of a batch that run together."""
LOGITS_AT_ONCE = 2**24
"""Elements of logits that are made at once: 64 MB."""
SUMS = ("hidden_change", "hidden_cosine", "embedding_cosine", "loss")
COUNTS = ("tokens", "windows", "predicted")


@dataclass(frozen=True)
class Donors:
    """Windows that outputs are taken from: ids (K, S), and how many tokens each has, (K,)."""

    ids: NDArray[np.int64]
    size: NDArray[np.int64]

    def of(self, ids: NDArray[np.int64], seed: int) -> int:
        """The donor of a window (S,), another one than the window itself."""
        first = int(drawn(ids, seed).integers(len(self.ids)))
        for step in range(len(self.ids)):
            one = (first + step) % len(self.ids)
            if not np.array_equal(self.ids[one], ids):
                return one
        raise HeadscopeError(
            f"{option('by', 'shuffle')} takes outputs from another window, but all windows are the same."
        )


@dataclass(frozen=True, eq=False)
class SilencedCases:
    """heads: H. layers: those with attention, by their numbers. means: (L, H, d), for `by` mean. donors: for `by`
    shuffle. loss: what the head of the network predicts; None where no loss is taken. mask_token: its id, for masked
    tokens. resumable: the layers from which a pass may begin, and where in them."""

    cases: tuple[Case, ...]
    by: By
    heads: int
    layers: tuple[int, ...]
    resumable: Mapping[int, Begin]
    means: NDArray[np.float64] | None = None
    donors: Donors | None = None
    loss: Predicts | None = None
    mask_token: int | None = None
    seed: int = 0
    told: dict[str, Any] = field(default_factory=dict)
    """What else an unfinished run must have in common with this one."""

    def __post_init__(self) -> None:
        if self.by not in get_args(By):
            raise HeadscopeError(
                f"{option('by')} is {self.by!r}; it must be {', '.join(get_args(By)[:-1])} or {get_args(By)[-1]}."
            )

    def specs(self) -> Specs:
        names = SUMS if self.loss else SUMS[:-1]
        specs: Specs = {name: ("float64", (len(self.cases), GROUPS)) for name in names}
        specs |= dict.fromkeys(COUNTS, ("int64", (GROUPS,)))
        return specs | ({"undisturbed_loss": ("float64", (GROUPS,))} if self.loss else {})

    def rows(self) -> Specs:
        return {}

    def begin(self, device: torch.device) -> ShardOfCases:
        return ShardOfCases(self)

    def identity(self) -> dict[str, Any]:
        return {
            "by": self.by,
            "seed": self.seed,
            "loss": self.loss,
            "cases": checksum(repr(self.cases).encode())[:16],
            **self.told,
        }

    def together(self, windows: int, length: int) -> Iterator[tuple[int, list[int]]]:
        """The cases that run at once, by their numbers, and the layer from which they do."""
        most = max(1, TOKENS_AT_ONCE // (windows * length))
        begins = [self._begin(case) for case in self.cases]
        order = sorted(range(len(begins)), key=begins.__getitem__)
        for first, alike in groupby(order, begins.__getitem__):
            while some := list(islice(alike, most)):
                yield first, some

    def _begin(self, case: Case) -> int:
        lowest = min((layer for layer, _ in case), default=0)
        return lowest if lowest in self.resumable else 0


class ShardOfCases:
    """The sums of one shard, by groups of texts."""

    def __init__(self, what: SilencedCases) -> None:
        self._what = what
        self._sums = {name: np.zeros(shape, dtype) for name, (dtype, shape) in what.specs().items()}

    def take(self, capture: Capture, batch: Batch, in_turn: InTurn) -> None:
        found = _Effects(self._what, capture, batch).measured()
        groups = batch.text % GROUPS
        with in_turn("cases"):
            for name, values in found.items():
                for window, group in enumerate(groups):
                    self._sums[name][..., group] += values[..., window]

    def arrays(self) -> Arrays:
        return self._sums


class _Effects:
    """What moves in the windows of one batch."""

    def __init__(self, what: SilencedCases, capture: Capture, batch: Batch) -> None:
        self._what = what
        self._capture = capture
        self._batch = batch
        inputs, mask = capture.inputs(batch)
        assert mask is not None
        self._windows, self._real = Windows(inputs, mask, capture.types(batch)), mask.bool()

    def measured(self) -> dict[str, NDArray[Any]]:
        """By name: (C, B) of cases, or (B,)."""
        what, real, count = self._what, self._real, len(self._batch)
        found: dict[str, NDArray[Any]] = {name: np.zeros((len(what.cases), count)) for name in SUMS[:3]}
        found |= {"tokens": real.sum(1).cpu().numpy(), "windows": np.ones(count, dtype=np.int64)}
        found |= {"predicted": np.zeros(count, dtype=np.int64)}
        places, targets = next_tokens(self._windows.inputs, real)
        before, outputs = kept_pass(self._capture, self._windows)
        predicts_next = what.loss == "next token"
        if predicts_next:
            found |= self._begin_losses(before, places, targets)
        for cases, after in self._silenced(self._windows, outputs):
            found["hidden_change"][cases] = hidden_changes(before, after, real).cpu()
            found["hidden_cosine"][cases] = hidden_cosines(before, after, real).cpu()
            found["embedding_cosine"][cases] = embedding_cosines(before, after, real).cpu()
            if predicts_next:
                found["loss"][cases] = self._losses(after, places, targets).cpu()
        if what.loss == "masked tokens":
            found |= self._masked()
        self._refuse_nan(found)
        return found

    def _masked(self) -> dict[str, NDArray[Any]]:
        """The loss of masked models, on the same windows with some tokens masked."""
        ids, special = self._windows.inputs, self._batch.special
        content = ~special & self._batch.mask.astype(bool)
        places = torch.from_numpy(masked_places(self._batch.ids, content, self._what.seed)).to(ids.device)
        windows = Windows(ids.masked_fill(places, self._what.mask_token or 0), self._windows.mask, self._windows.types)
        before, outputs = kept_pass(self._capture, windows)
        found = self._begin_losses(before, places, ids)
        for cases, after in self._silenced(windows, outputs):
            found["loss"][cases] = self._losses(after, places, ids).cpu()
        return found

    def _begin_losses(self, before: Tensor, places: Tensor, targets: Tensor) -> dict[str, NDArray[Any]]:
        return {
            "predicted": places.sum(1).cpu().numpy(),
            "undisturbed_loss": self._losses(before[None], places, targets)[0].cpu().numpy(),
            "loss": np.zeros((len(self._what.cases), len(self._batch))),
        }

    def _silenced(self, windows: Windows, outputs: LayerOutputs) -> Iterator[tuple[list[int], Tensor]]:
        """Some cases, and the final hidden states in each, (R, B, S, D)."""
        instead = self._instead()
        for first, cases in self._what.together(len(windows), windows.inputs.shape[1]):
            begin = self._what.resumable.get(first, "layer") if len(windows) == 1 else "layer"
            changes = self._changes(cases, len(windows), instead, first if begin == "projection" else None)
            after = resumed_pass(self._capture, windows, outputs, first, len(cases), changes, begin)
            yield cases, after.view(len(cases), len(windows), *after.shape[1:])

    def _changes(
        self, cases: Sequence[int], windows: int, instead: dict[int, Tensor], copying: int | None
    ) -> dict[int, Change]:
        """copying: the layer that one window enters and all copies leave, if any."""
        by_layer: dict[int, list[tuple[int, int]]] = {} if copying is None else {copying: []}
        for copy, number in enumerate(cases):
            for layer, head in self._what.cases[number]:
                by_layer.setdefault(layer, []).append((copy, head))

        def edit(layer: int) -> Callable[[Tensor], None]:
            def silence(output: Tensor) -> None:
                copies = output.view(len(cases), windows, *output.shape[1:])
                for copy, head in by_layer[layer]:
                    copies[copy, :, head] = instead[layer][:, head, :, : output.shape[-1]] if instead else 0

            return silence

        rows, places = len(cases) * windows, self._capture.places
        return {
            layer: edited(places[layer], self._what.heads, rows, edit(layer), copied=layer == copying)
            for layer in by_layer
        }

    def _instead(self) -> dict[int, Tensor]:
        """The number of a layer -> what takes the place of its Z, (B or 1, H, S or 1, d); nothing for zeros."""
        what = self._what
        if what.by == "mean":
            assert what.means is not None
            weights = next(self._capture.network.parameters())
            means = torch.from_numpy(what.means).to(weights)
            return {layer: means[place][None, :, None] for place, layer in enumerate(what.layers)}
        if what.by == "shuffle":
            return self._of_others()
        return {}

    def _of_others(self) -> dict[int, Tensor]:
        """Z of other windows, token for token; of one that is shorter, from its beginning again."""
        donors, batch = self._what.donors, self._batch
        assert donors is not None
        if batch.types is not None:
            raise HeadscopeError(
                f"{option('by', 'shuffle')} takes outputs of other texts, whose token types would not fit; take "
                f"{option('by', 'mean')} for pairs."
            )
        rows = [donors.of(ids, self._what.seed) for ids in batch.ids]
        ids, size = donors.ids[rows], donors.size[rows]
        mask = (np.arange(ids.shape[1]) < size[:, None]).astype(np.int64)
        device = self._windows.inputs.device
        tokens = torch.from_numpy(np.arange(ids.shape[1]) % size[:, None]).to(device)
        found: dict[int, Tensor] = {}

        def receive(layer: int, attention: Tensor, output: Tensor) -> None:
            places = tokens[:, None, :, None].expand(-1, output.shape[1], -1, output.shape[3])
            found[layer] = output.gather(2, places)

        self._capture.run(torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device), receive)
        return found

    def _losses(self, states: Tensor, places: Tensor, targets: Tensor) -> Tensor:
        """(R, B, S, D) -> (R, B), summed over the places that predict."""
        network = self._capture.network
        wanted = states[:, places]
        per_copy = targets[places].repeat(len(states))
        flat = wanted.flatten(0, 1)
        most = max(1, LOGITS_AT_ONCE // int(network.config.get_text_config().vocab_size))
        each = [
            losses(logits(network, flat[begin : begin + most]), per_copy[begin : begin + most])
            for begin in range(0, len(flat), most)
        ]
        total = torch.zeros(len(states), len(places), dtype=torch.float64, device=states.device)
        if each:
            windows = places.nonzero()[:, 0]
            total.index_add_(1, windows, torch.cat(each).view(len(states), -1))
        return total

    def _refuse_nan(self, found: dict[str, NDArray[Any]]) -> None:
        for name, values in found.items():
            wrong = np.argwhere(~np.isfinite(values))
            if len(wrong):
                silent = self._what.cases[wrong[0][0]] if values.ndim == 2 else ()
                told = ", ".join(f"{layer}:{head}" for layer, head in silent[:3]) or "none"
                raise HeadscopeError(
                    f"With heads silenced ({told}) the {name} is NaN or infinite; the model's weights are damaged, or "
                    f"its precision is too low (try {option('dtype', 'float32')})."
                )
