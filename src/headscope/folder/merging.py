"""Several studies, or the parts of one, added up."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from headscope.corpus.used_sources import MOST_LISTED
from headscope.errors import HeadscopeError
from headscope.files import Arrays, checksum, file_checksum, write_atomically
from headscope.folder.array_file import ArrayFile
from headscope.folder.by_windows import write_by
from headscope.folder.manifest import (
    ARRAYS,
    GROUPS_FILE,
    CountFacts,
    Manifest,
    PartFacts,
    RunFacts,
    checksum_is_right,
)
from headscope.folder.study_folder import EXAMPLE, REST, StudyFolder, claim
from headscope.folder.windows_file import WINDOWS_FILE, merge_windows
from headscope.folder.writing import write
from headscope.measure.catalogue import DERIVED, STATES, kept_states, state_specs
from headscope.measure.declaration import GROUPS
from headscope.measure.tables import TABLES
from headscope.run import checkpoints
from headscope.run.fingerprints import add_hashes, windows_hash
from headscope.run.sums import ExactSum

_FREE = ("batch_size",)
"""Options that change at most the last digits."""
_HOW_MANY = ("max_windows", "sample")
"""Options that say how many windows of its texts a study is of."""
_OF_A_PART = ("windows", "windows_in_one_sentence", "window_tokens")
"""Counts of the windows of one part; the others are of all texts, and the same in every part."""
_DECIDING = ("torch", "transformers", "nupunkt")
"""Libraries whose version may change what is measured."""


def merge_folders(
    folders: Iterable[str | os.PathLike[str]], *, out: str | os.PathLike[str], overwrite: bool = False
) -> Path:
    """Add up the parts of one study, or studies of different texts, and write a study folder: see `headscope.merge`."""
    studies = [StudyFolder(folder) for folder in folders]
    target = Path(out)
    if len(studies) < 2:
        raise HeadscopeError("There is nothing to merge; name at least two study folders.")
    for study in studies:
        _check_files(study)
    if any(study.manifest.part for study in studies):
        studies = _parts(studies)
    _check_alike(studies)
    claim(target, overwrite)
    with checkpoints.locked(target):
        total = _total(studies)
        shown = next((study for study in studies if study.manifest.example is not None), None)
        if shown is not None:
            for name in EXAMPLE:
                write_atomically(target / name, (shown.folder / name).read_bytes())
        written = None
        if any(study.manifest.groups is None for study in studies):
            written = {
                name: set.intersection(*(set(map(str, study.table(name))) for study in studies)) for name in TABLES
            }
        merged = _manifest(studies)
        if merged.keeps_windows:
            merge_windows(target, [(study.folder, study.manifest) for study in studies if study.windows])
            write_by(target, merged)
        write(target, merged, total, only=written)
    return target


def _parts(studies: list[StudyFolder]) -> list[StudyFolder]:
    """The parts of one study in their order, all there and each once."""
    first = studies[0]
    by_number: dict[int, StudyFolder] = {}
    for study in studies:
        part = _part(study)
        if study.manifest.source.sha256 != first.manifest.source.sha256:
            raise HeadscopeError(f"{first.folder} and {study.folder} are parts of studies of different texts.")
        if part.of != _part(first).of:
            raise HeadscopeError(
                f"{first.folder} is one of {_part(first).of} parts and {study.folder} one of "
                f"{part.of}; parts of different cuts can't be merged."
            )
        twin = by_number.setdefault(part.number, study)
        if twin is not study:
            raise HeadscopeError(f"{twin.folder} and {study.folder} are both part {part.number}; leave one out.")
    count = _part(first).of
    missing = [number for number in range(1, count + 1) if number not in by_number]
    if missing:
        listed = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        raise HeadscopeError(f"Of the {count} parts, {listed} {'is' if len(missing) == 1 else 'are'} missing.")
    ordered = [by_number[number] for number in sorted(by_number)]
    _check_shards(ordered)
    return ordered


def _part(study: StudyFolder) -> PartFacts:
    if study.manifest.part is None:
        raise HeadscopeError(f"{study.folder} is a whole study and can't be merged with parts of one.")
    return study.manifest.part


def _check_shards(parts: list[StudyFolder]) -> None:
    """Each part must hold its own shards of the whole, and no other's: a part under another's number counts twice."""
    for study in parts:
        part, shards = _part(study), study.manifest.shards
        if shards is None:  # a part of version 0.1.0 does not list them
            continue
        numbers = sorted(map(int, shards)) if all(number.isdecimal() for number in shards) else [-1]
        per_shard = study.manifest.run.windows_per_shard or 0
        in_all = -(-(part.windows_in_all or 0) // per_shard) if per_shard else -1
        mine = list(range(part.number - 1, in_all, part.of))
        held = windows_hash({int(number): value for number, value in shards.items() if number.isdecimal()})
        if numbers != mine or held != study.manifest.source.windows_sha256:
            raise HeadscopeError(
                f"{study.folder} says it is part {part.number} of {part.of}, but holds other windows than that part; "
                "run it again."
            )
    known = [study.manifest.part.windows_in_all for study in parts if study.manifest.part is not None]
    if len(set(known)) > 1:
        raise HeadscopeError(f"The parts do not agree on how many windows the whole has ({known[0]} and others).")


def _check_alike(studies: list[StudyFolder]) -> None:
    """Refuse what can't be added up, by name."""
    first = studies[0]
    wholes = first.manifest.part is None
    texts: dict[str | None, StudyFolder] = {}
    for study in studies:
        for name, (value, shown) in _facts(first, wholes).items():
            other, other_shown = _facts(study, wholes)[name]
            if value != other:
                raise HeadscopeError(
                    f"{first.folder} and {study.folder} differ in {name}: {shown} and {other_shown}; "
                    "only studies made alike can be merged."
                )
        twin = texts.setdefault(study.manifest.source.windows_sha256, study)
        if wholes and twin is not study:
            raise HeadscopeError(
                f"{twin.folder} and {study.folder} measured the same windows; merged, they would count twice."
            )


