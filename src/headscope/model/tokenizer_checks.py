"""The tokenizer is the model's: its files are there and make sense, and every id that it gives has an embedding."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headscope.corpus.tokenizing import unknown_ids
from headscope.corpus.windows import special_ids
from headscope.errors import HeadscopeError
from headscope.model.folder_checks import CONFIG, MEGABYTE, check_depth, check_sizes, read_object

WHOLE = "tokenizer.json"
_VOCABULARIES = ("vocab.txt", "vocab.json", "tekken.json", "vocab.bpe", "bpe.codes", "*.model", "*.tiktoken", "*.spm")
"""Files that hold the words of a tokenizer where there is no tokenizer.json."""
_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
_PLAIN = ("merges.txt",)
_OF_IMAGES = ("preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json")
_LARGEST = 512 * MEGABYTE
_LARGEST_IMAGE = 2**14
"""Pixels of a side."""
_PROBE = "The cat, aged 3, sat: a naïve café in 京都 🜚!"
_FEW = 0.5
"""A tokenizer that knows fewer of the embedding's rows than this is hardly the model's."""
_BEGINNINGS = {
    "<bos>": ("gemma", "recurrent_gemma", "paligemma"),
    "<|begin_of_text|>": ("llama", "mllama"),
    "<BOS_TOKEN>": ("cohere",),
    "<｜begin▁of▁sentence｜>": ("deepseek", "llama", "qwen2"),
    "<s>": ("llama", "mistral", "mixtral", "ministral"),
    "</s>": ("opt",),
}
"""The token that texts begin with in training -> the decoders, by how their model_type begins, of which that is so."""


@contextmanager
def tokenizer_view(folder: Path, config: dict[str, Any], for_images: bool) -> Iterator[Path]:
    """A folder of nothing but what a tokenizer, or an image processor, is read from, each file looked at before.

    What names other files or code is taken out of the settings, so nothing else can be reached from there.
    """
    wanted = _OF_IMAGES if for_images else _SETTINGS
    _check_class(folder / CONFIG, config)
    with TemporaryDirectory(prefix="headscope-") as place:
        view = Path(place)
        found = False
        for name in wanted:
            if (folder / name).exists():
                settings = read_object(folder / name)
                check_depth(folder / name, settings)
                if for_images:
                    check_sizes(folder / name, settings, _LARGEST_IMAGE)
                    found = True
                _check_class(folder / name, settings)
                (view / name).write_text(json.dumps(_within(settings)), "utf-8")
        if for_images and not found:
            raise HeadscopeError(
                f"The folder {folder} holds no preprocessor_config.json, which says how images are prepared; "
                "fetch the model again with all its files."
            )
        if not for_images:
            _show_vocabulary(folder, view)
        (view / CONFIG).write_text(json.dumps(config), "utf-8")
        yield view


def _show_vocabulary(folder: Path, view: Path) -> None:
    whole = folder / WHOLE
    if whole.exists():
        _check_whole(whole)
    shown = [whole] if whole.is_file() else []
    for pattern in (*_VOCABULARIES, *_PLAIN):
        shown += [path for path in sorted(folder.glob(pattern)) if path.is_file()]
    if not any(path.name not in _PLAIN for path in shown):
        raise HeadscopeError(
            f"The folder {folder} holds no tokenizer (tokenizer.json, or a vocabulary such as vocab.txt); "
            "fetch the model again with all its files, or save its tokenizer there."
        )
    for path in shown:
        try:
            size = path.stat().st_size
            with path.open("rb"):
                pass
        except OSError as problem:
            raise HeadscopeError(f"{path} can't be read: {problem.strerror or problem}.") from None
        if not 0 < size <= _LARGEST:
            raise HeadscopeError(f"{path} is {f'{size // MEGABYTE:,} MB large' if size else 'empty'}; fetch it again.")
        (view / path.name).symlink_to(path.resolve())


def _check_whole(path: Path) -> None:
    """tokenizer.json: a model with a vocabulary."""
    model = read_object(path, _LARGEST).get("model")
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), (dict, list)):
        raise HeadscopeError(f"{path} holds no vocabulary (model, vocab), so it is not a tokenizer; fetch it again.")
    if not model["vocab"]:
        raise HeadscopeError(f"{path} holds an empty vocabulary; fetch it again.")


def _check_class(path: Path, settings: dict[str, Any]) -> None:
    """The class that is named is one of transformers, and of the right kind: it would call any class of that name."""
    import transformers

    for field in ("tokenizer_class", "image_processor_type"):
        named = settings.get(field)
        if named is None:
            continue
        if not isinstance(named, str) or not re.fullmatch(r"(?!_)\w*", named, re.ASCII):
            raise HeadscopeError(f"{path} gives {named!r} as {field}, which is not the name of a class.")
        known = getattr(transformers, named, None) or getattr(transformers, named.removesuffix("Fast") or "_", None)
        if known is None and settings.get("auto_map"):
            raise HeadscopeError(f"{path} needs code of its own ({named}), and headscope runs no remote code.")
        wanted = (
            transformers.PreTrainedTokenizerBase if field == "tokenizer_class" else transformers.ImageProcessingMixin
        )
        if known is not None and not (isinstance(known, type) and issubclass(known, wanted)):
            raise HeadscopeError(f"{path} gives {named} as {field}, which is none.")


def _within(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in settings.items()
        if name not in ("auto_map", "fast_tokenizer_files", "init_inputs", "name_or_path", "backend")
        and not name.endswith(("_file", "_files"))
    }


def check_tokenizer(name: str, tokenizer: Any, rows: int | None) -> list[str]:
    """Refuse a tokenizer that can't be this model's; what is only doubtful is said.

    rows: tokens in the embedding of the network, None where it has no such table.
    """
    if not getattr(tokenizer, "is_fast", False):
        return []
    bare = _encoded(name, tokenizer)
    before, after = special_ids(tokenizer)
    added = set(tokenizer.added_tokens_decoder)
    vocabulary = set(tokenizer.get_vocab().values())
    notices = []
    if rows is not None:
        used = [*bare, *before, *after, *unknown_ids(tokenizer)]
        beyond = max([*used, *(vocabulary - added)])
        if beyond >= rows:
            raise HeadscopeError(
                f"The tokenizer of {name} gives the id {beyond}, but the embedding of the network has {rows:,} rows; "
                "the tokenizer belongs to another model."
            )
        extra = sorted(token for token in added if token >= rows)
        if extra:
            notices.append(
                f"The tokenizer has {len(extra)} added tokens without a row in the embedding "
                f"({tokenizer.convert_ids_to_tokens(extra[0])} first); a text that holds one is refused."
            )
        if len(vocabulary) < _FEW * rows:
            notices.append(
                f"The tokenizer knows only {len(vocabulary):,} of the {rows:,} tokens in the embedding; "
                "it may belong to another model."
            )
    if not tokenizer("\U0001f73a", add_special_tokens=False)["input_ids"]:
        notices.append("The tokenizer has no unknown token: characters that it does not know are dropped.")
    return notices


def _encoded(name: str, tokenizer: Any) -> list[int]:
    """A sample with signs that hardly any vocabulary holds: a tokenizer that can't take them fails here, not later."""
    from tokenizers import models

    model = tokenizer.backend_tokenizer.model
    unknown = getattr(model, "unk_token", None)
    if isinstance(model, (models.WordPiece, models.WordLevel)) and model.token_to_id(unknown or "") is None:
        raise HeadscopeError(
            f"The vocabulary of {name} has no unknown token ({unknown}), so its tokenizer fails on words that it does "
            "not know; fetch it again."
        )
    ids: list[int] = tokenizer(_PROBE, add_special_tokens=False)["input_ids"]
    if not ids:
        raise HeadscopeError(f"The tokenizer of {name} makes no tokens of a text; fetch it again.")
    return ids


