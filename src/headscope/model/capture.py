"""A and Z of every head of every layer, while the model runs.

Making a capture runs a few tokens through the network (`probing`): which attention calls there are, which layers they
belong to, and where Z enters the output projection. A pass (`recording`) then hands on A and Z, layer by layer.
An encoder-decoder has three stacks of layers, of which one is captured: `encoder`, `decoder` or `cross`; a model of two
towers has `text` and `vision`. In hybrids some layers have no attention: those that have keep their numbers.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn

from headscope.corpus.windows import Batch
from headscope.errors import HeadscopeError
from headscope.model.carrying import Carried, CarriedBy, matrix_of
from headscope.model.compiled_attention import PlainCalls
from headscope.model.compiled_linear import Products, multiplying
from headscope.model.probing import Call, Nudging, Probe
from headscope.model.recording import (
    Enough,
    NotCaptured,
    Place,
    Plan,
    ReceiveHeads,
    Recorder,
    attention_implementation,
    entering,
    leaving,
    listening,
)
from headscope.model.stacks import chosen_stack, has_two_stacks, image_size, input_name, tower
from headscope.speaking import option

Receive = Callable[[int, Tensor, Tensor], None]
"""Called once a layer with its number, A (B, H, S, S) and Z (B, H, S, d). A is lent: the next layer overwrites it."""


class Capture:
    """Runs a network and reports A and Z of every layer that has attention.

    A model that can't be captured rightly is refused when one is made.

    stack: for encoder-decoders, one of STACKS; none means `encoder`. The decoder reads the same window as the
    encoder, so that in `cross` row i is token i in the decoder and column j token j in the encoder. For models of two
    towers, one of TOWERS; none means `text`.

    heads, head_width: of every layer; where some layers have narrower heads, zeros fill up their Z, which changes no
    product of two vectors. layers: the depth of the model. measurable: the numbers of the layers with attention.
    other_layers: the number of each other layer -> what it is. places: the number of a layer -> where its Z enters the
    output projection.
    """

    def __init__(self, network: Any, stack: str | None = None) -> None:
        if network.training:
            raise HeadscopeError(
                "The network is in training mode, where dropout changes its heads; call network.eval()."
            )
        self._name = f"model {type(network).__name__} (family {network.config.model_type})"
        self._two_stacks = has_two_stacks(network)
        self.stack = chosen_stack(network, self._name, stack)
        self._network = tower(network, self.stack)
        self._takes = input_name(self._network)
        self._reads_text = self._takes == "input_ids"
        self._takes_types = "token_type_ids" in inspect.signature(self._network.forward).parameters
        if self.stack in ("decoder", "cross") and not self._reads_text:
            raise HeadscopeError(
                f"The {self._name} does not read text, so only its encoder can be measured; use "
                f"{option('stack', 'encoder')}."
            )
        self.layer_list: str | None = None
        """The list of modules whose elements are the layers; none where one module is called again and again."""
        probe = self._probed()
        mine = self._mine(probe)
        numbers, self.layers, self.other_layers = self._numbered(mine, probe.calls)
        self._check_shapes(mine, numbers)
        self.measurable = tuple(numbers)
        self.heads, self.head_width = mine[0].heads, max(call.width for call in mine)
        self._plan: Plan = {
            call.key: Place(layer, call.projection, call.direct, call.tokens_first)
            for layer, call in zip(numbers, mine, strict=True)
        }
        self._carried = self._carrying(mine)
        self.elsewhere = {self._plan[call.key].layer: call.elsewhere for call in mine if call.elsewhere}
        """The number of a layer -> another module that its Z enters beside the output projection, if there is one."""
        self._plain = PlainCalls()
        self._products = Products()
        self._watch = any(call.seen == "watch" for call in mine)
        self.places = {place.layer: place for place in self._plan.values()}
        self.paths = {self._plan[call.key].layer: call.path for call in mine}
        """The number of a layer -> the modules that its attention is computed in, innermost first."""
        names = {place.projection for place in self.places.values()}
        entered = [
            (name, self._plan[call.key].layer if call is not None and call.key in self._plan else None)
            for name, call in probe.entries
            if name in names
        ]
        self.entries = tuple(layer for _, layer in entered)
        """The projections in the order in which a pass enters them: each the layer whose Z enters, or none."""
        self.entries_of = {name: tuple(layer for other, layer in entered if other == name) for name in names}
        """The same for each projection: several, where layers share it."""
        self._check_heads()

    @property
    def route(self) -> str:
        """How A and Z are had: the attention interface, or hooks."""
        return "hooks" if self._watch else "interface"

    @property
    def carried_by(self) -> CarriedBy | None:
        """What is taken for the length of a value vector, in all layers: see `Carried`."""
        return self._carried.by

    @property
    def network(self) -> Any:
        """The network that is run: of a model of two towers, one of them."""
        return self._network

    @property
    def name(self) -> str:
        return self._name

    @property
    def reads_text(self) -> bool:
        return self._reads_text

    def inputs(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """What `run` takes of a batch of windows: token ids (B, S) and their mask, or pixels and none."""
        weights = next(self._network.parameters())
        if batch.pixels is not None:
            return torch.from_numpy(batch.pixels).to(weights.device, weights.dtype), None
        ids, mask = (torch.from_numpy(array).to(weights.device) for array in (batch.ids, batch.mask))
        return ids, mask

    def types(self, batch: Batch) -> Tensor | None:
        """The token types (B, S) that `run` takes of a batch: which of two texts a token is of. None where it has none,
        or the network does not tell them apart."""
        if batch.types is None or not self._takes_types:
            return None
        kinds = getattr(self._network.config, "type_vocab_size", None)
        if kinds and (most := int(batch.types.max())) >= kinds:
            raise HeadscopeError(
                f"token_type_ids go up to {most}, and the {self._name} has {kinds} of them, from 0 on; make the ids "
                "with its own tokenizer."
            )
        return torch.from_numpy(batch.types).to(next(self._network.parameters()).device)

    def chosen_layers(self, asked: Sequence[int] | None) -> tuple[int, ...]:
        """The layers to measure, in their order: those asked for, or all that have attention."""
        if asked is None:
            return self.measurable
        for layer in asked:
            if not 0 <= layer < self.layers:
                raise HeadscopeError(
                    f"{option('layers')} asks for layer {layer}, but the model has {self.layers}, "
                    f"numbered 0 to {self.layers - 1}."
                )
            if layer in self.other_layers:
                raise HeadscopeError(
                    f"{option('layers')} asks for layer {layer}, which has no attention ({self.other_layers[layer]}); "
                    f"this model has attention in layers {', '.join(map(str, self.measurable))}."
                )
        return tuple(sorted(set(asked)))

    def run(
        self,
        inputs: Tensor,
        mask: Tensor | None,
        receive: Receive,
        last: int | None = None,
        types: Tensor | None = None,
    ) -> None:
        """One forward pass; the model is stopped after layer `last`.

        inputs: token ids (B, S) with mask (B, S), or what a model without text takes: pixel values. types: (B, S).
        """

        def whole(layer: int, heads: slice, attention: Tensor, output: Tensor, lengths: Tensor) -> None:
            receive(layer, attention, output)

        self._pass(self.arguments(inputs, mask, types), whole, last, True)

    def run_by_heads(
        self,
        inputs: Tensor,
        mask: Tensor | None,
        receive: ReceiveHeads,
        last: int | None = None,
        types: Tensor | None = None,
        each_by_itself: bool = False,
    ) -> None:
        """The same, where the heads of a layer may come one after the other, and attention that is plain is computed
        by headscope, as are linear layers, which is faster; and with the lengths of the value vectors.

        each_by_itself: to put each layer to the test by itself, the model goes on with what its own attention puts out.
        """
        self._pass(self.arguments(inputs, mask, types), receive, last, False, each_by_itself)

    def twin(self) -> Capture:
        """The same weights in modules of their own, so that another thread can run a batch at the same time."""
        twin = copy.copy(self)
        twin._network = self._own_modules()
        return twin

    def arguments(self, inputs: Tensor, mask: Tensor | None, types: Tensor | None = None) -> dict[str, Any]:
        """What the network is called with."""
        arguments: dict[str, Any] = {self._takes: inputs}
        if mask is not None:
            arguments["attention_mask"] = mask
        if types is not None:
            arguments["token_type_ids"] = types
        if self._two_stacks:
            arguments["decoder_input_ids"] = inputs if self._reads_text else _no_tokens(inputs)
            if mask is not None:
                arguments["decoder_attention_mask"] = mask
        if getattr(self._network.config.get_text_config(), "use_cache", None) is not None:
            arguments["use_cache"] = False
        return arguments

    def _pass(
        self,
        arguments: dict[str, Any],
        receive: ReceiveHeads,
        last: int | None,
        whole: bool,
        each_by_itself: bool = False,
    ) -> None:
        carried = Carried(None) if whole else self._carried
        windows = len(arguments[self._takes])
        recorder = Recorder(
            receive, self._plan, windows, self.head_width, last, whole, carried, self._plain, each_by_itself
        )
        changed = {place.projection for place in self._plan.values() if not place.direct}
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            stack.enter_context(attention_implementation(self._network, "eager"))
            if not whole:
                stack.enter_context(multiplying(self._network, self._products))
            if changed:
                stack.enter_context(entering(self._network, changed, lambda name, given: recorder.entered(given)))
            if self._watch:
                innermost = {path[0] for path in self.paths.values() if path}
                stack.enter_context(leaving(self._network, innermost, recorder.without_map))
            stack.enter_context(listening(recorder, self._watch))
            stack.enter_context(suppress(Enough))
            self._network(**arguments)

    def _probed(self) -> Probe:
        """Every attention call of a forward pass, in order."""
        inputs = self.probe_inputs(_PROBE_WINDOWS)
        probe = Probe(self._own_modules(), len(inputs))
        with self._trying():
            probe.run(self._probe_arguments(inputs))
        return probe

    def _own_modules(self) -> Any:
        try:
            return own_modules(self._network)
        except Exception as problem:
            raise NotCaptured(
                f"The {self._name} can't be measured: it can't be copied ({_told(problem)})."
            ) from problem

    @contextmanager
    def _trying(self) -> Iterator[None]:
        """Whatever goes wrong in a model is told in a sentence."""
        try:
            yield
        except HeadscopeError:
            raise
        except Exception as problem:
            reason = f"running {self._given()} through it failed with {_told(problem)}"
            raise NotCaptured(f"The heads of the {self._name} can't be captured: {reason}.") from problem

    def probe_inputs(self, windows: int) -> Tensor:
        """All tokens of all windows differ, so that none can be taken for another."""
        weights = next(self._network.parameters())
        config = self._network.config
        if self._reads_text:
            tokens = getattr(config.get_text_config(), "vocab_size", None) or _FIRST_TOKEN + _TEXT_PROBE
            ids = _FIRST_TOKEN + torch.arange(windows * _TEXT_PROBE, device=weights.device)
            return (ids % tokens).view(windows, _TEXT_PROBE)
        shape: tuple[int, ...]
        if self._takes == "pixel_values":
            shape = _channels(config), *image_size(config)
        elif (
            self._takes == "input_features"
            and hasattr(config, "num_mel_bins")
            and hasattr(config, "max_source_positions")
        ):
            shape = config.num_mel_bins, 2 * config.max_source_positions
        else:
            raise NotCaptured(
                f"The {self._name} takes {self._takes}, which headscope can't give; it measures models that take texts "
                "or images."
            )
        return torch.randn(windows, *shape, generator=torch.Generator().manual_seed(0)).to(weights)

    def _probe_arguments(self, inputs: Tensor) -> dict[str, Any]:
        arguments = self.arguments(inputs, torch.ones_like(inputs) if self._reads_text else None)
        for name in {"decoder_input_ids", "decoder_attention_mask"} & set(arguments):
            arguments[name] = arguments[name][:, :_DECODER_PROBE]
        return arguments

    def _mine(self, probe: Probe) -> list[Call]:
        """The calls of the stack, told by their lengths. One that torch sees inside a layer that uses the interface
        serves another end than the layer's attention."""
        mine = [call for call in probe.calls if self._is_mine(call)]
        layers = {call.inside[:1] for call in mine if call.seen == "interface"}
        mine = [call for call in mine if call.seen == "interface" or call.inside[:1] not in layers]
        if not mine:
            raise NotCaptured(f"The heads of the {self._name} can't be captured: {self._why_none(probe)}.")
        kinds = {(call.seen, call.module) for call in mine}
        unlike = [call for call in self._unlike(probe.calls) if (call.seen, call.module) in kinds]
        if unlike:
            raise NotCaptured(f"The heads of the {self._name} can't be captured: {self._why_not(unlike)}.")
        if any(call.rescaled for call in mine):
            raise NotCaptured(
                f"The heads of the {self._name} can't be captured: it multiplies each row of what its attention puts "
                "out with a number that its attention weights do not have, so they are not what it weighs by."
            )
        return mine

    def _unlike(self, calls: Sequence[Call]) -> list[Call]:
        """The calls that belong to no stack."""
        if self._two_stacks and not self._reads_text:
            calls = [call for call in calls if call.queries != _DECODER_PROBE]
        sizes = self._sizes()
        return [call for call in calls if not self._is_mine(call) and (call.queries, call.keys) not in sizes]

    def _why_none(self, probe: Probe) -> str:
        if not probe.calls and not probe.softmaxes:
            return "no attention is seen, neither at transformers' attention interface nor as a softmax over tokens"
        if probe.calls:
            if any(not call.heads for call in probe.calls):
                return _OTHER_AXES
            unlike = self._unlike(probe.calls)
            return (
                self._why_not(unlike) if unlike else f"no map of its {self.stack}'s attention is seen, tokens by tokens"
            )
        softmax = " x ".join(map(str, probe.softmaxes[-1]))
        return f"its softmax, {softmax} for {self._given()}, is not a map that is multiplied with values"

    def _why_not(self, calls: Sequence[Call]) -> str:
        if any(not call.heads for call in calls):
            return _OTHER_AXES
        parts = [call.keys for call in calls if call.windows > _PROBE_WINDOWS]
        if parts:
            return f"it attends within parts of {self._given()}, of {parts[0]} tokens, and not over all of it"
        if any(call.windows < _PROBE_WINDOWS for call in calls):
            return "a softmax in it is not over the tokens of each text or image by itself"
        sizes = ", ".join(dict.fromkeys(f"{call.queries} x {call.keys}" for call in calls))
        return f"its attention maps are {sizes} for {self._given()}, not tokens by tokens"

    def _given(self) -> str:
        if not self._reads_text:
            return "an image" if self._takes == "pixel_values" else "a sound"
        more = f" in the encoder and {_DECODER_PROBE} in the decoder" if self._two_stacks else ""
        return f"{_TEXT_PROBE} tokens{more}"

    def _sizes(self) -> dict[tuple[int, int], str]:
        """Of a model that reads texts in two stacks: queries and keys in a probe -> the stack."""
        long, short = _TEXT_PROBE, _DECODER_PROBE
        if not self._two_stacks or not self._reads_text:
            return {}
        return {(long, long): "encoder", (short, short): "decoder", (short, long): "cross"}

    def _is_mine(self, call: Call) -> bool:
        if call.windows != _PROBE_WINDOWS:
            return False
        size = call.queries, call.keys
        if self._sizes():
            return self._sizes().get(size) == self.stack
        if self._reads_text:
            return size == (_TEXT_PROBE, _TEXT_PROBE)
        decoder = self._two_stacks and call.queries == _DECODER_PROBE
        return call.queries == call.keys and not decoder

    def _numbered(self, mine: Sequence[Call], calls: Sequence[Call]) -> tuple[list[int], int, dict[int, str]]:
        """The number of the layer of each call; how many layers there are; those without a call, and what they are.

        A layer is an element of the list of layers that the calls lie in. Where they do not lie in one list, in
        order, as when one layer is called again and again, every call is a layer.
        """
        if not all(call.alone for call in mine):
            raise NotCaptured(
                f"The heads of the {self._name} can't be captured: the outputs of several attentions enter an output "
                "projection together."
            )
        expected = self._expected_layers()
        for level in range(min(len(call.inside) for call in mine)):
            names = {call.inside[level][0] for call in mine}
            numbers = [call.inside[level][1] for call in mine]
            if len(names) == 1 and numbers == sorted(set(numbers)):
                name = names.pop()
                layers = self._network.get_submodule(name)
                if len(layers) == (expected or len(layers)):
                    self.layer_list = name
                    unlike = {
                        call.inside[level][1]: call
                        for call in self._unlike(calls)
                        if call.inside[level : level + 1] and call.inside[level][0] == name
                    }
                    return numbers, len(layers), self._others(layers, mine, numbers, unlike)
        if len(mine) != expected:
            raise NotCaptured(
                f"The {self._name} has {expected or 'an unknown number of'} layers but {len(mine)} reported their "
                "heads; headscope can't capture it rightly."
            )
        return list(range(len(mine))), len(mine), {}

    def _others(
        self, layers: Any, mine: Sequence[Call], numbers: Sequence[int], unlike: Mapping[int, Call]
    ) -> dict[int, str]:
        """What the layers without a call are: the class of what only they have. unlike: a layer -> a call in it that
        belongs to no stack."""
        attending = {call.module for call in mine}
        usual = {type(module) for number in numbers for module in layers[number].modules()}
        others = {}
        for number, layer in enumerate(layers):
            if number in numbers:
                continue
            if number in unlike:
                reason = self._why_not([unlike[number]])
                raise NotCaptured(f"The heads of the {self._name} can't be captured: in layer {number} {reason}.")
            if any(type(module) in attending for module in layer.modules()):
                raise NotCaptured(
                    f"The {self._name} has {len(layers)} layers but {len(mine)} reported their heads, layer {number} "
                    "did not; headscope can't capture it rightly."
                )
            own = (type(module) for module in layer.modules() if module is not layer and type(module) not in usual)
            others[number] = next(own, type(layer)).__name__
        return others

    def _check_shapes(self, mine: Sequence[Call], numbers: Sequence[int]) -> None:
        for layer, call in zip(numbers, mine, strict=True):
            if call.projection and call.width:
                continue
            if not call.projection:
                reason = f"no matrix is seen that the head outputs of layer {layer} enter"
            else:
                reason = f"what enters the output projection of layer {layer} can't be cut into heads"
            raise NotCaptured(f"The heads of the {self._name} can't be captured: {reason}.")
        found = sorted({call.heads for call in mine})
        if len(found) > 1:
            raise NotCaptured(
                f"The {self._name} has layers with different numbers of heads ({', '.join(map(str, found))}), which "
                "headscope can't tabulate."
            )

    def _carrying(self, mine: Sequence[Call]) -> Carried:
        """The same for all layers, so that they can be compared: what the projections map only if it is had of all."""
        if not all(call.values_known for call in mine):
            return Carried(None)
        if not all(call.direct and call.projects and not call.elsewhere for call in mine):
            return Carried("value")
        matrices = {
            self._plan[call.key].layer: matrix
            for call in mine
            if (matrix := matrix_of(self._network.get_submodule(call.projection))) is not None
        }
        return Carried("projection", self.heads, matrices)

    def _check_heads(self) -> None:
        """Where something stands between A times V and the projection, each head must still have its place."""
        if all(place.direct for place in self._plan.values()):
            return
        inputs = self.probe_inputs(1)
        nudging = Nudging(self._own_modules(), self._plan, self.heads)
        with self._trying():
            nudging.run(self._probe_arguments(inputs.expand(nudging.windows, *inputs.shape[1:])))
        if nudging.wrong:
            raise NotCaptured(
                f"The heads of the {self._name} can't be captured: in layer {min(nudging.wrong)} they are mixed "
                "before they enter the output projection."
            )

    def _expected_layers(self) -> int | None:
        """Layers there should be, from the network's build and not from what reported."""
        if not self._two_stacks:
            return getattr(self._network.config.get_text_config(), "num_hidden_layers", None)
        part = self._network.get_encoder() if self.stack == "encoder" else self._network.get_decoder()
        lists = (module for module in part.modules() if isinstance(module, nn.ModuleList))
        outermost = next(lists, None)
        return len(outermost) if outermost is not None else None


_TEXT_PROBE, _DECODER_PROBE = 8, 5
"""Tokens of the probe; two numbers, so that encoder, decoder and cross attention can be told apart."""
_PROBE_WINDOWS = 2
_OTHER_AXES = "its attention maps and outputs do not have the axes windows, heads, tokens"
_FIRST_TOKEN = 5
"""Of the probe; the first ids of a vocabulary are often special."""


def _channels(config: Any) -> int:
    return getattr(config, "num_channels", 3)


def _no_tokens(inputs: Tensor) -> Tensor:
    return torch.zeros(len(inputs), _DECODER_PROBE, dtype=torch.long, device=inputs.device)


def own_modules(network: Any) -> Any:
    """The same weights in modules of their own. A pass may change a network for good: BigBird gives up its sparse
    attention once it meets a short text."""
    tensors = (*network.parameters(), *network.buffers())
    return copy.deepcopy(network, {id(tensor): tensor for tensor in tensors})


def _told(problem: Exception) -> str:
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}"
