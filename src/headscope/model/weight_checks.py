"""The weights are those of the config: which files they are read from, how large a network may be, what did not fit."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from headscope.errors import HeadscopeError
from headscope.model.folder_checks import MEGABYTE, is_plain_name, read_object
from headscope.wording import counted

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
_FLOATS = {"F64", "F32", "F16", "BF16"}
_HEADS = {
    *("lm_head", "cls", "classifier", "score", "qa_outputs", "pooler", "predictions", "mlm_head", "vocab_projector"),
    *("vocab_transform", "vocab_layer_norm", "pre_classifier", "embed_out", "generator_predictions"),
    *(
        "discriminator_predictions",
        "generator_lm_head",
        "final_logits_bias",
        "lm_predictions",
        "sop_classifier",
        "head",
    ),
    *("decoder_pred", "logit_scale", "logit_bias", "text_projection", "visual_projection"),
}
"""What a task puts on top of a network; it is left out, as no head of attention is in it."""


@dataclass(frozen=True)
class Tensors:
    """What the files of weights hold: tensors by name, not yet read from the disk. shapes: by name."""

    named: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]

    @property
    def elements(self) -> int:
        return sum(prod(shape) for shape in self.shapes.values())


def weight_files(folder: Path) -> list[Path]:
    """model.safetensors, or the files that its index names: safetensors files that lie in this folder, no others."""
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    index = folder / INDEX
    listed = read_object(index, 256 * MEGABYTE).get("weight_map")
    if not isinstance(listed, dict) or not listed or not all(isinstance(name, str) for name in listed.values()):
        raise HeadscopeError(
            f"{index} has no weight_map that says which tensor is in which file; fetch the model again."
        )
    files = []
    for name in sorted(set(listed.values())):
        if not is_plain_name(name) or not name.endswith(".safetensors"):
            raise HeadscopeError(
                f"{index} names {name!r}; headscope reads only .safetensors files that lie in the folder itself."
            )
        path = folder / name
        if not _lies_in(path, folder):
            raise HeadscopeError(f"{index} names {name}, which is a link out of the folder; put the file itself there.")
        if not path.is_file():
            raise HeadscopeError(f"{index} names {name}, but the folder holds no such file; fetch the model again.")
        files.append(path)
    return files


def _lies_in(path: Path, folder: Path) -> bool:
    """In the folder, once links are followed; the hub's cache keeps its files in `blobs` beside `snapshots`."""
    try:
        real = path.resolve(strict=False)
    except (OSError, RuntimeError):
        return False
    roots = [folder.resolve()]
    if roots[0].parent.name == "snapshots":
        roots.append(roots[0].parent.parent / "blobs")
    return any(real.is_relative_to(root) for root in roots)


@contextmanager
def opened(files: list[Path]) -> Iterator[Tensors]:
    """The tensors of safetensors files, whose headers are checked; a tensor is read when it is used."""
    from safetensors import SafetensorError, safe_open

    named: dict[str, Any] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    with ExitStack() as stack:
        for path in files:
            with path.open("rb") as start:  # safetensors calls a file that may not be read one that is not there
                if not start.read(1):
                    raise HeadscopeError(f"{path} is empty; fetch the model again.")
            try:
                file = stack.enter_context(safe_open(path, framework="pt"))
                for name in file.keys():  # noqa: SIM118 (it is no dictionary)
                    if name in named:
                        raise HeadscopeError(
                            f"{path} holds the tensor {name}, which another file of the model holds too."
                        )
                    named[name] = file.get_slice(name)
                    shapes[name] = tuple(named[name].get_shape())
                    _check_kind(path, name, named[name].get_dtype())
            except (SafetensorError, OSError) as problem:
                raise HeadscopeError(
                    f"{path} can't be loaded: it is damaged, cut short, or no safetensors file ({problem})."
                ) from None
        if not named:
            raise HeadscopeError(f"{files[0]} holds no tensors; fetch the model again.")
        yield Tensors(named, shapes)


def _check_kind(path: Path, name: str, kind: str) -> None:
    """A weight in whole numbers or 8-bit floats is quantised, with its scale elsewhere: read as it is, it is wrong."""
    if kind in _FLOATS or not name.endswith(("weight", "weight_packed", "qweight")):
        return
    raise HeadscopeError(
        f"{path} holds {name} as {kind}, so the weights are quantised; headscope measures full-precision weights."
    )


