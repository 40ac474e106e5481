"""A pass that begins in the middle: the layers below are not run again.

An undisturbed pass keeps what every layer puts out. In a later pass the layers below the first one wanted hand that on
at once, and the model's own code does all the rest, masks, positions and the last norm among it. One such pass may
carry several copies of the windows, each changed in another way.

The copies of one window are alike until the first change, which is made to what enters an output projection. So the
attention before it is run for one copy, and what enters is copied there: the model's own sums spread the rest.

Not every model can be resumed: one whose layers hand something on by another way would go wrong. `resumable` tries it
for each layer, and from those that fail the whole model is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from headscope.errors import HeadscopeError
from headscope.model.capture import Capture
from headscope.model.carrying import TOLERANCE
from headscope.model.forwards import calling_instead
from headscope.model.silencing import Change, changed, edited
from headscope.model.stacks import has_two_stacks

LayerOutputs = Mapping[int, Any]
"""The number of a layer -> what it returned: tensors, in whatever they came in."""
Begin = Literal["projection", "layer"]
"""Where in a layer a pass begins: at its output projection, for copies of one window, or as a whole."""
PROBE_WINDOWS, PROBE_COPIES = 2, 3


class NotResumed(Exception):
    """What a layer returned can't be copied for several copies of the windows."""


@dataclass(frozen=True)
class Windows:
    """What a network is called with: token ids (B, S) or pixels, the mask of tokens and their types (B, S), if any."""

    inputs: Tensor
    mask: Tensor | None
    types: Tensor | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def copies(self, count: int) -> Windows:
        """(B, ...) -> (count * B, ...), one copy after the other."""
        given = (self.inputs, self.mask, self.types)
        return Windows(*(one if one is None else _copied(one, count) for one in given))  # type: ignore[arg-type]


def body_of(network: Any) -> Any:
    """The network without the head of a task: what puts out hidden states."""
    body = network.base_model
    if body is network and not has_two_stacks(network):
        # A family whose name for its body is another than it says, as Llama 4's is.
        with suppress(NotImplementedError, AttributeError):
            if network.get_output_embeddings() is not None:
                body = network.get_decoder()
    return body


def final_states(capture: Capture, windows: Windows) -> Tensor:
    """One pass. The final hidden states of the stack, (B, S, D)."""
    with torch.inference_mode():
        found = body_of(capture.network)(**capture.arguments(windows.inputs, windows.mask, windows.types))
    name = "encoder_last_hidden_state" if _only_encoder(capture) else "last_hidden_state"
    states = found.get(name) if isinstance(found, Mapping) else None
    if not isinstance(states, Tensor) or states.ndim != 3:
        raise HeadscopeError(f"The {capture.name} puts out no hidden states, so what moves in them can't be measured.")
    return states


def _only_encoder(capture: Capture) -> bool:
    return capture.stack == "encoder" and "decoder_input_ids" in capture.arguments(torch.zeros(1, 1).long(), None)


def kept_pass(capture: Capture, windows: Windows) -> tuple[Tensor, LayerOutputs]:
    """The final hidden states, and what each layer returned."""
    outputs: dict[int, Any] = {}

    def hook(layer: int) -> Callable[..., None]:
        return lambda module, given, returned: outputs.__setitem__(layer, returned)

    with ExitStack() as stack:
        for layer, module in enumerate(_layers(capture)):
            stack.callback(module.register_forward_hook(hook(layer)).remove)
        return final_states(capture, windows), outputs


def resumed_pass(
    capture: Capture,
    windows: Windows,
    outputs: LayerOutputs,
    first: int,
    copies: int,
    changes: Mapping[int, Change],
    begin: Begin = "layer",
) -> Tensor:
    """The final hidden states (copies * B, S, D) of a pass from layer `first` on, with changes to what enters the
    output projections. outputs: of the layers below, for one copy; with first = 0 none are needed. begin: with
    "projection" there is one window, and the change of the first layer makes the copies."""
    run, spread = (windows, 1) if begin == "projection" else (windows.copies(copies), copies)
    with _handing_on(capture, outputs, first, len(windows), spread), changed(capture, changes, first):
        states = final_states(capture, run)
    if len(states) != copies * len(windows):
        raise NotResumed
    return states


