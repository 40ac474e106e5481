"""A study folder, read. Neither the model nor the texts are needed, nor torch."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.grid import Grid
from headscope.corpus.null_kinds import NULLS, Null
from headscope.errors import HeadscopeError, shortened
from headscope.files import check_name
from headscope.folder import windows_file
from headscope.folder.array_file import AbsentError, ArrayFile
from headscope.folder.at_threshold import ArraysAt, kept_columns, pooled_column, table_at
from headscope.folder.by_windows import ByValue, by_windows
from headscope.folder.manifest import ARRAYS, GROUPS_FILE, IMAGES_MANIFEST, MANIFEST, Manifest, read_manifest
from headscope.folder.roles_file import ROLE, read_roles
from headscope.measure.catalogue import GROUPED, array_specs, columns, kept_states, state_specs
from headscope.measure.declaration import Arrays
from headscope.measure.high_pairs import SPECTRA, HighPairs
from headscope.measure.jackknife import INTERVALS, INTERVALS_COLUMNS, Jackknife
from headscope.measure.measures.distance import GRID_DISTANCE
from headscope.measure.tables import TABLES, Totals
from headscope.one_text.view import OneText
from headscope.options import Options
from headscope.run import checkpoints
from headscope.speaking import ELSEWHERE, either, option
from headscope.wording import counted

if TYPE_CHECKING:
    import pandas as pd

REST = "rest.safetensors"
"""Of a part of a study: what rounding cut off its sums, so that merged parts are the whole to the last bit."""
EXAMPLE = ("example.json", "example.safetensors")


class StudyFolder:
    """What a study folder holds. A folder of an older version opens too: what it lacks is absent.

    `heads` and `layers` are DataFrames, `arrays` a mapping of numpy arrays, `manifest` says what was run.

    >>> import headscope
    >>> headscope.read("wiki").manifest.counts.windows  # doctest: +SKIP
    """

    suffix = ""
    """Of the names of files that are drawn or written from it: those at another threshold lie beside the study's."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.manifest = read_manifest(self.folder)

    @cached_property
    def heads(self) -> pd.DataFrame:
        """A row per layer and head; `headscope.columns()` says what each column means. `role`: what the head does,
        empty where it has none, or before `headscope nulls`.

        >>> study.heads.query("layer == 5").set_index("head")["mean_distance"]  # doctest: +SKIP
        """
        return self.table("heads").assign(**{ROLE: "" if self.roles is None else self.roles[ROLE].to_numpy()})

    @cached_property
    def roles(self) -> pd.DataFrame | None:
        """A row per layer and head: its role, what it rests on, beside what nulls give. None before `headscope nulls`
        has measured them."""
        return read_roles(self.folder, self.manifest, {null: one.manifest for null, one in self.nulls.items()})

    @cached_property
    def layers(self) -> pd.DataFrame:
        """A row per layer: the columns of `heads` over all its heads, and what only a layer has.

        >>> study.layers[["layer", "same_sentence_probability", "same_sentence_chance"]]  # doctest: +SKIP
        """
        return self.table("layers")

    @cached_property
    def arrays(self) -> ArrayFile:
        """Maps, histograms and sums over all windows, by name; (L, H, ...).

        >>> study.arrays["distance_histogram"][5, 8]  # doctest: +SKIP
        """
        specs = array_specs(*self.size, self.manifest.gives)
        return ArrayFile(self.folder / ARRAYS, specs, self.manifest.arrays)

    @cached_property
    def groups(self) -> ArrayFile:
        """What columns are made of, for each group of texts, by name; (L, H, G, ...)."""
        if self.manifest.groups is None:
            raise AbsentError(
                f"{self.folder} says nothing of how sure its numbers are; run the study again to have intervals."
            )
        specs = {name: spec for name, spec in state_specs(*self.size, self.manifest.gives).items() if name in GROUPED}
        return ArrayFile(self.folder / GROUPS_FILE, specs, self.manifest.groups)

    @cached_property
    def jackknife(self) -> Jackknife:
        """How sure columns are, and whatever is made of them."""
        return Jackknife(self.groups, self.what_tables_are_made_of(), self.manifest.gives)

    @cached_property
    def intervals(self) -> pd.DataFrame:
        """A row per layer, head (-1: the layer) and column: `value`, and from `low` to `high` its 95 % interval, by
        leaving out one group of texts after the other; `groups`: how many. With fewer than 8 there is none.

        >>> study.intervals.query("column == 'repeat_probability' and layer == 5")  # doctest: +SKIP
        """
        if INTERVALS not in (self.manifest.tables or {}):
            raise AbsentError(f"{self.folder} has no intervals; run the study again to have them.")
        return self.table(INTERVALS)

    @property
    def windows_table(self) -> pd.DataFrame:
        """A row per window, layer and head, of a study that keeps them (`keep_windows`): where the window is from, and
        the columns of `heads` of that window alone. Read anew each time: it is large."""
        self._check_keeps_windows()
        file = windows_file.opened(self.folder)
        table: pd.DataFrame = file.read(columns=windows_file.shown_columns(file, self.manifest.gives)).to_pandas()
        return table

    def by(self, groups: str | Sequence[Any]) -> ByValue:
        """The tables apart for each value of a column of `windows_table`, such as one named with `meta`; or of values
        that you give, one for each text: `study.by("label").heads`. Of a study that keeps its windows
        (`keep_windows`)."""
        self._check_keeps_windows()
        return by_windows(self.folder, self.manifest, groups)

    def _check_keeps_windows(self) -> None:
        if not self.manifest.keeps_windows:
            how = option("keep_windows", True)
            raise AbsentError(f"{self.folder} keeps no numbers of every window; run the study with {how}.")

    @cached_property
    def example(self) -> OneText:
        """The one text that the study keeps, for figures that show one."""
        return OneText.load(self.folder)

    @cached_property
    def nulls(self) -> dict[Null, StudyFolder]:
        """The finished null studies of this study, by which null they are; none before `headscope nulls`.

        One that was made for other windows, weights or options is not this study's, and left out.
        """
        found: dict[Null, StudyFolder] = {}
        for null in NULLS:
            folder = null_folder(self.folder, null)
            if (folder / MANIFEST).is_file():
                one = type(self)(folder)
                if is_null_of(one.manifest, self.manifest, null):
                    found[null] = one
        return found

    @property
    def written(self) -> float:
        """When the manifest was, the last of all files: seconds since 1970."""
        path = self.folder / MANIFEST
        return (path if path.is_file() else self.folder / IMAGES_MANIFEST).stat().st_mtime

    @property
    def model_name(self) -> str:
        """What the model was asked for by."""
        return self.manifest.model.name

    @property
    def windows(self) -> int:
        """Windows measured; of a study of images, images."""
        return self.manifest.counts.windows

    @property
    def extent(self) -> str:
        """What was measured, as headings say it: "300 windows of 128 tokens", or where some are padded "3 windows of 26
        tokens on average"; "12 images of 14 x 14 patches"."""
        if self.grid is not None:
            return f"{counted(self.windows, 'image')} of {self.grid.rows} x {self.grid.columns} patches"
        windows, length, tokens = self.windows, self.manifest.options.length, self.manifest.counts.window_tokens
        if tokens is None or tokens == windows * length:
            return f"{counted(windows, 'window')} of {length} tokens"
        return f"{counted(windows, 'window')} of {tokens / windows:.0f} tokens{' on average' if windows > 1 else ''}"

    @property
    def grid(self) -> Grid | None:
        """Of a study of images: how their patches stand."""
        return self.manifest.source.grid

    @property
    def size(self) -> tuple[int, int, int]:
        """Layers measured, heads of each, tokens in a window: L, H and S of the arrays."""
        return len(self.manifest.layers), self.manifest.model.heads, self.manifest.options.length

    def at(self, threshold: float) -> StudyAt:
        """The study as it reads at another threshold, 0.05 to 0.95 in steps of 0.01; see `StudyAt`."""
        return StudyAt(self, threshold)

    @property
    def keeps_spectra(self) -> bool:
        """Whether it can be read at another threshold: an older version did not keep what that takes."""
        return all(name in self.arrays for name in SPECTRA if name in kept_states(self.manifest.gives))

    def check_not_empty(self) -> None:
        """Refuse to draw or judge nothing: a part of a study may hold no window."""
        if not self.windows:
            raise HeadscopeError(f"{self.folder} is a part that holds no window; merge it with the other parts first.")

    def column(self, table: str, name: str) -> NDArray[np.float64]:
        """A column of `heads` or `layers`, where there is one."""
        found: pd.DataFrame = getattr(self, table)
        if name not in found:
            raise AbsentError(
                f"The table {table} of {self.folder} has no column {name}; run the study again to have it."
            )
        # A report asks for some of them thousands of times, and a table takes its time to find one.
        table_read, kept = self._columns.get(table, (None, {}))
        if table_read is not found:
            table_read, kept = self._columns[table] = found, {}
        if name not in kept:
            kept[name] = found[name].to_numpy(dtype=np.float64)
        return kept[name].copy()

    @cached_property
    def _columns(self) -> dict[str, tuple[pd.DataFrame, dict[str, NDArray[np.float64]]]]:
        """Of each table, columns that were asked for."""
        return {}

    def what_tables_are_made_of(self) -> Arrays:
        """The states, and what columns need beside them."""
        return with_grid(Totals(self.arrays), self.grid)

    def table(self, name: str) -> pd.DataFrame:
        """A table of the folder, as it was written."""
        import pyarrow
        import pyarrow.parquet

        path = self.folder / f"{name}.parquet"
        layers, heads = self.manifest.layers, self.manifest.model.heads
        rows = len(layers) * heads if name == "heads" else len(layers)
        fitting = range(rows, rows + 1)
        if name == INTERVALS:
            fitting = range(sum(map(len, (self.manifest.tables or {}).values())) * len(layers) * heads + 1)
        try:
            file = pyarrow.parquet.ParquetFile(path)
            # The number of rows comes first: a file of a few bytes may claim billions.
            table: pd.DataFrame | None = (
                file.read().to_pandas(ignore_metadata=True) if file.metadata.num_rows in fitting else None
            )
        except (OSError, ValueError, pyarrow.ArrowException) as problem:
            reason = shortened(" ".join(str(problem).split()))
            raise HeadscopeError(f"{path} can't be read ({reason}); the study folder is damaged.") from None
        if table is None or self._contradicts(table, name):
            raise HeadscopeError(f"{path} is damaged: its rows or columns are not those of this study.")
        return table

    def _contradicts(self, table: pd.DataFrame, name: str) -> bool:
        """Columns may be fewer or more than today's, but what is there must be what it is said to be."""
        layers, heads = self.manifest.layers, self.manifest.model.heads
        keys = {"layer": [layer for layer in layers for _ in range(heads)], "head": [*range(heads)] * len(layers)}
        if name == "layers":
            keys = {"layer": layers}
        if name == INTERVALS:
            known = set(layers) >= set(table["layer"]) if "layer" in table else False
            return not known or list(table.columns) != list(INTERVALS_COLUMNS)
        if any(key not in table or table[key].tolist() != values for key, values in keys.items()):
            return True
        listed = (self.manifest.tables or {}).get(name)
        if listed is not None and listed != list(table.columns):
            return True
        gives = self.manifest.gives
        specs = array_specs(1, 1, 2 if self.grid is None else self.grid.tokens, gives)
        empty = with_grid(Totals({array: np.zeros(shape, dtype) for array, (dtype, shape) in specs.items()}), self.grid)
        expected = TABLES[name](empty, [0], gives, set(table.columns)).dtypes
        return any(table[column].dtype != kind for column, kind in expected.items() if column in table)

    def __repr__(self) -> str:
        model, manifest = self.manifest.model, self.manifest
        windows = counted(self.windows, "window" if manifest.kind == "texts" else "image")
        return (
            f"{type(self).__name__}({str(self.folder)!r}: {model.name}, {counted(len(manifest.layers), 'layer')} x "
            f"{counted(model.heads, 'head')}, {windows})"
        )


