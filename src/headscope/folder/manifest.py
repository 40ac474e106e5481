"""study.json, typed: what was run. One writer, one reader; older versions are brought to today's on reading.

The files of a study have fixed names: nothing in a manifest says where they are. What it names of texts and model is
where they were read from; only who asks to read them again uses it, and they must have the hashes that it says.
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from safetensors import SafetensorError, safe_open

from headscope.corpus.grid import Grid
from headscope.corpus.null_kinds import Null
from headscope.corpus.texts import Reading
from headscope.corpus.traits import IMAGE, TEXT, Traits
from headscope.errors import HeadscopeError
from headscope.files import check_name, checksum
from headscope.model.proven import Proof
from headscope.options import Options
from headscope.run import checkpoints
from headscope.speaking import either

MANIFEST = "study.json"
IMAGES_MANIFEST = "images.json"
"""What version 0.1.0 wrote for images, which are studies like all others now."""
ARRAYS = "arrays.safetensors"
GROUPS_FILE = "groups.safetensors"
"""What columns are made of, for each group of texts."""
FORMAT = 3
"""Raised when a folder written by this version can't be read by an older one.

1: version 0.1.0. 2: says which columns and arrays there are; images too. 3: symmetric arrays are kept as i < j."""

_LARGEST = 1_000_000
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class ModelFacts:
    """What was measured. `layers` are all there are, measured or not; other_layers: those without attention, and what
    they are. carried_by: what was taken for the length of a value vector, as the "projection" maps it or of the "value"
    itself. proof: that its heads were captured rightly. None: there is none, or an older version did not keep it."""

    name: str
    layers: int
    heads: int
    head_width: int | None = None
    architecture: str | None = None
    family: str | None = None
    weights_sha256: str | None = None
    dtype: str | None = None
    captured_by: str | None = None
    carried_by: str | None = None
    stack: str | None = None
    other_layers: dict[str, str] | None = None
    proof: Proof | None = None


@dataclass(frozen=True)
class FileFacts:
    """One place that texts were read from, mostly a file: how many texts were read, and how many windows of them belong
    to the study; also in a part of it, they are those of the whole."""

    name: str
    texts: int
    windows: int


@dataclass(frozen=True)
class SourceFacts:
    """The texts, or images. windows_sha256: of all windows, by their place in the whole (see `hashes`). reading: how
    texts of files were read; None where they can't be read again from what is said here. files: those really used, in
    order, of very many the first; more_files: how many more; files_not_reached: those that no text was read from,
    because there were windows enough before. None: an older version did not say."""

    name: str
    sha256: str | None = None
    windows_sha256: str | None = None
    grid: Grid | None = None
    reading: Reading | None = None
    files: list[FileFacts] | None = None
    more_files: int = 0
    files_not_reached: int = 0


@dataclass(frozen=True)
class NullFacts:
    """Of a null study: which null it is, and the study that it belongs to, by the hashes of its windows and weights.
    windows: how many that has."""

    kind: Null
    of_windows_sha256: str
    of_weights_sha256: str
    windows: int


@dataclass(frozen=True)
class CountFacts:
    """What was read and what became of it; an image counts as a text of one window.

    windows_in_one_sentence: windows without a sentence end within. tokens: of all texts, but for special ones;
    unknown_tokens: those of them that the tokenizer does not know. window_tokens: of the windows, special ones
    included, padding not. windows_drawn_from: of a sample, how many windows the texts have. pairs_cut: pairs of texts
    that lost tokens at their ends. None: there is none, or an older version did not count.
    """

    windows: int
    texts: int = 0
    texts_without_window: int = 0
    short_windows_left_out: int = 0
    later_windows_left_out: int = 0
    unreadable_records_left_out: int = 0
    other_files_left_out: int = 0
    windows_in_one_sentence: int | None = None
    tokens: int | None = None
    unknown_tokens: int | None = None
    window_tokens: int | None = None
    windows_drawn_from: int | None = None
    pairs_cut: int = 0


@dataclass(frozen=True)
class PartFacts:
    """Which part of a larger study this is."""

    number: int
    of: int
    windows_in_all: int | None = None


@dataclass(frozen=True)
class ExampleFacts:
    """The window that the study keeps: its number, and the file that its text is from."""

    window: int
    origin: str


@dataclass(frozen=True)
class RunFacts:
    """How it ran; None where parts that were merged ran differently."""

    device: str | None = None
    engine: str | None = None
    workers: int | None = None
    threads: int | None = None
    batch_size: int | None = None
    windows_per_shard: int | None = None


@dataclass(frozen=True)
class Manifest:
    """What a study says of itself. layers: the numbers of the layers measured.

    tables: the columns of each table that was written, arrays: the arrays; groups: those that are kept for each group
    of texts. None where an older version did not say, or keep them.
    notices: what was odd about the model. files: name -> SHA-256; None where none were kept. shards: of a part, the
    fingerprint of each of its shards, by the shard's number in the whole. `manifest["model"]["name"]` works as in
    study.json itself.
    """

    headscope: str
    model: ModelFacts
    source: SourceFacts
    options: Options
    layers: list[int]
    counts: CountFacts
    kind: Literal["texts", "images"] = "texts"
    finished: str | None = None
    seconds: float | None = None
    part: PartFacts | None = None
    null: NullFacts | None = None
    example: ExampleFacts | None = None
    run: RunFacts = field(default_factory=RunFacts)
    versions: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    merged: list[str] | None = None
    shards: dict[str, str] | None = None
    tables: dict[str, list[str]] | None = None
    arrays: list[str] | None = None
    groups: list[str] | None = None
    files: dict[str, str] | None = None

    @property
    def gives(self) -> Traits:
        """What is known of the tokens."""
        return IMAGE if self.kind == "images" else TEXT

    @property
    def keeps_windows(self) -> bool:
        """Whether the numbers of every window lie beside the tables; a part may have no window."""
        return self.options.keep_windows and self.counts.windows > 0

    @property
    def of_whole_texts(self) -> bool:
        """Whether every window is a whole text, so that longer windows would be the same."""
        counts = self.counts
        alone = counts.windows == counts.texts - (counts.texts_without_window or 0)
        return self.options.short == "pad" and alone and not counts.later_windows_left_out

    def as_json(self) -> dict[str, Any]:
        """As study.json has it: the source stands under `texts` or `images`."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in ("source", "kind")}
        plain = {name: asdict(value) if is_dataclass(value) else value for name, value in values.items()}  # type: ignore[arg-type]
        plain["options"] = self.options.as_dict()
        return {"format": FORMAT, **plain, self.kind: asdict(self.source)}

    def __getitem__(self, name: str) -> Any:
        return self.as_json()[name]