@contextmanager
def building(name: str, bytes_each: int, tensors: Tensors | None) -> Iterator[None]:
    """Stops the building of a network that is out of all proportion: to this machine's memory, or to its weights.

    Networks are built without memory first, so it is stopped before any is asked for.
    """
    from torch.nn.modules import module as registering

    memory = memory_of_machine()
    most = 4 * tensors.elements + 10**7 if tensors else None
    seen = {"numbers": 0, "tensors": 0}
    registered: set[tuple[int, str]] = set()

    def count(module: Any, field: str, tensor: Any) -> None:
        if tensor is None or (id(module), field) in registered:  # when its weights are loaded it is registered again
            return
        registered.add((id(module), field))
        seen["numbers"] += tensor.numel()
        seen["tensors"] += 1
        if tensors and seen["tensors"] > 8 * len(tensors.named) + 1000:
            raise HeadscopeError(
                f"config.json of {name} asks for more than {seen['tensors'] - 1:,} tensors, but its weights hold "
                f"{len(tensors.named):,}; they belong to another architecture."
            )
        if most is not None and seen["numbers"] > most:
            raise HeadscopeError(
                f"config.json of {name} asks for at least {seen['numbers']:,} parameters, but its weights hold "
                f"{tensors.elements if tensors else 0:,}; they belong to another architecture."
            )
        if seen["numbers"] * bytes_each > memory:
            raise HeadscopeError(
                f"{name} takes more memory ({seen['numbers'] * bytes_each / 2**30:,.1f} GB at least) than this machine "
                f"has ({memory / 2**30:,.1f} GB)."
            )

    handles = [
        registering.register_module_parameter_registration_hook(count),
        registering.register_module_buffer_registration_hook(count),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def memory_of_machine() -> int:
    """Bytes; where the system does not say, as many as the largest machines have."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 2**42


def check_loaded(name: str, network: Any, info: dict[str, Any], tensors: Tensors) -> list[str]:
    """Refuse weights that are not those of the config; what is left out on purpose is said.

    info: as transformers gives it: keys that are missing, unexpected, of another shape.
    """
    for key, in_file, in_network in sorted(info["mismatched_keys"])[:1]:
        raise HeadscopeError(
            f"The weights of {name} do not fit its config.json: {key} is {_shape(in_file)} in the file and "
            f"{_shape(in_network)} in the network ({counted(len(info['mismatched_keys']), 'tensor')} in all)."
        )
    # Weights that the files lack would be drawn at random without a word. Only an unused pooler may be missing, and
    # tables of sines, which are computed.
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key and not _is_computed(network, key))
    if missing:
        raise HeadscopeError(
            f"The weights of {name} lack {counted(len(missing), 'tensor')} of the model, {missing[0]} first; "
            "they belong to another architecture or are incomplete."
        )
    for problem in info["error_msgs"][:1]:
        raise HeadscopeError(f"The weights of {name} can't be used: {problem}")
    unexpected = sorted(info["unexpected_keys"], key=_by_number)
    prefix = f"{network.base_model_prefix}."
    _check_layers(name, network, unexpected, prefix)
    whole = any(key.startswith(prefix) for key in tensors.named)
    others = [key for key in unexpected if not _is_head(key, prefix, whole)]
    if not others:
        return []
    have, were = ("has", "was") if len(others) == 1 else ("have", "were")
    return [
        f"{counted(len(others), 'tensor')} of the weights {have} no place in the network and {were} left out, "
        f"{others[0]} first."
    ]


def blank_pooler(network: Any, info: dict[str, Any]) -> None:
    """A pooler that no file holds becomes zeros: drawn at random it would be another at every load, and so would be
    the hash of the weights, by which a study knows its model again."""
    for name, tensor in network.state_dict().items():
        if name in info["missing_keys"] and "pooler" in name:
            tensor.zero_()


def _is_computed(network: Any, key: str) -> bool:
    return "Sinusoidal" in type(network.get_submodule(key.rpartition(".")[0])).__name__


def _shape(shape: Any) -> str:
    return " x ".join(str(side) for side in shape) or "a single number"


def _by_number(key: str) -> list[Any]:
    """Layer 9 before layer 10."""
    return [(0, int(part), "") if re.fullmatch(r"[0-9]{1,9}", part) else (1, 0, part) for part in key.split(".")]


def _check_layers(name: str, network: Any, unexpected: list[str], prefix: str) -> None:
    """Layers past the last that was built, and unused weights in a layer, mean that something else is computed."""
    import torch

    lists = {path: len(module) for path, module in network.named_modules() if isinstance(module, torch.nn.ModuleList)}
    for key in unexpected:
        for path, size in lists.items():
            found = re.fullmatch(rf"(?:{re.escape(prefix)})?{re.escape(path)}\.([0-9]{{1,9}})\.(.+)", key)
            if not found:
                continue
            number, rest = int(found[1]), found[2]
            if number >= size:
                raise HeadscopeError(
                    f"The weights of {name} hold more layers than its config.json builds: {key}, but {path} has "
                    f"{size}; correct config.json."
                )
            if rest.rsplit(".", 1)[-1] in ("weight", "bias") and not _is_mask(network, f"{path}.{number}.{rest}"):
                raise HeadscopeError(
                    f"The weights of {name} hold {key}, which the network of its config.json leaves out; "
                    "they belong to another architecture, or config.json is wrong."
                )


def _is_mask(network: Any, key: str) -> bool:
    """`attn.bias` of GPT-2 and its kin is no bias but the causal mask, kept in old files."""
    owner, _, leaf = key.rpartition(".")
    module = dict(network.named_modules()).get(owner)
    return leaf == "bias" and module is not None and bool(list(module.children()))


def _is_head(key: str, prefix: str, whole: bool) -> bool:
    """whole: the file is of a network with a head, in which the name of all else begins with the prefix."""
    if whole and not key.startswith(prefix):
        return True
    parts = key.removeprefix(prefix).split(".")
    return parts[0] in _HEADS or parts[-1] in ("position_ids", "inv_freq", "masked_bias")


def check_finite(name: str, network: Any) -> None:
    import torch

    for key, tensor in network.named_parameters():
        if not torch.isfinite(tensor.sum()) and not torch.isfinite(tensor).all():
            raise HeadscopeError(f"The weights of {name} hold NaN or infinity in {key}; the file is damaged.")
