"""Several studies, or the parts of one, added up."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headscope.errors import HeadscopeError
from headscope.files import Arrays, checksum, file_checksum, write_atomically
from headscope.folder import study_folder as results
from headscope.folder.manifest import MEASURED
from headscope.folder.study_folder import ARRAYS, EXAMPLE, REST, ArrayFile, Study
from headscope.measure.shapes import Specs, state_specs
from headscope.options import Options
from headscope.run import checkpoints
from headscope.run.sums import Sum

_FREE = ("batch_size", "seed")
"""Options that change at most the last digits, or (with the same weights) nothing."""


def merge(folders: Iterable[str | os.PathLike[str]], *, out: str | os.PathLike[str], overwrite: bool = False) -> Study:
    """Add up the parts of one study (`shard="3/16"`), or studies of different texts, and write a study folder.

    All parts of a study must be there, each once; merged, they are the whole, to the last bit.
    Studies of different texts are added in the order given.
    """
    studies = [Study(folder) for folder in folders]
    target = Path(out)
    if len(studies) < 2:
        raise HeadscopeError("There is nothing to merge; name at least two study folders.")
    if any(study.manifest["part"] for study in studies):
        studies = _parts(studies)
    _check_alike(studies)
    for study in studies:
        _check_files(study)
    results.claim(target, overwrite)
    with checkpoints.locked(target):
        total = _total(studies)
        manifest = _manifest(studies)
        shown = next((study for study in studies if study.manifest["example"] is not None), None)
        if shown is not None:
            for name in EXAMPLE:
                write_atomically(target / name, (shown.folder / name).read_bytes())
        return results.write(target, manifest, total)


def _parts(studies: list[Study]) -> list[Study]:
    """The parts of one study in their order, all there and each once."""
    first = studies[0]
    by_number: dict[int, Study] = {}
    for study in studies:
        part = study.manifest["part"]
        if part is None:
            raise HeadscopeError(f"{study.folder} is a whole study and can't be merged with parts of one.")
        if study.manifest["texts"]["sha256"] != first.manifest["texts"]["sha256"]:
            raise HeadscopeError(f"{first.folder} and {study.folder} are parts of studies of different texts.")
        if part["of"] != (first.manifest["part"] or part)["of"]:
            raise HeadscopeError(
                f"{first.folder} is one of {first.manifest['part']['of']} parts and {study.folder} one of "
                f"{part['of']}; parts of different cuts can't be merged."
            )
        twin = by_number.setdefault(part["number"], study)
        if twin is not study:
            raise HeadscopeError(f"{twin.folder} and {study.folder} are both part {part['number']}; leave one out.")
    count = first.manifest["part"]["of"]
    missing = [number for number in range(1, count + 1) if number not in by_number]
    if missing:
        listed = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        raise HeadscopeError(f"Of the {count} parts, {listed} {'is' if len(missing) == 1 else 'are'} missing.")
    return [by_number[number] for number in sorted(by_number)]


def _check_alike(studies: list[Study]) -> None:
    """Refuse what can't be added up, by name."""
    first = studies[0]
    wholes = first.manifest["part"] is None
    texts: dict[str, Study] = {}
    for study in studies:
        for name, (value, shown) in _facts(first, wholes).items():
            other, other_shown = _facts(study, wholes)[name]
            if value != other:
                raise HeadscopeError(
                    f"{first.folder} and {study.folder} differ in {name}: {shown} and {other_shown}; "
                    "only studies made alike can be merged."
                )
        twin = texts.setdefault(study.manifest["texts"]["windows_sha256"], study)
        if wholes and twin is not study:
            raise HeadscopeError(
                f"{twin.folder} and {study.folder} measured the same windows; merged, they would count twice."
            )


def _facts(study: Study, wholes: bool) -> dict[str, tuple[Any, Any]]:
    """What must be the same, and how it is said."""
    manifest = study.manifest
    model = manifest["model"]
    free = (*_FREE, "max_windows") if wholes else _FREE
    facts = {
        "version of headscope": manifest["headscope"],
        "precision": model["dtype"],
        "heads": model["heads"],
        "layers measured": manifest["layers"],
        **{name: value for name, value in Options.read(manifest["options"]).as_dict().items() if name not in free},
    }
    weights = model["weights_sha256"]
    return {
        "model": (weights, f"{model['name']} (weights {weights[:8]})"),
        **{name: (value, value) for name, value in facts.items()},
    }


def _check_files(study: Study) -> None:
    for name in (ARRAYS, *((REST,) if study.manifest["part"] else ()), *(EXAMPLE if study.manifest["example"] else ())):
        path = study.folder / name
        if not path.is_file() or file_checksum(path) != study.manifest["files"].get(name):
            raise HeadscopeError(f"{path} is damaged: it is not what {study.folder} was finished with; run it again.")


def _total(studies: list[Study]) -> Sum:
    total: Sum | None = None
    for study in studies:
        specs = state_specs(*study.size)
        rests = {name: spec for name, spec in specs.items() if spec[0] == "float64"}
        states = _taken(ArrayFile(study.folder / ARRAYS, specs), specs)
        rest = _taken(ArrayFile(study.folder / REST, rests), rests) if study.manifest["part"] else None
        if total is None:
            total = Sum(states, rest)
        else:
            total.add(states, rest)
    assert total is not None
    total.settle()
    return total


def _taken(file: ArrayFile, specs: Specs) -> Arrays:
    return {name: file[name] for name in specs}


def _manifest(studies: list[Study]) -> dict[str, Any]:
    manifests = [study.manifest for study in studies]
    first = manifests[0]
    parts = first["part"] is not None
    hashes = [manifest["texts"]["sha256"] for manifest in manifests]
    counts = {
        name: sum(manifest["counts"][name] for manifest in manifests) if name in MEASURED or not parts else count
        for name, count in first["counts"].items()
        if all(name in manifest["counts"] for manifest in manifests)
    }
    options = dict(first["options"])
    if len({manifest["options"]["max_windows"] for manifest in manifests}) > 1:
        options["max_windows"] = None
    runs = [manifest["run"] for manifest in manifests]
    alike = {name: value if all(run.get(name) == value for run in runs) else None for name, value in runs[0].items()}
    return {
        **first,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(sum(manifest["seconds"] for manifest in manifests), 3),
        "texts": {
            "name": first["texts"]["name"] if parts else " + ".join(m["texts"]["name"] for m in manifests),
            "sha256": hashes[0] if parts else checksum("".join(hashes).encode()),
            "windows_sha256": results.add_hashes(manifest["texts"]["windows_sha256"] for manifest in manifests),
        },
        "options": options,
        "counts": counts,
        "part": None,
        "example": next((manifest["example"] for manifest in manifests if manifest["example"] is not None), None),
        "run": alike | {"device": alike["device"] or "several", "engine": "merge", "workers": len(studies)},
        "merged": [str(study.folder) for study in studies],
    }