def manifest_bytes(manifest: Manifest) -> bytes:
    """The file study.json, with a checksum over everything else in it."""
    values = manifest.as_json()
    return (json.dumps({**values, "checksum": manifest_checksum(values)}, indent=1) + "\n").encode()


def manifest_checksum(values: Mapping[str, Any]) -> str:
    """Of what study.json says, however it is laid out."""
    said = {name: value for name, value in values.items() if name != "checksum"}
    return checksum(json.dumps(said, sort_keys=True).encode())


def checksum_is_right(folder: Path) -> bool | None:
    """Whether study.json says what it said when it was written; None where an older version kept no checksum.

    It must be readable: see `read_manifest`.
    """
    path = folder / MANIFEST
    values = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    if "checksum" not in values and values.get("format", 1) == 1:
        return None
    return bool(values.get("checksum") == manifest_checksum(values))


def read_manifest(folder: Path) -> Manifest:
    """Of a finished study, written by this version or an older one."""
    check_name(folder, "The study folder")
    if not folder.is_dir():
        raise HeadscopeError(f"There is no study folder {folder}; check the path.")
    path = folder / MANIFEST
    if not path.is_file() and (folder / IMAGES_MANIFEST).is_file():
        path = folder / IMAGES_MANIFEST
    if not path.is_file():
        if (folder / checkpoints.FOLDER).is_dir():
            raise HeadscopeError(
                f"The study in {folder} is not finished; run "
                f"{either('the same headscope study command', 'the same headscope.study(...)')} again to go on."
            )
        raise HeadscopeError(f"The folder {folder} holds no {MANIFEST}, so it is not a study folder.")
    try:
        values = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        raise HeadscopeError(f"{path} is damaged: it is not JSON; run the study again.") from None
    try:
        if path.name == IMAGES_MANIFEST:
            values = _from_images(values, folder)
        manifest = _migrated(values, folder)
        _check(manifest)
    except Misfit as misfit:
        raise HeadscopeError(f"{path} is damaged: its field {misfit} is missing or not what it must be.") from None
    return manifest


class Misfit(Exception):
    """With the name of the first field that is not as it must be."""


