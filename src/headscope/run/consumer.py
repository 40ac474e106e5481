"""What a run is for: a consumer of A and Z, declared by its states.

The runner knows nothing of measures. It cuts windows into shards, runs them in threads, processes or on a cluster,
keeps finished shards on disk, adds them up and goes on after a stop, for any consumer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch

from headscope.corpus.windows import Batch
from headscope.files import Arrays
from headscope.measure.declaration import Specs
from headscope.model.capture import Capture


class Accumulator(Protocol):
    """Adds up the batches of one shard. All threads of a worker share it."""

    def take(self, capture: Capture, batch: Batch, in_turn: Callable[[Hashable], AbstractContextManager[None]]) -> None:
        """Run one batch through the model. Whatever is added to is entered by `with in_turn(place)`, where batches pass
        one at a time and in their order: then the number of threads changes no bit."""

    def arrays(self) -> Arrays:
        """What the shard adds up to, as `Consumer.specs` says; handed over."""


class Consumer(Protocol):
    """A small description that can be pickled: each worker gets a copy of it."""

    def specs(self) -> Specs:
        """Types and shapes of the arrays of one shard. Arrays of shards are added: floats exactly, see `sums`."""

    def rows(self) -> Specs:
        """Arrays of a shard that are kept window by window instead of added: types, and shapes of one window; each is
        (windows, *shape). Empty where there are none."""

    def begin(self, device: torch.device) -> Accumulator:
        """For a new shard."""

    def identity(self) -> dict[str, Any]:
        """What an unfinished run must have in common with this one to be gone on with, for JSON."""
