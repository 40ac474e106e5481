"""A finished study where one is to be written: whether it is the one that is asked for, by its hashes and options."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from headscope.corpus.text_windows import texts_hash
from headscope.corpus.texts import Texts
from headscope.errors import HeadscopeError
from headscope.folder.manifest import IMAGES_MANIFEST, MANIFEST, Manifest, PartFacts, read_manifest
from headscope.folder.study_folder import why_not_here
from headscope.model.loading import Model
from headscope.options import Options
from headscope.run import checkpoints
from headscope.run.shards import Part
from headscope.speaking import option
from headscope.wording import listed


def is_there(folder: Path, model: Model, texts: Texts, options: Options, part: Part, example: int) -> bool:
    """Whether the folder holds this very study, finished. One that differs is refused, and said to differ in what."""
    if not any((folder / name).is_file() for name in (MANIFEST, IMAGES_MANIFEST)):
        return False
    manifest = read_manifest(folder)
    differing = _differences(manifest, model, options, part, example)
    if not differing and not _are_the_texts(manifest, texts):
        differing = ["texts"]
    if differing:
        raise HeadscopeError(why_not_here(folder, f" that differs in {listed(differing)}"))
    # A run that was killed in its last moment, when all results were written, leaves some.
    checkpoints.clear(folder)
    return True


def _differences(manifest: Manifest, model: Model, options: Options, part: Part, example: int) -> list[str]:
    """All that is known without reading texts."""
    there = manifest.part or PartFacts(1, 1)
    kept = manifest.example
    mine, theirs = options.as_fields(), manifest.options.as_fields()
    return [
        *(["model"] if manifest.model.weights_sha256 != model.weights_hash else []),
        *(option(name) for name in mine if mine[name] != theirs[name]),
        *([option("shard")] if (there.number, there.of) != (part.number, part.of) else []),
        *([option("example")] if kept is not None and kept.window != example else []),
    ]


def _are_the_texts(manifest: Manifest, texts: Texts) -> bool:
    """By their hash. Where windows enough were found, no text after them was read; otherwise there may be none."""
    counts, part = manifest.counts, manifest.part
    windows = counts.windows if part is None else part.windows_in_all
    records = iter(texts)
    if texts_hash(islice(records, counts.texts)) != manifest.source.sha256:
        return False
    return windows == manifest.options.max_windows or next(records, None) is None