def _migrated(values: Any, folder: Path) -> Manifest:
    version = values.get("format") if isinstance(values, dict) else None
    if type(version) is int and version > FORMAT:
        raise HeadscopeError(f"{folder} was written by a newer headscope; upgrade headscope to read it.")
    if type(version) is not int or version < 1:
        raise Misfit("format")
    kind = "images" if "images" in values else "texts"
    values = {**values, "kind": kind, "source": values.get(kind)}
    manifest: Manifest = typed(Manifest, values, "")
    return manifest


def _from_images(values: Any, folder: Path) -> dict[str, Any]:
    """What version 0.1.0 kept of a study of images, as version 1 of study.json would have it."""
    if not isinstance(values, dict) or not isinstance(values.get("options"), dict):
        raise Misfit("options")
    try:
        with safe_open(folder / ARRAYS, framework="numpy") as file:
            layers, heads = file.get_slice("windows").get_shape()
    except (OSError, SafetensorError, ValueError) as problem:
        raise HeadscopeError(f"{folder / ARRAYS} can't be read ({problem}); the study folder is damaged.") from None
    measured = values["options"].get("layers") or list(range(layers))
    deepest = max((layer for layer in measured if type(layer) is int), default=0)
    return {
        "format": 1,
        "headscope": values.get("headscope"),
        "model": {"name": values.get("model"), "layers": deepest + 1, "heads": heads},
        "images": {"name": "images", "grid": values.get("grid")},
        "options": values["options"],
        "layers": measured,
        "counts": {"windows": values.get("images"), "texts": values.get("images")},
    }


def _check(manifest: Manifest) -> None:
    """What the types alone do not say."""
    model, layers, part = manifest.model, manifest.layers, manifest.part
    if not (1 <= model.heads <= _LARGEST and 1 <= model.layers <= _LARGEST):
        raise Misfit("model")
    if not layers or layers != sorted(set(layers)) or not 0 <= layers[0] <= layers[-1] < model.layers:
        raise Misfit("layers")
    for digest in (model.weights_sha256, manifest.source.sha256, manifest.source.windows_sha256):
        if digest is not None and not _SHA256.fullmatch(digest):
            raise Misfit("sha256")
    if any(count is not None and count < 0 for count in asdict(manifest.counts).values()):
        raise Misfit("counts")
    if part is not None and not 1 <= part.number <= part.of:
        raise Misfit("part")
    if manifest.options.length > _LARGEST or manifest.options.layers not in (None, tuple(layers)):
        raise Misfit("options")
    grid = manifest.source.grid
    if manifest.kind == "images" and (
        grid is None or min(grid.rows, grid.columns) < 1 or grid.before < 0 or grid.tokens != manifest.options.length
    ):
        raise Misfit("grid")


def typed(kind: Any, value: Any, name: str) -> Any:
    """A value of JSON as the type `kind`; what is not such a value is a misfit. Fields that came later have defaults,
    fields of a later version are passed over."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        inner = [one for one in get_args(kind) if one is not type(None)]
        return None if value is None and len(inner) < len(get_args(kind)) else typed(inner[0], value, name)
    if origin is Literal:
        if value not in get_args(kind):
            raise Misfit(name)
        return value
    if origin is list:
        return [typed(get_args(kind)[0], item, name) for item in _of_type(value, name, list)]
    if origin is dict:
        return {key: typed(get_args(kind)[1], item, name) for key, item in _of_type(value, name, dict).items()}
    if kind is Options:
        try:
            return Options.read(_of_type(value, name, dict))
        except (HeadscopeError, TypeError):
            raise Misfit(name) from None
    if is_dataclass(kind):
        return _read_fields(kind, _of_type(value, name, dict), name)
    return _of_type(value, name, int, float) if kind is float else _of_type(value, name, kind)


def _read_fields(kind: Any, values: Mapping[str, Any], name: str) -> Any:
    hints = _hints(kind)
    found = {}
    for item in fields(kind):
        inner = f"{name}.{item.name}" if name else item.name
        if item.name in values:
            found[item.name] = typed(hints[item.name], values[item.name], inner)
        elif item.default is MISSING and item.default_factory is MISSING:
            raise Misfit(inner)
    return kind(**found)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Which takes a while to find out, and a manifest has a thousand facts of one kind."""
    return get_type_hints(kind)


def _of_type(value: Any, name: str, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise Misfit(name)
    return value
