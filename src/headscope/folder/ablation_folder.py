"""An ablation folder: what moved when heads were silenced, read without model, texts or torch.

Sums by groups of texts lie in a safetensors file a stage (heads, curve, sets), written when the stage is finished: an
ablation that is stopped goes on after the last. Tables follow from them; ablation.json comes last.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open

from headscope.errors import HeadscopeError, shortened
from headscope.files import Arrays, check_name, checksum, safetensors_pieces, write_atomically
from headscope.folder.manifest import (
    CountFacts,
    Misfit,
    ModelFacts,
    RunFacts,
    SourceFacts,
    manifest_checksum,
    typed,
)
from headscope.folder.study_folder import StudyFolder
from headscope.measure.effects import BY_NAME, case_table, estimate, head_table, intervals
from headscope.measure.jackknife import Estimate
from headscope.options import Options
from headscope.run import checkpoints
from headscope.speaking import option

if TYPE_CHECKING:
    import pandas as pd

MANIFEST = "ablation.json"
FORMAT = 1
HEADS, CURVE, SETS, MEANS = "heads", "curve", "sets", "means"
STAGES = (MEANS, HEADS, CURVE, SETS)
"""Each in a file of its name. The means are of the outputs of heads: sums (L, H, d), and a count of tokens."""
TABLE, INTERVALS, PREDICTORS = "ablation", "intervals", "predictors"
IN_STUDY = "ablation"
"""The folder of an ablation in that of a study of the same model."""
DRIFT = "embedding_drift"
"""1 less embedding_cosine: what a head is worth to a model without a loss."""


@dataclass(frozen=True)
class Row:
    """Of the curve or the sets: what it is called (an order, a set), how many heads it silences, the number of its
    case."""

    name: str
    heads: int
    case: int


@dataclass(frozen=True)
class Stage:
    """What was measured in one go. identity: what it was measured with; windows_sha256: on which windows. cases: the
    heads that each silences. rows: of its table, where that is not a row a case."""

    identity: str
    windows_sha256: str
    cases: list[list[list[int]]]
    rows: list[Row]
    source: SourceFacts
    counts: CountFacts
    run: RunFacts
    seconds: float = 0.0


@dataclass(frozen=True)
class AblationFacts:
    """What ablation.json says. layers: those whose heads were silenced. predicts: what the loss is of, None where there
    is none, and no_loss why. resumed: the layers from which passes began, without those below. curve: the order of each
    row of the curve and how many heads it removed. sets: what each row of the sets silenced."""

    headscope: str
    model: ModelFacts
    source: SourceFacts
    options: Options
    by: str
    layers: list[int]
    counts: CountFacts
    predicts: str | None = None
    no_loss: str | None = None
    undisturbed_loss: float | None = None
    undisturbed_loss_low: float | None = None
    undisturbed_loss_high: float | None = None
    resumed: list[int] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)
    sets: list[str] = field(default_factory=list)
    study: str | None = None
    run: RunFacts = field(default_factory=RunFacts)
    seconds: float | None = None
    finished: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self), "options": self.options.as_dict()}


class AblationFolder:
    """A finished ablation. `heads`: a row a head, None where only sets or curves were measured."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.manifest = read_facts(self.folder)

    @cached_property
    def heads(self) -> pd.DataFrame | None:
        """A row a head: `layer, head, hidden_change, hidden_cosine, embedding_cosine`, and with a language-model head
        `loss, loss_increase`."""
        return self._table(TABLE)

    @cached_property
    def intervals(self) -> pd.DataFrame | None:
        """A row a head and column: its value and 95 % interval over texts."""
        return self._table(INTERVALS)

    @cached_property
    def curve(self) -> pd.DataFrame | None:
        """A row an order and number of heads removed: what moved, with intervals."""
        return self._table(CURVE)

    @cached_property
    def sets(self) -> pd.DataFrame | None:
        """A row a set of heads that were silenced at once."""
        return self._table(SETS)

    @cached_property
    def predictors(self) -> pd.DataFrame | None:
        """A row per column of a study and part of the heads: its rank correlation with what a head is worth; None where
        no study was given."""
        return self._table(PREDICTORS)

    @property
    def worth(self) -> str:
        """What a head is worth is told by this: the increase of the loss, or else the drift of embeddings."""
        return "loss_increase" if self.manifest.predicts else DRIFT

    @cached_property
    def importance(self) -> Estimate:
        """What each head is worth, in the order of `heads`."""
        found = read_stage(self.folder, HEADS)
        if found is None:
            raise HeadscopeError(
                f"{self.folder} measured no single heads; run the ablation without {option('heads')}, {option('only')} "
                f"and {option('order')}."
            )
        return importance_of(found[1])

    def _table(self, name: str) -> pd.DataFrame | None:
        import pyarrow
        import pyarrow.parquet

        path = self.folder / f"{name}.parquet"
        if path.name not in self.manifest.files:
            return None
        try:
            content = path.read_bytes()
            if checksum(content) != self.manifest.files[path.name]:
                raise HeadscopeError(f"{path} is damaged: it is not what headscope ablate wrote; run it again.")
            table: pd.DataFrame = pyarrow.parquet.read_table(io.BytesIO(content)).to_pandas(ignore_metadata=True)
        except (OSError, ValueError, pyarrow.ArrowException) as problem:
            reason = shortened(" ".join(str(problem).split()))
            raise HeadscopeError(f"{path} can't be read ({reason}); run headscope ablate again.") from None
        return table

    def __repr__(self) -> str:
        model = self.manifest.model
        return (
            f"{type(self).__name__}({str(self.folder)!r}: {model.name}, by {self.manifest.by}, "
            f"{self.manifest.counts.windows:,} windows)"
        )


