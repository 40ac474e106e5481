"""A name -> model and tokenizer: a hub id, a folder, or the built-in `minilm`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from headscope.arguments import naming_typos
from headscope.errors import HeadscopeError, printable, shortened
from headscope.files import check_name
from headscope.garbage import without_collecting
from headscope.model.folder_checks import (
    CONFIG,
    check_kind,
    check_numbers,
    check_weights_are_there,
    folder_of_transformer,
    other_weights_notices,
    read_config,
)
from headscope.model.network_checks import check_network
from headscope.model.places import folder_of
from headscope.model.processor import keep_off_tiles
from headscope.model.tokenizer_checks import beginning_notice, check_as_written, check_tokenizer, tokenizer_view
from headscope.model.weight_checks import blank_pooler, building, check_finite, check_loaded, opened, weight_files
from headscope.speaking import option

if TYPE_CHECKING:
    import torch

RANDOM = "random:"
"""`random:NAME` is the architecture of NAME with random weights."""


@dataclass(frozen=True, eq=False)
class Model:
    """A transformer, its tokenizer (of a vision model its image processor), and the name it was asked for by. A model
    of two towers, for texts and for images, has both.

    `headscope.load` makes one, by a name or of a network of your own; `Model(network, tokenizer, "my model")` names it.

    >>> import headscope
    >>> headscope.load("minilm").longest  # doctest: +SKIP
    512
    """

    network: Any
    tokenizer: Any
    name: str
    seed: int = 0
    notices: tuple[str, ...] = ()
    image_processor: Any = None
    """What a reader of its numbers should know of the files it was loaded from, a sentence each."""

    @property
    def device(self) -> torch.device:
        """Where the network lies."""
        device: torch.device = next(self.network.parameters()).device
        return device

    @property
    def dtype(self) -> str:
        """Precision of the weights: float32, float16 or bfloat16."""
        return str(next(self.network.parameters()).dtype).removeprefix("torch.")

    @property
    def architecture(self) -> str:
        """The class of the network."""
        return type(self.network).__name__

    @property
    def takes_images(self) -> bool:
        """It, or one of its two towers."""
        return self.prepares_images is not None

    @property
    def prepares_images(self) -> Any:
        """What scales and crops an image for it; None where it takes texts alone."""
        return self.tokenizer if self.network.main_input_name == "pixel_values" else self.image_processor

    @property
    def embedding_rows(self) -> int | None:
        """Tokens that the network has an embedding for; None where it has no such table."""
        return embedding_rows(self.network)

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
                f"{option('length')} is {length}, but {self.name} takes at most {self.longest} tokens; "
                f"give {option('length', self.longest)} or less."
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


@naming_typos()
@without_collecting()
def load(
    name: Any, *, tokenizer: Any = None, device: str = "auto", dtype: str | None = None, seed: int | None = None
) -> Model:
    """Load a model and its tokenizer, or take those that you have.

    `name`: "minilm" (built in), a folder, a hub id such as "bert-base-uncased", or "random:" before a folder or hub id
    for the same architecture with random weights drawn from `seed`. Weights come from safetensors files only, and
    nothing of a folder is used before it was looked at. device: by default a GPU if there is one. dtype: of the
    weights, by default float32.

    Or a network of transformers that is loaded already, in any precision and on any device, with its `tokenizer` (of a
    vision model, its image processor). It is measured as it is, without the part that comes after its layers.

    >>> import headscope
    >>> model = headscope.load("bert-base-uncased", dtype="bfloat16")  # doctest: +SKIP
    >>> model = headscope.load(network, tokenizer=tokenizer)  # doctest: +SKIP
    """
    if not isinstance(name, str):
        asked = {"device": device != "auto", "dtype": dtype is not None, "seed": seed is not None}
        check_network(name, tokenizer, [argument for argument, given in asked.items() if given])
        return _taken(name, tokenizer)
    if tokenizer is not None:
        raise HeadscopeError(f"tokenizer is for a network that is loaded already; {name!r} brings its own.")
    if not name.removeprefix(RANDOM).strip():
        raise HeadscopeError(f"The model name is {name!r}; give minilm, a folder, or a hub id.")
    seed, dtype = seed or 0, "float32" if dtype is None else dtype
    if dtype not in ("float32", "float16", "bfloat16"):
        raise HeadscopeError(f"{option('dtype')} is {dtype!r}; it must be float32, float16 or bfloat16.")
    check_name(name, "The model")
    import torch
    import transformers

    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    target = _device(device)
    if dtype == "bfloat16" and target.type == "cpu":
        keep_off_tiles()
    random = name.startswith(RANDOM)
    shown = printable(name)
    place = folder_of(name.removeprefix(RANDOM), weights=not random)
    with offline(), readable(place):
        folder = folder_of_transformer(place)
        check_kind(folder)
        fields, notices = read_config(folder, shown, random)
        if not random:
            check_weights_are_there(folder)
        config = _config(folder / CONFIG, fields)
        check_numbers(folder / CONFIG, config)
        network_class, config = _network_class(shown, config)
        tokenizer = _tokenizer(folder, fields, config, for_images=network_class.main_input_name == "pixel_values")
        images = None
        if network_class.main_input_name == "input_ids" and isinstance(fields.get("vision_config"), dict):
            try:
                images = _tokenizer(folder, fields, config, for_images=True)
            except HeadscopeError as problem:
                notices.append(f"Its images can't be measured, only texts: {problem}")
        kind = getattr(torch, dtype)
        if random:
            network = _drawn(shown, network_class, config, kind, seed)
        else:
            network, said = read_network(shown, network_class, config, kind, weight_files(folder))
            notices += [*other_weights_notices(folder), *said]
        network = network.eval().requires_grad_(False)
        check_finite(shown, network)
        if network.main_input_name == "input_ids":
            with _told(f"The tokenizer of {shown} can't be used"):
                notices += check_tokenizer(shown, tokenizer, embedding_rows(network))
                notices += check_as_written(folder, shown, tokenizer)
                notices += beginning_notice(network, tokenizer)
    with _told(f"{shown} can't be put on {target}"):
        network = network.to(target)
    return Model(network, tokenizer, shown, seed, tuple(printable(notice) for notice in notices), images)


def _taken(network: Any, tokenizer: Any) -> Model:
    """A network that the user has loaded, without what comes after its layers."""
    base = network.base_model
    shown = printable(str(network.name_or_path or "") or type(base).__name__)
    check_finite(shown, base)
    notices: list[str] = []
    if base.main_input_name == "input_ids":
        with _told(f"The tokenizer of {shown} can't be used"):
            notices += check_tokenizer(shown, tokenizer, embedding_rows(base))
            notices += beginning_notice(base, tokenizer)
    return Model(base, tokenizer, shown, notices=tuple(printable(notice) for notice in notices))


def _config(path: Path, fields: dict[str, Any]) -> Any:
    """As transformers reads it, from a folder that holds nothing but the fields that were checked."""
    import transformers

    with TemporaryDirectory(prefix="headscope-") as place, _told(f"{path} can't be used", place, str(path.parent)):
        (Path(place) / CONFIG).write_text(json.dumps(fields), "utf-8")
        config = transformers.AutoConfig.from_pretrained(place, trust_remote_code=False, local_files_only=True)
    config.name_or_path = str(path.parent)
    return config


def _network_class(name: str, config: Any) -> tuple[Any, Any]:
    """The class of transformers that AutoModel would take, or the encoder alone where the weights are of that; with the
    config of it. It must take texts or images."""
    import transformers

    found: Any = transformers.AutoModel._model_mapping.get(type(config), None)
    kinds = list(found) if isinstance(found, (list, tuple)) else [found]
    kinds.append(transformers.AutoModelForTextEncoding._model_mapping.get(type(config), None))
    named = getattr(config, "architectures", None)
    kind = next((one for one in kinds if isinstance(named, list) and one and one.__name__ in named), kinds[0])
    if kind is None:
        raise HeadscopeError(
            f"The model {name} ({config.model_type}) is no network that transformers can load by itself."
        )
    if kind.main_input_name not in ("pixel_values", "input_ids"):
        raise HeadscopeError(
            f"The model {name} takes {kind.main_input_name}; headscope measures models that take texts or images."
        )
    of_text = config.sub_configs.get("text_config")
    return kind, config.get_text_config() if of_text is not None and kind.config_class is of_text else config


def _tokenizer(folder: Path, fields: dict[str, Any], config: Any, for_images: bool) -> Any:
    """Of texts a tokenizer, of images an image processor."""
    import transformers

    kind = transformers.AutoImageProcessor if for_images else transformers.AutoTokenizer
    what = "image processor" if for_images else "tokenizer"
    with (
        tokenizer_view(folder, fields, for_images) as view,
        _told(f"The {what} in {folder} can't be used as its settings ask", str(view), str(folder)),
    ):
        return kind.from_pretrained(str(view), config=config, trust_remote_code=False, local_files_only=True)


def _drawn(name: str, network_class: Any, config: Any, kind: torch.dtype, seed: int) -> Any:
    """A network with random weights. It is built without memory first, to see how much it takes."""
    import torch

    with _told(f"The network of {name} can't be built from its config.json"):
        with building(name, kind.itemsize, None), torch.device("meta"):
            network_class._from_config(deepcopy(config), dtype=kind)
        torch.manual_seed(seed)
        return network_class._from_config(config, dtype=kind)


def read_network(
    name: str, network_class: Any, config: Any, kind: torch.dtype, files: list[Path]
) -> tuple[Any, list[str]]:
    """A network with the weights of these files. transformers is handed the tensors, never the folder: no other file
    of it can be opened, and no adapter applied."""
    with (
        opened(files) as tensors,
        _told(f"The network of {name} can't be built from its config.json and weights"),
        building(name, kind.itemsize, tensors),
    ):
        network, info = network_class.from_pretrained(
            None,
            config=config,
            state_dict=dict(tensors.named),
            dtype=kind,
            ignore_mismatched_sizes=True,  # told in check_loaded
            output_loading_info=True,
            local_files_only=True,
        )
        said = check_loaded(name, network, info, tensors)
        blank_pooler(network, info)
        return network, said


def redrawn(model: Model, seed: int) -> Model:
    """The same architecture with random weights, as `random:NAME` has them."""
    name = f"{RANDOM}{model.name.removeprefix(RANDOM)}"
    kind = next(model.network.parameters()).dtype
    network = _drawn(name, type(model.network), deepcopy(model.network.config), kind, seed)
    network = network.eval().requires_grad_(False)
    check_finite(name, network)
    return replace(model, network=network.to(model.device), name=name, seed=seed, notices=())


@contextmanager
def _told(sentence: str, hidden: str = "", instead: str = "") -> Iterator[None]:
    """Whatever transformers or the libraries below it say of a folder becomes the end of one sentence.

    Rust's panics are no Exceptions, and mean the same here: what was given can't be used.
    """
    try:
        yield
    except (HeadscopeError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except MemoryError:
        raise HeadscopeError(f"{sentence}: it takes more memory than there is.") from None
    except RecursionError:
        raise HeadscopeError(f"{sentence}: it is nested too deeply.") from None
    except BaseException as problem:
        reason = " ".join(str(problem).split())
        reason = reason.replace(hidden, instead) if hidden else reason
        if isinstance(problem, KeyError):
            reason = f"transformers does not know {reason}"
        # Errors that wrap others name each of them; the last says what is the matter.
        reason = reason.rpartition("Error: ")[2] or type(problem).__name__
        raise HeadscopeError(f"{sentence}: {shortened(reason)}") from problem


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """What the system does not let be read, wherever in the folder it lies."""
    try:
        yield
    except OSError as problem:
        of = problem.filename or folder
        raise HeadscopeError(f"The model in {folder} can't be read: {problem.strerror or problem} ({of}).") from None


@contextmanager
def offline() -> Iterator[None]:
    """Nothing is fetched while a folder is read, whatever its files name."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def as_model(model: Model | str) -> Model:
    if isinstance(model, Model):
        return model
    if isinstance(model, str):
        return load(model)
    raise HeadscopeError(
        f"model is of type {type(model).__name__}; give a name, or headscope.load(network, tokenizer=tokenizer)."
    )


def embedding_rows(network: Any) -> int | None:
    """Rows of the table of token embeddings."""
    try:
        return int(network.get_input_embeddings().num_embeddings)
    except (AttributeError, NotImplementedError):
        return None


def position_table(network: Any) -> int | None:
    """Rows of a learned position table that hold a position; RoBERTa-type tables begin after the padding index."""
    for name, module in network.named_modules():
        if name.endswith("position_embeddings") and hasattr(module, "num_embeddings"):
            offset = (module.padding_idx + 1) if getattr(module, "padding_idx", None) is not None else 0
            return int(module.num_embeddings) - offset
    return None


def _device(name: str) -> torch.device:
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except Exception as problem:
        reason = str(problem).strip().splitlines()[0]
        raise HeadscopeError(
            f"{option('device', name)} can't be used here ({reason}); try {option('device', 'cpu')}."
        ) from None
    return device
