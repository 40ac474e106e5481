"""What is checked in a model folder before anything is built from it.

A folder may come from anywhere. Every file that is read is looked at here first, by a small schema, so that
transformers meets only what makes sense, and what does not is refused in one sentence with its true reason.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headscope.errors import HeadscopeError

CONFIG = "config.json"
DEEPEST = 60
"""Levels of brackets that a JSON file of a model may have."""
MEGABYTE = 2**20
MOST_COUNTED, LARGEST_SIZE = 2**15, 2**25
"""The most layers, heads or experts, and the greatest width, vocabulary or length that a config may ask for: well past
any model there is, and small enough to find out what is wrong with one."""
_COUNTED = {"layer", "layers", "block", "blocks", "depth", "depths", "head", "heads", "expert", "experts"}
_SIZES = {
    "size",
    "dim",
    "dims",
    "width",
    "height",
    "embd",
    "hidden",
    "inner",
    "model",
    "channels",
    "vocab",
    "positions",
}
_SIZES |= {"position", "embeddings", "ffn", "rank", "length", "edge", "bins", "kernel"}
_OF_OTHER_THINGS = {"eps", "prob", "std", "factor", "coef", "scale", "theta", "id", "ids", "index", "label2id"}
"""A name that ends so is no count and no size, whatever else is in it."""
_REQUIRED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size")
"""Whole numbers above 0, wherever a config has them."""
_IMPLEMENTATIONS = re.compile(r"_?(attn|experts)_implementation(_internal|_autoset)?")
_QUANTISED = ("quantization_config", "compression_config", "quantization")
_DROPPED = {
    *_QUANTISED,
    "auto_map",
    "transformers_weights",
    "return_dict",
    "use_return_dict",
    "output_attentions",
    "output_hidden_states",
    "torchscript",
    "fusion_config",
    "kernel_config",
    "distributed_config",
    "gradient_checkpointing",
}
"""Fields that are looked at here and go no further, and such as change what a network returns or how it runs, not what
it computes: headscope decides on these."""
_FILES = {
    ".gguf": "is a GGUF file; headscope reads a folder with config.json, tokenizer.json and model.safetensors, "
    "which transformers makes of it (from_pretrained with gguf_file, then save_pretrained).",
    ".onnx": "is an ONNX file; headscope needs the folder of the model with config.json and model.safetensors.",
    ".safetensors": "is a file; give the folder that holds it, with config.json and tokenizer.json beside it.",
    "": "is a file; give the folder of a model, with config.json, tokenizer.json and model.safetensors in it.",
}
_OTHER_WEIGHTS = {
    "as pickle only, which can run code when loaded; convert them to model.safetensors first (network.save_pretrained "
    "does)": ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.distcp"),
    "as GGUF only; transformers makes model.safetensors of it (from_pretrained with gguf_file, then save_pretrained)": (
        "*.gguf",
    ),
    "as ONNX only; get the model.safetensors that they were made from": ("*.onnx", "onnx/*.onnx"),
    "for TensorFlow or Flax only; get the model.safetensors of the same model": ("*.h5", "*.msgpack", "*.tflite"),
}
"""What there may be instead of safetensors, with the way out -> how such files are called."""


def refuse_file(path: Path) -> None:
    """A file where a folder is wanted: what kind it is, and what to give instead."""
    raise HeadscopeError(f"{path} {_FILES.get(path.suffix.lower(), _FILES[''])}")


def read_object(path: Path, most: int = 16 * MEGABYTE) -> dict[str, Any]:
    """A JSON object of a model folder; anything else is refused, and so is one of more than `most` bytes."""
    try:
        if not path.is_file():
            raise HeadscopeError(f"{path} is no file.")
        size = path.stat().st_size
        if size > most:
            raise HeadscopeError(
                f"{path} is {size // MEGABYTE:,} MB large, far more than such a file of a model ever is."
            )
        content = json.loads(path.read_bytes().decode("utf-8"))
    except OSError as problem:
        raise HeadscopeError(f"{path} can't be read: {problem.strerror or problem}.") from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise HeadscopeError(f"{path} is not JSON; fetch the model again.") from None
    except RecursionError:
        raise HeadscopeError(f"{path} is nested too deeply to be part of a model; fetch the model again.") from None
    except ValueError:
        raise HeadscopeError(f"{path} holds a number of too many digits; fetch the model again.") from None
    if not isinstance(content, dict):
        raise HeadscopeError(f"{path} holds no JSON object ({{...}}); fetch the model again.")
    return content


def check_depth(path: Path, content: Any) -> None:
    """What goes through a file field by field would fail on one that is nested without end."""
    for _ in fields_of(content, path):
        pass


def fields_of(content: Any, path: Path) -> Iterator[tuple[str, Any]]:
    """Each field at any depth, with its name; elements of a list have the name of the list."""
    waiting = [("", content, 0)]
    while waiting:
        name, value, depth = waiting.pop()
        if depth > DEEPEST:
            raise HeadscopeError(f"{path} is nested too deeply to be part of a model; fetch the model again.")
        if isinstance(value, dict):
            waiting += [(str(key), one, depth + 1) for key, one in value.items()]
        elif isinstance(value, list):
            waiting += [(name, one, depth + 1) for one in value]
        else:
            yield name, value


def folder_of_transformer(folder: Path) -> Path:
    """The folder itself, or the part of a sentence-transformers folder that holds the transformer."""
    if not (folder / "modules.json").is_file():
        return folder
    if (folder / CONFIG).is_file() and "model_type" in read_object(folder / CONFIG):
        return folder
    listed = folder / "modules.json"
    modules = read_object_list(listed)
    for module in modules:
        kind, path = module.get("type"), module.get("path")
        if isinstance(kind, str) and kind.endswith("Transformer") and isinstance(path, str):
            part = folder / path
            if not is_plain_name(path) or not part.is_dir():
                raise HeadscopeError(f"{listed} names {path!r} as the folder of the transformer, but there is no such.")
            return part
    raise HeadscopeError(f"{listed} names no transformer, so there is no attention to measure in {folder}.")


def read_object_list(path: Path) -> list[dict[str, Any]]:
    """A JSON list of objects."""
    try:
        content = json.loads(path.read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, list) or not all(isinstance(one, dict) for one in content):
        raise HeadscopeError(f"{path} is not a JSON list of objects; fetch the model again.")
    return content


def is_plain_name(name: str) -> bool:
    """Whether it names something right in its folder: no way up, down or elsewhere."""
    return name not in ("", ".", "..") and not re.search(r"[/\\\0:]", name) and name.isprintable()


def check_kind(folder: Path) -> None:
    """Refuse folders that hold something else than a transformer, or a part of one, each by its reason."""
    if (folder / CONFIG).is_file():
        return
    if os.path.lexists(folder / CONFIG):
        raise HeadscopeError(f"{folder / CONFIG} is no file; fetch the model again.")
    if (folder / "model_index.json").is_file():
        raise HeadscopeError(f"The folder {folder} holds a diffusers pipeline, not a transformer over texts or images.")
    if (folder / "adapter_config.json").is_file():
        raise HeadscopeError(_only_an_adapter(folder))
    if (folder / "params.json").is_file():
        raise HeadscopeError(
            f"The folder {folder} holds a model in Mistral's or Meta's own format (params.json); "
            "headscope needs the Hugging Face one, with config.json."
        )
    if how := _other_weights(folder):
        raise HeadscopeError(f"The folder {folder} holds no config.json, and weights {how}.")
    raise HeadscopeError(f"The folder {folder} holds no config.json, so it is not a Hugging Face model.")


def check_weights_are_there(folder: Path) -> None:
    """A file model.safetensors or its index; where there is none, what there is instead."""
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file() or index.is_file():
        return
    for path in (single, index):
        if os.path.lexists(path):
            raise HeadscopeError(f"{path} is no file, so there are no weights; fetch the model again.")
    if (folder / "adapter_config.json").is_file():
        raise HeadscopeError(_only_an_adapter(folder))
    others = sorted(path.name for path in folder.glob("*.safetensors"))
    if others:
        raise HeadscopeError(
            f"The folder {folder} holds {others[0]}, but neither model.safetensors nor model.safetensors.index.json; "
            "headscope reads weights under these names."
        )
    if how := _other_weights(folder):
        raise HeadscopeError(f"The folder {folder} holds its weights {how}.")
    raise HeadscopeError(f"The folder {folder} holds no weights; a file model.safetensors is needed.")


def _other_weights(folder: Path) -> str | None:
    for how, patterns in _OTHER_WEIGHTS.items():
        if any(any(folder.glob(pattern)) for pattern in patterns):
            return how
    return None


def _only_an_adapter(folder: Path) -> str:
    base = read_object(folder / "adapter_config.json").get("base_model_name_or_path")
    of = f" of {base}" if isinstance(base, str) and base else ""
    return (
        f"The folder {folder} holds only an adapter{of}, not a model; merge it into its model with PEFT "
        "(merge_and_unload, then save_pretrained) and give that folder."
    )


def other_weights_notices(folder: Path) -> list[str]:
    """What lies beside the weights that were read. An adapter is never applied, whether or not PEFT is installed."""
    notices = []
    if any((folder / name).exists() for name in ("adapter_config.json", "adapter_model.safetensors")):
        notices.append(
            "An adapter (adapter_config.json) lies beside the weights and was not applied; "
            "to measure it, merge it into the weights first (PEFT's merge_and_unload)."
        )
    if (folder / "model.safetensors").is_file() and (folder / "model.safetensors.index.json").exists():
        notices.append("The weights are those of model.safetensors; the files of its index beside it were not read.")
    return notices


def read_config(folder: Path, name: str, random: bool) -> tuple[dict[str, Any], list[str]]:
    """The fields of config.json that a network may be built from, and what there is to say of them."""
    path = folder / CONFIG
    config = read_object(path)
    _check_type(path, name, config)
    check_sizes(path, config)
    notices = []
    if config.get("auto_map"):
        notices.append(
            f"config.json names code of its own, which was not run; the network is transformers' own "
            f"{config['model_type']}."
        )
    for part in (config, *(one for one in config.values() if isinstance(one, dict))):
        quantised = next((part[field] for field in _QUANTISED if part.get(field)), None)
        if quantised and not random:
            raise HeadscopeError(
                f"The weights of {name} are quantised{_method(quantised)}; headscope measures full-precision weights, "
                "so give the model that was quantised, or save it dequantised."
            )
    named = config.get("transformers_weights")
    if named is not None and named not in ("model.safetensors", "model.safetensors.index.json"):
        raise HeadscopeError(
            f"{path} names {named!r} as the file of its weights; headscope reads model.safetensors, "
            "so rename it and take the field transformers_weights out."
        )
    if config.get("configuration_files"):
        raise HeadscopeError(f"{path} names other files to be read in its place (configuration_files); take it out.")
    cleaned: dict[str, Any] = _without_implementations(path, config)
    return cleaned, notices


def _method(quantised: Any) -> str:
    method = quantised.get("quant_method") if isinstance(quantised, dict) else None
    return f" ({method})" if isinstance(method, str) else ""


def _check_type(path: Path, name: str, config: dict[str, Any]) -> None:
    import transformers

    kind = config.get("model_type")
    if kind is None and "_class_name" in config:
        raise HeadscopeError(
            f"{path} is of a part of a diffusers pipeline ({config['_class_name']}), not of a transformer."
        )
    if not isinstance(kind, str) or not kind:
        raise HeadscopeError(f"{path} names no model_type, so the architecture can't be told; add the field.")
    if kind in transformers.CONFIG_MAPPING:
        return
    if config.get("auto_map"):
        raise HeadscopeError(f"The model {name} needs code of its own to run, and headscope runs no remote code.")
    raise HeadscopeError(
        f"{path} is of the model_type {kind[:60]!r}, which transformers {transformers.__version__} does not know; "
        "check the field, or install a transformers that knows it."
    )


def check_sizes(path: Path, content: dict[str, Any], largest: int = LARGEST_SIZE) -> None:
    """Refuse nonsense before a loop over it begins or memory for it is asked for."""
    for name, value in fields_of(content, path):
        words = name.lower().split("_")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or words[-1] in _OF_OTHER_THINGS:
            continue
        # A width may be that of a head, a size that of a layer.
        counted = _COUNTED.intersection(words) and words[-1] not in _SIZES and not {"size", "dim"}.intersection(words)
        most = MOST_COUNTED if counted else largest if _SIZES.intersection(words) else None
        if most is not None and not value <= most:
            raise HeadscopeError(f"{path} asks for {name} = {value:,}, more than any model has ({most:,}).")


def check_numbers(path: Path, config: Any) -> None:
    """The same for a config as transformers reads it, where each number has its one name."""
    for one in (config, *(getattr(config, part, None) for part in config.sub_configs)):
        for field in _REQUIRED:
            try:
                value = getattr(one, field, None)
            except RuntimeError:  # layers differ in it, and each has its own
                continue
            several: Any = list(value.values()) if isinstance(value, dict) else value
            for number in several if isinstance(several, (list, tuple)) else [value]:
                if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
                    raise HeadscopeError(f"{path} gives {field} as {number!r}; it must be a whole number above 0.")


def _without_implementations(path: Path, content: Any) -> Any:
    """The same without fields that say which code runs. A kernel from the hub is refused: nothing is fetched for it,
    and what it computes could not be seen."""
    if isinstance(content, list):
        return [_without_implementations(path, one) for one in content]
    if not isinstance(content, dict):
        return content
    kept = {}
    for name, value in content.items():
        if _IMPLEMENTATIONS.fullmatch(name):
            for _, named in fields_of({name: value}, path):
                if isinstance(named, str) and ("/" in named or ":" in named):
                    raise HeadscopeError(
                        f"{path} asks for the kernel {named!r} from the hub ({name}); headscope fetches and runs no "
                        "kernels, so take the field out."
                    )
        elif name not in _DROPPED:
            kept[name] = _without_implementations(path, value)
    return kept