def _facts(study: StudyFolder, wholes: bool) -> dict[str, tuple[Any, Any]]:
    """What must be the same, and how it is said."""
    manifest, model = study.manifest, study.manifest.model
    free = (*_FREE, *_HOW_MANY) if wholes else _FREE
    facts = {
        "kind": manifest.kind,
        "null": manifest.null.kind if manifest.null else "none",
        "version of headscope": manifest.headscope,
        **{f"version of {name}": manifest.versions.get(name) for name in _DECIDING},
        "precision": model.dtype,
        "heads": model.heads,
        "layers measured": manifest.layers,
        "grid of patches": study.grid,
        "arrays": manifest.arrays,
        **{name: value for name, value in manifest.options.as_dict().items() if name not in free},
    }
    weights = model.weights_sha256
    return {
        "model": (weights, f"{model.name} (weights {(weights or 'unknown')[:8]})"),
        **{name: (value, value) for name, value in facts.items()},
    }


def _check_files(study: StudyFolder) -> None:
    manifest = study.manifest
    if manifest.files is None:
        raise HeadscopeError(f"{study.folder} was written without checksums, so it can't be merged; run it again.")
    if checksum_is_right(study.folder) is False:
        raise HeadscopeError(f"{study.folder / 'study.json'} was changed after the study was finished; run it again.")
    held = [ARRAYS, *((GROUPS_FILE,) if manifest.groups else ()), *((REST,) if manifest.part else ())]
    held += [WINDOWS_FILE] if manifest.keeps_windows else []
    for name in (*held, *(EXAMPLE if manifest.example else ())):
        path = study.folder / name
        if not path.is_file() or file_checksum(path) != manifest.files.get(name):
            raise HeadscopeError(f"{path} is damaged: it is not what {study.folder} was finished with; run it again.")


