"""What differs between studies: weights, texts and windows by their hashes, all else field by field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pandas as pd

from headscope.corpus.null_kinds import CALLED
from headscope.folder.manifest import Manifest
from headscope.wording import listed, ranges

WEIGHTS, TEXTS, WINDOWS = "weights", "texts", "windows"
WITHOUT_EFFECT = {f"option {name}" for name in ("windows", "sentences", "max_windows", "batch_size", "maps")}
"""Where windows are the same by their hash, these change no number, but for its last digits."""
NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")

_HASH = re.compile("[0-9a-f]{64}")


def facts(manifest: Manifest) -> dict[str, str | None]:
    """All that can differ between two studies, but for names and how they ran; None: there is none, or an older version
    did not say."""
    model, source, null = manifest.model, manifest.source, manifest.null
    options = {
        f"option {name}": _said(value)
        for name, value in manifest.options.as_dict().items()
        if name not in ("layers", "stack")  # those that were measured are among the facts of the model
    }
    return {
        WEIGHTS: model.weights_sha256,
        "architecture": model.architecture,
        "family": model.family,
        "stack": model.stack,
        "layers": str(model.layers),
        "layers measured": ranges(manifest.layers),
        "heads": str(model.heads),
        "width of a head": _said(model.head_width),
        "precision": model.dtype,
        "carried by": model.carried_by,
        TEXTS: source.sha256,
        WINDOWS: source.windows_sha256,
        "grid": None if source.grid is None else f"{source.grid.rows} x {source.grid.columns}",
        "null": None if null is None else null.kind,
        **options,
        "version of headscope": manifest.headscope,
        **{f"version of {name}": version for name, version in manifest.versions.items()},
    }


def what_differs(manifests: Mapping[str, Manifest]) -> pd.DataFrame:
    """A row for each fact that is not the same in all studies: `what`, then a column a study, whole hashes among them.
    None: there is none, or it is not known.

    >>> from headscope.folder.study_folder import StudyFolder
    >>> what_differs({name: StudyFolder(name).manifest for name in ("wiki", "news")})  # doctest: +SKIP
          what      wiki      news
    0    texts  dc956...  1f08b...
    """
    said = {name: facts(manifest) for name, manifest in manifests.items()}
    every = dict.fromkeys(what for one in said.values() for what in one)
    rows = [{"what": what, **{name: one.get(what) for name, one in said.items()}} for what in every]
    differing = [row for row in rows if len({row[name] for name in manifests}) > 1]
    return pd.DataFrame(differing, columns=["what", *manifests], dtype=object)


def shortened(value: str | None) -> str:
    """As it is shown: a hash by its beginning.

    >>> shortened("0123456789abcdef" * 4), shortened("all"), shortened(None)
    ('01234567…', 'all', '–')
    """
    if value is None:
        return "–"
    return f"{value[:8]}…" if _HASH.fullmatch(value) else value


def heading(manifests: Sequence[Manifest]) -> str:
    """What the studies are to each other, in a sentence without its full stop: "The same model on different texts"."""
    differing = set(what_differs({str(number): manifest for number, manifest in enumerate(manifests)})["what"])
    if same_model(manifests) and same_windows(manifests):
        otherwise = [what for what in facts(manifests[0]) if what in differing - WITHOUT_EFFECT]
        if not otherwise:
            times = "twice" if len(manifests) == 2 else f"{len(manifests)} times"
            return f"The same study {times}: the same model on the same windows, measured alike"
        return f"The same model on the same windows, with another {listed(otherwise)}"
    nulls = [CALLED[manifest.null.kind] for manifest in manifests if manifest.null is not None]
    of_nulls = f", nulls among them ({', '.join(nulls)})" if nulls else ""
    return f"{_models(manifests)} on {_texts(manifests)}{of_nulls}"


def same_model(manifests: Sequence[Manifest]) -> bool:
    return _same([manifest.model.weights_sha256 for manifest in manifests])


def same_texts(manifests: Sequence[Manifest]) -> bool:
    """By their hash; of what an older version kept no hash of, it can't be said."""
    return _same([manifest.source.sha256 for manifest in manifests])


def same_windows(manifests: Sequence[Manifest]) -> bool:
    """The same tokens in the same order, in the same sentences."""
    return _same([manifest.source.windows_sha256 for manifest in manifests])


def same_shape(manifests: Sequence[Manifest]) -> bool:
    shapes = [
        (model.family, model.stack, model.layers, model.heads, model.head_width)
        for model in (manifest.model for manifest in manifests)
    ]
    return len(set(shapes)) == 1


def other_tokenizers(manifests: Sequence[Manifest]) -> bool:
    """Whether the same texts, cut alike, became other windows, so that it was the tokenizers."""
    cut = [
        (
            [
                getattr(manifest.options, name)
                for name in ("length", "windows", "short", "sentences", "max_windows", "sample")
            ],
            None if manifest.options.sample is None else manifest.options.seed,
            manifest.null,
            manifest.headscope,
            manifest.versions.get("nupunkt"),
        )
        for manifest in manifests
    ]
    return same_texts(manifests) and not same_windows(manifests) and all(one == cut[0] for one in cut)


def _models(manifests: Sequence[Manifest]) -> str:
    weights = {manifest.model.weights_sha256 for manifest in manifests}
    studies = f"{_number(len(manifests))} studies"
    if None in weights:
        return f"{studies} whose weights have no hash"
    if len(weights) == 1:
        stacks = {manifest.model.stack for manifest in manifests}
        return "The same model" if len(stacks) == 1 else f"{_number(len(stacks))} stacks of the same model"
    shape = "the same shape" if same_shape(manifests) else "different shapes"
    some = f", in {studies.lower()}," if len(weights) < len(manifests) else ""
    return f"{_number(len(weights))} models of {shape}{some}"


def _texts(manifests: Sequence[Manifest]) -> str:
    kind = manifests[0].kind
    if same_windows(manifests):
        return "the same windows" if kind == "texts" else "the same images"
    if None in {manifest.source.sha256 for manifest in manifests}:
        return f"{kind} that have no hash"
    if not same_texts(manifests):
        return f"different {kind}"
    if kind == "images" or any(manifest.null for manifest in manifests):
        return f"the same {kind}"
    return f"the same texts, cut into other windows{' by their tokenizers' if other_tokenizers(manifests) else ''}"


def _same(hashes: Sequence[str | None]) -> bool:
    return None not in hashes and len(set(hashes)) == 1


def _said(value: object) -> str | None:
    return None if value is None else str(value)


def _number(count: int) -> str:
    return NUMBERS[count] if count < len(NUMBERS) else f"{count:,}"