def check_as_written(folder: Path, name: str, tokenizer: Any) -> list[str]:
    """transformers makes some tokenizers anew from the vocabulary; the result must be what tokenizer.json says."""
    from tokenizers import Tokenizer

    if not (folder / WHOLE).is_file() or not getattr(tokenizer, "is_fast", False):
        return []
    written = Tokenizer.from_file(str(folder / WHOLE))
    kinds = [type(one).__name__ for one in (written.model, tokenizer.backend_tokenizer.model)]
    if kinds[0] != kinds[1]:
        raise HeadscopeError(
            f"{folder / WHOLE} is a {kinds[0]} tokenizer, but transformers makes a {kinds[1]} one of it "
            f"({type(tokenizer).__name__}); name the right tokenizer_class in tokenizer_config.json, "
            "PreTrainedTokenizerFast takes it as it is."
        )
    written.no_truncation()
    written.no_padding()
    if written.encode(_PROBE, add_special_tokens=False).ids == tokenizer(_PROBE, add_special_tokens=False)["input_ids"]:
        return []
    return [
        f"transformers ({type(tokenizer).__name__}) cuts a sample text into other tokens than tokenizer.json says; "
        "if that is not meant, set tokenizer_class in tokenizer_config.json to PreTrainedTokenizerFast."
    ]


def beginning_notice(network: Any, tokenizer: Any) -> list[str]:
    """A decoder trained on texts that begin with a token which this tokenizer does not put there."""
    config = network.config
    begin = getattr(tokenizer, "bos_token", None)
    families = _BEGINNINGS.get(begin or "", ())
    if getattr(config, "is_encoder_decoder", False) or not config.model_type.startswith(families or ("\0",)):
        return []
    if special_ids(tokenizer)[0]:
        return []
    return [
        f"Models of the type {config.model_type} are trained on texts that begin with {begin}, but this tokenizer does "
        "not put it there; the first token of a window then takes attention that would lie on it."
    ]
