"""study.json, checked at the door: what reads a study may rely on every field that is named here.

Nothing in a manifest is ever used as a path: the files of a study have fixed names.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from headscope.errors import HeadscopeError
from headscope.files import check_name
from headscope.options import Options
from headscope.run import checkpoints

MANIFEST = "study.json"
FORMAT = 1
"""Raised when a folder written by this version can't be read by an older one."""

_LARGEST = 1_000_000
COUNTS = (
    "texts",
    "texts_without_window",
    "windows",
    "short_windows_left_out",
    "later_windows_left_out",
    "unreadable_records_left_out",
)
MEASURED = ("windows", "windows_in_one_sentence")
"""Counts of the windows of one part; the others are of all texts, and the same in every part."""
_SHAPE: dict[str, Any] = {
    "headscope": str,
    "finished": str,
    "seconds": (int, float),
    "model": {
        **dict.fromkeys(("name", "architecture", "family", "weights_sha256", "dtype", "captured_by"), str),
        **dict.fromkeys(("layers", "heads", "head_width"), int),
    },
    "texts": dict.fromkeys(("name", "sha256", "windows_sha256"), str),
    "options": dict,
    "layers": list,
    "counts": dict.fromkeys(COUNTS, int),
    "part": (dict, type(None)),
    "example": (dict, type(None)),
    "run": {"device": str},
    "versions": dict,
    "files": dict,
}


def read_manifest(folder: Path) -> dict[str, Any]:
    check_name(folder, "The study folder")
    path = folder / MANIFEST
    if not folder.is_dir():
        raise HeadscopeError(f"There is no study folder {folder}; check the path.")
    if not path.is_file():
        if (folder / checkpoints.FOLDER).is_dir():
            raise HeadscopeError(
                f"The study in {folder} is not finished; run the same headscope study command again to go on."
            )
        raise HeadscopeError(f"The folder {folder} holds no {MANIFEST}, so it is not a study folder.")
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        raise HeadscopeError(f"{path} is damaged: it is not JSON; run the study again.") from None
    if isinstance(manifest, dict) and "images" in manifest:
        raise HeadscopeError(f"{folder} holds a study of images; its tables are heads.csv and layers.csv there.")
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if isinstance(version, int) and version > FORMAT:
        raise HeadscopeError(f"{folder} was written by a newer headscope; upgrade headscope to read it.")
    wrong = "format" if version != FORMAT else _wrong(manifest)
    if wrong:
        raise HeadscopeError(f"{path} is damaged: its field {wrong} is missing or not what it must be.")
    # A study of an older version has the defaults of options that came later.
    return {**manifest, "options": Options.read(manifest["options"]).as_dict()}


def _wrong(manifest: dict[str, Any]) -> str | None:
    """The first field that is not as it must be."""
    wrong = _misfit(manifest, _SHAPE)
    if wrong:
        return wrong
    model, layers, part = manifest["model"], manifest["layers"], manifest["part"]
    if not (1 <= model["heads"] <= _LARGEST and 1 <= model["layers"] <= _LARGEST):
        return "model"
    if not layers or any(type(layer) is not int or not 0 <= layer < model["layers"] for layer in layers):
        return "layers"
    if layers != sorted(set(layers)):
        return "layers"
    hashes = [model["weights_sha256"], manifest["texts"]["sha256"], manifest["texts"]["windows_sha256"]]
    if not all(re.fullmatch("[0-9a-f]{64}", value) for value in hashes):
        return "sha256"
    if any(manifest["counts"][name] < 0 for name in COUNTS):
        return "counts"
    if part is not None and (_misfit(part, {"number": int, "of": int}) or not 1 <= part["number"] <= part["of"]):
        return "part"
    try:
        options = Options.read(manifest["options"])
    except (HeadscopeError, TypeError):
        return "options"
    return "options" if options.length > _LARGEST or options.layers not in (None, tuple(layers)) else None


def _misfit(value: Any, shape: Any, name: str = "") -> str | None:
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return name or "format"
        for key, inner in shape.items():
            misfit = _misfit(value.get(key), inner, f"{name}.{key}" if name else key)
            if misfit:
                return misfit
        return None
    kinds = shape if isinstance(shape, tuple) else (shape,)
    return None if type(value) in kinds else name
