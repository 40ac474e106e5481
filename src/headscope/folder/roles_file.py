"""What `headscope nulls` leaves beside a study: the roles of its heads, and every number beside what nulls give.

roles.parquet, beside.parquet, each also as .csv, follow from the study and its nulls; roles.json says which those were:
roles of other nulls are not those of the study.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.corpus.null_kinds import NULLS
from headscope.errors import HeadscopeError, shortened
from headscope.files import checksum, file_checksum, write_atomically
from headscope.folder.manifest import Manifest
from headscope.speaking import either

if TYPE_CHECKING:
    import pandas as pd

ROLE = "role"
ROLES_COLUMNS = (
    "layer",
    "head",
    ROLE,
    "also",
    "quantity",
    "value",
    "low",
    "high",
    *NULLS,
    "same_in_halves",
    "falls_short",
)
FACTS, TABLE = "roles.json", "roles.parquet"
FILES = ("roles.parquet", "roles.csv", "beside.parquet", "beside.csv")


def write_roles(
    folder: Path,
    roles: pd.DataFrame,
    beside: pd.DataFrame,
    study: Manifest,
    nulls: Mapping[str, Manifest],
    rules: Mapping[str, str],
) -> None:
    """The tables, and what they were made of and by which rules; that last, so that tables with it are whole."""
    files: dict[str, bytes] = {}
    for called, table in (("roles", roles), ("beside", beside)):
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        files |= {f"{called}.parquet": buffer.getvalue(), f"{called}.csv": table.to_csv(index=False).encode()}
    for name, content in files.items():
        write_atomically(folder / name, content)
    facts = {
        "headscope": metadata.version("headscope"),
        "of": made_of(study, nulls),
        "rules": dict(rules),
        "files": {name: checksum(content) for name, content in files.items()},
    }
    write_atomically(folder / FACTS, (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode())


def read_roles(folder: Path, study: Manifest, nulls: Mapping[str, Manifest]) -> pd.DataFrame | None:
    """None where there are none, or none of this study and these nulls."""
    import pyarrow
    import pyarrow.parquet

    facts = _facts(folder)
    if facts is None or facts.get("of") != made_of(study, nulls):
        return None
    rows = len(study.layers) * study.model.heads
    path = folder / TABLE
    try:
        file = pyarrow.parquet.ParquetFile(path)
        # The number of rows comes first: a file of a few bytes may claim billions.
        table: pd.DataFrame | None = (
            file.read().to_pandas(ignore_metadata=True) if file.metadata.num_rows == rows else None
        )
    except (OSError, ValueError, pyarrow.ArrowException) as problem:
        reason = shortened(" ".join(str(problem).split()))
        raise HeadscopeError(f"{path} can't be read ({reason}); run {_nulls(folder)} again.") from None
    if table is None or list(table.columns) != list(ROLES_COLUMNS) or not _strings(table[ROLE]):
        raise HeadscopeError(f"{path} is damaged: it is not of this study; run {_nulls(folder)} again.")
    return table


def _nulls(folder: Path) -> str:
    return either(f"headscope nulls {folder}", f"headscope.nulls({str(folder)!r})")


def problem_of_roles(folder: Path) -> str | None:
    """What is wrong with the files, for `headscope verify`."""
    facts = _facts(folder)
    if facts is None:
        return f"{FACTS} is damaged"
    for name in FILES:
        path = folder / name
        if not path.is_file() or file_checksum(path) != facts.get("files", {}).get(name):
            return f"{name} is not what headscope nulls wrote"
    return None


def made_of(study: Manifest, nulls: Mapping[str, Manifest]) -> dict[str, Any]:
    """Which study and which nulls roles follow from."""
    return {
        "study": _result(study),
        **{null: _result(manifest) for null, manifest in sorted(nulls.items())},
    }


def _result(manifest: Manifest) -> str:
    """Of everything measured."""
    return checksum(json.dumps(manifest.files, sort_keys=True).encode())


def _facts(folder: Path) -> dict[str, Any] | None:
    try:
        facts = json.loads((folder / FACTS).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) and isinstance(facts.get("files", {}), dict) else None


def _strings(column: pd.Series) -> bool:
    return all(isinstance(value, str) for value in column)