def resumable(capture: Capture) -> dict[int, Begin]:
    """The layers from which a pass may begin, and where in them: a few tokens come out as from a whole pass, also where
    its heads are silenced in one of several copies."""
    if capture.layer_list is None:
        return {}
    capture = capture.twin()  # a pass may change a network for good, see there
    inputs = capture.probe_inputs(PROBE_WINDOWS)
    windows = Windows(inputs, torch.ones_like(inputs) if capture.reads_text else None)
    right: dict[int, Begin] = {}
    kept = kept_pass(capture, windows)[1]
    alone = [(one, kept_pass(capture, one)[1]) for one in _one_window(windows)]
    for layer in capture.measurable:
        if _resumes(capture, windows, kept, layer, "layer"):
            right[layer] = "layer"
            if all(_resumes(capture, one, outputs, layer, "projection") for one, outputs in alone):
                right[layer] = "projection"
    return right


def _one_window(windows: Windows) -> list[Windows]:
    """The first window; where there is a mask, also with its last token as padding."""
    inputs = windows.inputs[:1]
    if windows.mask is None:
        return [Windows(inputs, None)]
    padded = windows.mask[:1].clone()
    padded[:, -1] = 0
    return [Windows(inputs, windows.mask[:1]), Windows(inputs, padded)]


def _resumes(capture: Capture, windows: Windows, outputs: LayerOutputs, layer: int, begin: Begin) -> bool:
    """Whether a pass from this layer on comes out as a whole one. If a network that is begun in its middle raises
    anything, it does not."""
    with suppress(Exception):
        rows = PROBE_COPIES * len(windows)
        place, heads = capture.places[layer], capture.heads
        resumed = resumed_pass(
            capture,
            windows,
            outputs,
            layer,
            PROBE_COPIES,
            {layer: edited(place, heads, rows, _last_silenced(len(windows)), copied=begin == "projection")},
            begin,
        )
        whole = resumed_pass(
            capture,
            windows,
            {},
            0,
            PROBE_COPIES,
            {layer: edited(place, heads, rows, _last_silenced(len(windows)))},
        )
        tolerance = TOLERANCE[whole.dtype]
        if windows.mask is not None:
            real = windows.mask.bool().repeat(PROBE_COPIES, 1)
            resumed, whole = resumed[real], whole[real]
        largest = float(whole.float().abs().max())
        return float((resumed.float() - whole.float()).abs().max()) <= tolerance * largest
    return False


def _last_silenced(windows: int) -> Callable[[Tensor], None]:
    """All heads of the last copy."""

    def edit(output: Tensor) -> None:
        output[-windows:] = 0

    return edit


def _layers(capture: Capture) -> list[nn.Module]:
    return [] if capture.layer_list is None else list(capture.network.get_submodule(capture.layer_list).children())


@contextmanager
def _handing_on(capture: Capture, outputs: LayerOutputs, first: int, windows: int, copies: int) -> Iterator[None]:
    """The layers below `first` return what they returned before."""
    below = _layers(capture)[:first]

    def instead(layer: int) -> Callable[..., Any]:
        return lambda *given, **named: _spread(outputs[layer], windows, copies)

    with calling_instead({module: instead(layer) for layer, module in enumerate(below)}):
        yield


def _spread(kept: Any, windows: int, copies: int) -> Any:
    """What a layer returned for B windows, for so many copies of them. What has one entry for all windows stays."""
    if isinstance(kept, Tensor):
        if len(kept) == windows:
            return _copied(kept, copies)
        if len(kept) == 1:
            return kept
        raise NotResumed
    if isinstance(kept, tuple | list):
        return type(kept)(_spread(one, windows, copies) for one in kept)
    if kept is None:
        return None
    raise NotResumed


def _copied(tensor: Tensor, count: int) -> Tensor:
    return tensor.repeat(count, *(1 for _ in tensor.shape[1:]))