class StudyAt(StudyFolder):
    """A study as it reads at another threshold, without model or texts.

    Columns that are made of high pairs are made anew, pooled over all pairs of all windows instead of means over
    windows; those that no threshold enters are as they are. Focal tokens, location maps, distributions over windows,
    distances of patches and intervals are known at the study's own threshold alone, and absent here.
    """

    def __init__(self, study: StudyFolder, threshold: float) -> None:
        self.own = study
        """The study at its own threshold."""
        if not study.keeps_spectra:
            raise AbsentError(
                f"{study.folder} does not keep what another threshold takes; run the study again with it."
            )
        self.folder = study.folder
        self.high = HighPairs(study.arrays, threshold)
        self.suffix = f"-{self.high.threshold:.2f}"
        manifest = study.manifest
        self.manifest = replace(
            manifest,
            options=replace(manifest.options, threshold=self.high.threshold),
            tables={
                name: kept_columns(listed, manifest.gives)
                for name, listed in (manifest.tables or {}).items()
                if name in TABLES
            },
            groups=None,
        )

    def at(self, threshold: float) -> StudyAt:
        return self.own.at(threshold)

    @cached_property
    def heads(self) -> pd.DataFrame:
        """A row per layer and head; what is made of high pairs is pooled over all of them. Roles are known at the
        study's own threshold alone."""
        return table_at("heads", self.own.heads, self.high, self.manifest.gives).assign(**{ROLE: ""})

    @cached_property
    def layers(self) -> pd.DataFrame:
        """A row per layer, pooled over the high pairs of all its heads."""
        return table_at("layers", self.own.layers, self.high, self.manifest.gives)

    @cached_property
    def arrays(self) -> ArrayFile:
        """`distance_histogram` at this threshold, and the arrays that no threshold enters."""
        return ArraysAt(self.own.arrays, self.high, self._only_known)

    @cached_property
    def groups(self) -> ArrayFile:
        raise AbsentError(f"The interval of a number {self._only_known}")

    @cached_property
    def intervals(self) -> pd.DataFrame:
        raise AbsentError(f"The interval of a number {self._only_known}")

    @cached_property
    def nulls(self) -> dict[Null, StudyFolder]:
        """Read at the same threshold."""
        return {null: one.at(self.high.threshold) for null, one in self.own.nulls.items()}

    @cached_property
    def example(self) -> OneText:
        return replace(self.own.example, threshold=self.high.threshold)

    @cached_property
    def windows_table(self) -> pd.DataFrame:
        raise AbsentError(f"What every window showed {self._only_known}")

    def by(self, groups: str | Sequence[Any]) -> ByValue:
        raise AbsentError(f"What windows put together show {self._only_known}")

    def column(self, table: str, name: str) -> NDArray[np.float64]:
        if name not in getattr(self.own, table):
            return super().column(table, name)
        if (table, name) not in self._made_anew:
            self._made_anew[table, name] = self._anew(table, name)
        return self._made_anew[table, name].copy()

    def _anew(self, table: str, name: str) -> NDArray[np.float64]:
        """What shows all thresholds asks for a few columns at each: to make whole tables for them takes twice the
        time."""
        known = columns(self.manifest.gives).get(name)
        if known is not None:
            found = pooled_column(table, known, self.high)
            if found is not None:
                return found.astype(np.float64)
            if not known.of_high_pairs:
                return self.own.column(table, name)
        raise AbsentError(f"The column {name} {self._only_known}")

    @cached_property
    def _made_anew(self) -> dict[tuple[str, str], NDArray[np.float64]]:
        """The columns that were asked for."""
        return {}

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, at threshold {self.high.threshold:g})"

    @property
    def _only_known(self) -> str:
        return (
            f"is known at the study's own threshold {self.own.manifest.options.threshold:g} alone; "
            f"run the study again with {option('threshold', round(self.high.threshold, 6))} to have it there."
        )


