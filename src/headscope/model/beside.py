"""A run of the untouched model beside a capture, which it stays one layer ahead of.

It has a thread and modules of its own, and goes on only when its next layer is asked for.
"""

from __future__ import annotations

import inspect
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from headscope.errors import HeadscopeError
from headscope.model.capture import Capture
from headscope.model.recording import Enough, NotCaptured, Watch, attention_implementation, by_windows, entering
from headscope.model.stacks import input_name

RETURNED = "attentions that the model returns"
WATCHED = "attention seen at torch's own functions"
OUTPUTS = "outputs alone, because the model returns no attentions"
_END, _STOP = object(), object()


class NoMaps(Exception):
    """The run shows no attention."""


class Beside:
    """way: how A is had of the model's own eager attention, if at all; None for the attention that the model was loaded
    with, of which only Z is had."""

    def __init__(self, capture: Capture, arguments: dict[str, Any], way: str | None) -> None:
        self._capture = capture
        self._network = capture.twin().network
        self._arguments = arguments
        self._way = way
        self._seen: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._threads = torch.get_num_threads()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ahead: dict[tuple[str, int], Tensor] = {}
        self._entries = iter(capture.entries)
        self._returned: dict[nn.Module, list[int]] = {}
        self._maps = 0
        self._last_map: Tensor | None = None
        self._replacement: Tensor | None = None

    def attention(self, layer: int) -> Tensor | None:
        """A (B, H, S, S), if it is had."""
        if self._way == OUTPUTS:
            return None
        attention = self._wait("attention", layer)
        if attention is None:
            if not self._maps:
                raise NoMaps
            raise NotCaptured(f"The {self._capture.name} is not captured rightly: layer {layer} returns no attention.")
        return attention

    def entering(self, layer: int) -> Tensor:
        """What enters the output projection."""
        joined = self._wait("joined", layer)
        if joined is None:
            raise NotCaptured(
                f"The {self._capture.name} is not captured rightly: when it runs by itself, nothing enters the output "
                f"projection of layer {layer}."
            )
        return joined

    def replace(self, joined: Tensor) -> None:
        """The run goes on with this in place of what it last showed to enter a projection."""
        self._replacement = joined

    def close(self) -> None:
        if self._thread.is_alive():
            self._answers.put(_STOP)
            self._thread.join()

    def _wait(self, what: str, layer: int) -> Tensor | None:
        while (what, layer) not in self._ahead:
            found = self._next()
            if found is _END:
                return None
            if isinstance(found, BaseException):
                self._fail(found)
            self._ahead[found[0], found[1]] = found[2]
        return self._ahead.pop((what, layer))

    def _fail(self, problem: BaseException) -> NoReturn:
        if isinstance(problem, HeadscopeError | MemoryError | torch.OutOfMemoryError) or not isinstance(
            problem, Exception
        ):
            raise problem
        if self._way == RETURNED:  # not every model can be asked for attentions
            raise NoMaps from problem
        reason = f"{type(problem).__name__}: {' '.join(str(problem).split())}"
        raise NotCaptured(
            f"What is captured of the {self._capture.name} can't be proved: run by itself, it fails with {reason}."
        ) from problem

    def _next(self) -> Any:
        if self._thread.ident is None:
            self._thread.start()
        elif self._thread.is_alive():
            self._answers.put(self._replacement)
            self._replacement = None
        return self._seen.get()

    # What follows is run by the thread.

    def _run(self) -> None:
        torch.set_num_threads(self._threads)
        try:
            with torch.inference_mode(), ExitStack() as stack:
                names = {place.projection for place in self._capture.places.values()}
                stack.enter_context(entering(self._network, names, self._entered))
                arguments = self._arguments
                if self._way is not None:
                    stack.enter_context(attention_implementation(self._network, "eager"))
                if self._way == WATCHED:
                    stack.enter_context(Watch(self._multiplied))
                elif self._way == RETURNED:
                    stack.enter_context(self._returning())
                    arguments = arguments | _asked_for_attentions(self._network)
                self._network(**arguments)
            self._seen.put(_END)
        except Enough:
            pass
        except BaseException as problem:
            self._seen.put(problem)

    def _show(self, what: str, layer: int, tensor: Tensor) -> Any:
        self._seen.put((what, layer, tensor))
        answer = self._answers.get()
        if answer is _STOP:
            raise Enough
        return answer

    def _entered(self, name: str, given: Tensor) -> Tensor | None:
        layer = next(self._entries, None)
        if layer is None:
            return None
        if self._last_map is not None:
            attention, self._last_map = self._last_map, None
            self._show("attention", layer, attention)
        replacement: Tensor | None = self._show("joined", layer, given)
        return None if replacement is None else replacement.view_as(given)

    def _multiplied(self, attention: Tensor, values: Tensor | None, output: Tensor) -> Tensor:
        self._maps += 1
        self._last_map = by_windows(attention, len(self._arguments[input_name(self._network)]))
        return output

    @contextmanager
    def _returning(self) -> Iterator[None]:
        """Hooks on the modules that a call lies in, innermost first: the first that returns a map has its A."""
        waiting: dict[str, list[int]] = {}
        for layer, path in self._capture.paths.items():
            for name in path:
                waiting.setdefault(name, []).append(layer)
        shown: set[int] = set()

        def hook(layers: list[int]) -> Callable[..., Any]:
            def returned(module: nn.Module, given: Any, result: Any) -> Any:
                layer = layers.pop(0) if layers else None
                if layer is None or layer in shown or not isinstance(result, tuple | list):
                    return None
                place = next((place for place in reversed(range(len(result))) if self._is_map(result[place])), None)
                if place is None:
                    return None
                shown.add(layer)
                self._maps += 1
                self._show("attention", layer, result[place])
                # The model would keep the maps of all layers to the end.
                return type(result)((*result[:place], None, *result[place + 1 :]))

            return returned

        handles = [
            self._network.get_submodule(name).register_forward_hook(hook(layers), prepend=True)
            for name, layers in waiting.items()
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _is_map(self, found: Any) -> bool:
        """Rows that add up to at most 1: a family may return biases of the same shape as well."""
        if not isinstance(found, Tensor) or found.ndim != 4 or found.shape[1] != self._capture.heads:
            return False
        return not bool((found < 0).any()) and not bool((found.float().sum(-1) > 1.1).any())


def _asked_for_attentions(network: Any) -> dict[str, bool]:
    parameters = inspect.signature(network.forward).parameters
    takes = "output_attentions" in parameters or any(one.kind == one.VAR_KEYWORD for one in parameters.values())
    return {"output_attentions": True} if takes else {}
