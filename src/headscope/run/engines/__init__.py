"""Where shards run: in this process, in several, or on a Ray cluster."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headscope.errors import HeadscopeError
from headscope.model.capture import Capture
from headscope.model.loading import Model
from headscope.options import Options
from headscope.run.consumer import Consumer
from headscope.run.engines.base import Engine
from headscope.speaking import option


@dataclass(frozen=True)
class Place:
    """Where a study is to run, as asked for.

    workers: on this machine 1 unless said; on a Ray cluster as many as it has room for. threads: of each worker; on
    this machine the cores are divided among the workers, on a cluster each has one.
    """

    engine: str = "local"
    workers: int | None = None
    threads: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        if self.engine not in ("local", "ray"):
            raise HeadscopeError(f"{option('engine')} is {self.engine!r}; it must be local or ray.")
        for name, value in (("workers", self.workers), ("threads", self.threads)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 4096):
                raise HeadscopeError(f"{option(name)} is {value}; it must be a whole number from 1 to 4096.")
        if self.address is not None and self.engine != "ray":
            raise HeadscopeError(f"{option('address')} is for {option('engine', 'ray')} only.")

    @property
    def threads_per_worker(self) -> int:
        if self.threads is not None:
            return self.threads
        return 1 if self.engine == "ray" else max(1, torch.get_num_threads() // (self.workers or 1))

    def build(self, model: Model, consumer: Consumer, options: Options, capture: Capture) -> Engine:
        """The engine itself. Engines that are not used are not imported."""
        threads = self.threads_per_worker
        if self.engine == "ray":
            from headscope.run.engines.ray_engine import RayCluster

            return RayCluster(model, consumer, options, self.workers, threads, self.address)
        if self.workers is not None and self.workers > 1:
            from headscope.run.engines.processes import Processes

            return Processes(model, consumer, options, self.workers, threads)
        from headscope.run.engines.local import Local

        return Local(model, consumer, options, capture, threads)