def null_folder(study: Path, null: Null) -> Path:
    return study / "nulls" / null


def is_null_of(one: Manifest, study: Manifest, null: Null) -> bool:
    """Whether a null study belongs to a study: its windows, its weights, and measured alike."""
    facts = one.null
    return (
        facts is not None
        and facts.kind == null
        and facts.of_windows_sha256 == study.source.windows_sha256
        and facts.of_weights_sha256 == study.model.weights_sha256
        and one.layers == study.layers
        and one.options == null_options(study.options)
    )


def null_options(options: Options) -> Options:
    """A null study is measured as its study, but keeps neither maps nor windows: it is to be small."""
    return replace(options, maps="none", keep_windows=False, meta=())


def with_grid(arrays: Arrays, grid: Grid | None) -> Arrays:
    """States as columns are made from them: of images, the distances on the grid come along."""
    return arrays if grid is None else ChainMap({GRID_DISTANCE: grid.distance}, arrays)  # type: ignore[arg-type]


def claim(folder: Path, overwrite: bool, finished: bool = False) -> None:
    """Make sure that a study may be written here: nothing of the user's is ever overwritten unasked. finished: a
    finished study may be here, for one who looks whether it is the same."""
    check_name(folder, option("out"))
    if folder.exists() and not folder.is_dir():
        raise HeadscopeError(f"{option('out')} {folder} is a file; name a folder.")
    if folder.is_dir() and any(folder.iterdir()) and not overwrite:
        is_finished = (folder / MANIFEST).exists() or (folder / IMAGES_MANIFEST).exists()
        if is_finished and not finished:
            # A run that was killed in its last moment, when all results were written, leaves these.
            checkpoints.remove(folder)
            raise HeadscopeError(why_not_here(folder))
        if not is_finished and not (folder / checkpoints.FOLDER).is_dir():
            raise HeadscopeError(f"{folder} holds something other than a study; {ELSEWHERE} to write into it.")
    ground = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not os.access(ground, os.W_OK):
        raise HeadscopeError(f"The folder {ground} can't be written to; give another {option('out')}.")


def why_not_here(folder: Path, which: str = "") -> str:
    """Of a folder that holds a finished study. which: what is said of that."""
    reading = either(f"headscope report {folder}", f"headscope.read({str(folder)!r})")
    return f"{folder} holds a finished study{which}; read it with {reading}, or {ELSEWHERE}."