def importance_of(sums: Arrays) -> Estimate:
    """What each case costs: the increase of the loss, or 1 less the cosine of embeddings; (C,)."""
    if "loss" in sums:
        return estimate(sums, BY_NAME["loss_increase"])
    found = estimate(sums, BY_NAME["embedding_cosine"])
    return Estimate(1 - found.value, 1 - found.left_out, found.weight)


def ablation_of(study: StudyFolder) -> AblationFolder | None:
    """The finished ablation that lies in the folder of a study, if it is of the same weights."""
    folder = study.folder / IN_STUDY
    found = AblationFolder(folder) if is_ablation(folder) else None
    same = found is not None and found.manifest.model.weights_sha256 == study.manifest.model.weights_sha256
    return found if same else None


def is_ablation(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def read_facts(folder: Path) -> AblationFacts:
    check_name(folder, "The ablation folder")
    path = folder / MANIFEST
    if not path.is_file():
        if (folder / checkpoints.FOLDER).is_dir():
            raise HeadscopeError(
                f"The ablation in {folder} is not finished; run the same headscope ablate command again to go on."
            )
        raise HeadscopeError(f"The folder {folder} holds no {MANIFEST}, so it is not an ablation folder.")
    try:
        values = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        raise HeadscopeError(f"{path} is damaged: it is not JSON; run headscope ablate again.") from None
    version = values.get("format") if isinstance(values, dict) else None
    if type(version) is int and version > FORMAT:
        raise HeadscopeError(f"{folder} was written by a newer headscope; upgrade headscope to read it.")
    if type(version) is not int or values.get("checksum") != manifest_checksum(values):
        raise HeadscopeError(f"{path} is damaged: it does not say what it said; run headscope ablate again.")
    try:
        facts: AblationFacts = typed(AblationFacts, values, "")
    except Misfit as misfit:
        raise HeadscopeError(f"{path} is damaged: its field {misfit} is missing or not what it must be.") from None
    return facts


def stage_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.safetensors"


def write_stage(folder: Path, name: str, stage: Stage, sums: Arrays) -> None:
    about = {"headscope": json.dumps(asdict(stage))}
    write_atomically(stage_file(folder, name), safetensors_pieces(sums, about))


def read_stage(folder: Path, name: str) -> tuple[Stage, Arrays] | None:
    """None where the stage is not finished."""
    path = stage_file(folder, name)
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            stage: Stage = typed(Stage, json.loads((file.metadata() or {})["headscope"]), "")
            return stage, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError, KeyError, Misfit) as problem:
        raise HeadscopeError(f"{path} is damaged ({problem}); remove it, and run headscope ablate again.") from None


def write_tables(folder: Path, facts: AblationFacts, more: Mapping[str, pd.DataFrame] | None = None) -> None:
    """Tables that follow from the finished stages, more of them, and ablation.json."""
    tables: dict[str, pd.DataFrame] = dict(more or {})
    heads = read_stage(folder, HEADS)
    if heads is not None:
        names = [(case[0][0], case[0][1]) for case in heads[0].cases]
        tables |= {TABLE: head_table(heads[1], names), INTERVALS: intervals(heads[1], names)}
    named: dict[str, list[str]] = {CURVE: [], SETS: []}
    for name, called in ((CURVE, ("order", "removed")), (SETS, ("silenced", "heads"))):
        stage = read_stage(folder, name)
        if stage is not None:
            rows = stage[0].rows
            table = case_table(stage[1], [row.case for row in rows])
            table.insert(0, called[1], np.array([row.heads for row in rows]))
            table.insert(0, called[0], [row.name for row in rows])
            tables[name] = table
            named[name] = list(dict.fromkeys(row.name for row in rows))
    files: dict[str, bytes] = {}
    for name, table in tables.items():
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        files |= {f"{name}.parquet": buffer.getvalue(), f"{name}.csv": table.to_csv(index=False).encode()}
    for name, content in files.items():
        write_atomically(folder / name, content)
    sums = {name: checksum(content) for name, content in sorted(files.items())}
    write_facts(folder, replace(facts, orders=named[CURVE], sets=named[SETS], files=sums))


def write_facts(folder: Path, facts: AblationFacts) -> None:
    values: Mapping[str, Any] = facts.as_json()
    text = json.dumps({**values, "checksum": manifest_checksum(values)}, indent=1, ensure_ascii=False)
    write_atomically(folder / MANIFEST, (text + "\n").encode())