def _total(studies: list[StudyFolder]) -> ExactSum:
    total = ExactSum()
    texts = 0
    for study in studies:
        if study.manifest.part:
            total.add(_states(study), _rest(study))
        else:
            total.add(_numbered_on(study, _states(study), texts), None)
            texts += study.manifest.counts.texts
    total.settle()
    return total


def _numbered_on(study: StudyFolder, states: Arrays, texts: int) -> Arrays:
    """The states of a study whose texts come after so many others, and so belong to other groups of texts."""
    if texts % GROUPS == 0:
        return states
    grouped = study.manifest.groups or ()
    return {
        name: np.roll(array, texts, STATES[name].shape.index("G")) if name in grouped else array
        for name, array in states.items()
    }


def _states(study: StudyFolder) -> Arrays:
    """What adds up: the states, by group of texts where they are kept so, and what was derived from states that are
    not kept, or that were one in another version. What a version did not have is not in the sum either."""
    arrays, grouped = study.arrays, study.manifest.groups or ()
    names = kept_states(study.manifest.gives).keys() - set(grouped)
    orphaned = {name for name, derived in DERIVED.items() if not all(state in arrays for state in derived.made_of)}
    alone = names | orphaned
    by_group = {name: study.groups.packed(name) for name in grouped}
    return by_group | {name: arrays.packed(name) for name in sorted(alone) if name in arrays}


def _rest(study: StudyFolder) -> Arrays:
    """Of parts: what rounding cut off."""
    specs = state_specs(*study.size, study.manifest.gives)
    file = ArrayFile(study.folder / REST, specs if study.manifest.groups else {})
    return {name: file.packed(name) for name in file}


def _added(counts: list[int | None]) -> int | None:
    """Unknown where one of them is."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _files(manifests: list[Manifest]) -> dict[str, Any]:
    """Of studies of different texts: the files of all; None where one does not say them."""
    sources = [manifest.source for manifest in manifests]
    listed = [file for source in sources for file in source.files or ()]
    return {
        "files": None if any(source.files is None for source in sources) else listed[:MOST_LISTED],
        "more_files": sum(source.more_files for source in sources) + len(listed[MOST_LISTED:]),
        "files_not_reached": sum(source.files_not_reached for source in sources),
    }


def _manifest(studies: list[StudyFolder]) -> Manifest:
    manifests = [study.manifest for study in studies]
    first = manifests[0]
    parts = first.part is not None
    counts: dict[str, Any] = {
        item.name: _added([getattr(manifest.counts, item.name) for manifest in manifests])
        if item.name in _OF_A_PART or not parts
        else getattr(first.counts, item.name)
        for item in fields(CountFacts)
    }
    asked = {tuple(getattr(manifest.options, name) for name in _HOW_MANY) for manifest in manifests}
    options = first.options if len(asked) == 1 else replace(first.options, max_windows=None, sample=None)
    runs = [asdict(manifest.run) for manifest in manifests]
    alike = {name: value if all(run[name] == value for run in runs) else None for name, value in runs[0].items()}
    hashes = [manifest.source.sha256 or "" for manifest in manifests]
    return replace(
        first,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(sum(manifest.seconds or 0 for manifest in manifests), 3),
        source=replace(
            first.source,
            name=first.source.name if parts else " + ".join(manifest.source.name for manifest in manifests),
            sha256=hashes[0] if parts else checksum("".join(hashes).encode()),
            windows_sha256=add_hashes(manifest.source.windows_sha256 or "0" for manifest in manifests),
            **({} if parts else _files(manifests)),
        ),
        options=options,
        counts=CountFacts(**counts),
        part=None,
        shards=None,
        example=next((manifest.example for manifest in manifests if manifest.example is not None), None),
        run=RunFacts(**alike | {"device": alike["device"] or "several", "engine": "merge", "workers": len(studies)}),
        merged=[str(study.folder) for study in studies],
    )
