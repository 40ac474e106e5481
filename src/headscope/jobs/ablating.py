"""`headscope.ablate`: each head silenced in turn, sets of heads, or more and more of them, and what moves."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from headscope.corpus.text_windows import TextWindows
from headscope.corpus.texts import as_texts
from headscope.errors import HeadscopeError
from headscope.files import Arrays
from headscope.folder.ablation_folder import (
    CURVE,
    HEADS,
    MANIFEST,
    MEANS,
    PREDICTORS,
    SETS,
    STAGES,
    AblationFacts,
    Row,
    Stage,
    importance_of,
    is_ablation,
    read_stage,
    stage_file,
    write_stage,
    write_tables,
)
from headscope.folder.manifest import CountFacts, ModelFacts, RunFacts, SourceFacts
from headscope.folder.study_folder import StudyFolder, claim
from headscope.insight.importance import predictors
from headscope.insight.pruning import RANDOM_ORDERS, STEPS, Order, curve_cases, parse_order
from headscope.jobs.chosen_windows import ChosenWindows, check_sample, chosen_windows, fitted
from headscope.measure.effects import undisturbed_loss
from headscope.measure.head_means import HeadMeans
from headscope.measure.silenced_cases import By, Case, Donors, SilencedCases
from headscope.model.capture import Capture
from headscope.model.language_head import NoHead, Predicts, predicts, with_head
from headscope.model.loading import Model, as_model
from headscope.model.resuming import resumable
from headscope.model.silencing import HeadName, check_heads, check_silent
from headscope.options import Options
from headscope.run import checkpoints
from headscope.run.consumer import Consumer
from headscope.run.engines import Place
from headscope.run.fingerprints import windows_hash
from headscope.run.runner import Ran, Run
from headscope.run.shards import Part, cut_shards
from headscope.run.sums import ExactSum
from headscope.show.ablation import Ablation
from headscope.speaking import either, option

WINDOWS_PER_SHARD = 8
"""A window costs as much as a hundred of a study; part of what fixes the result to the last bit."""
DONORS = 256
"""Windows that outputs are taken from, where heads have those of another window."""


def ablate(
    model: Model | str = "minilm",
    texts: Any = None,
    *,
    by: By = "mean",
    heads: Collection[HeadName] | None = None,
    only: Collection[HeadName] | None = None,
    order: str | Sequence[str] = (),
    random_orders: int = RANDOM_ORDERS,
    steps: int = STEPS,
    study: StudyFolder | str | os.PathLike[str] | None = None,
    loss: bool | None = None,
    field: str | None = None,
    out: str | os.PathLike[str] = "headscope-ablation",
    overwrite: bool = False,
    progress: bool = True,
    engine: str = "local",
    workers: int | None = None,
    threads: int | None = None,
    address: str | None = None,
    **options: Any,
) -> Ablation:
    """Silence each head in turn and see what moves: hidden states, embeddings, the loss; write an ablation folder.

    model, texts, field: as `headscope.study` takes them. by: what takes the place of a head's output: its `mean` over
    the corpus, `zero`, or `shuffle`, that of another window. heads: silence this set at once instead, (layer, head)
    each; only: keep this set, and silence all others.
    order: remove more and more heads, `importance`, `measure:COLUMN` (of a `study` of the model, the lowest first;
    `measure:-COLUMN` the highest) or `random`; `random_orders` are measured beside every order, in so many `steps`.
    loss: True refuses a model without a language-model head, False leaves the loss out.
    options: those fields of `headscope.Options` that choose windows, layers, batches and the seed.
    An unfinished ablation in `out` goes on where it stopped, and a finished one is added to: a curve, sets.

    >>> import headscope
    >>> ablation = headscope.ablate("gpt2", texts, out="ablation")  # doctest: +SKIP
    >>> ablation.heads.nlargest(5, "loss_increase")  # doctest: +SKIP
    """
    asked = Options(**options)
    place = Place(engine, workers, threads, address)
    orders = [parse_order(one) for one in ([order] if isinstance(order, str) else order)]
    _check_counts(random_orders, steps)
    if heads is not None and only is not None:
        raise HeadscopeError(f"{option('heads')} and {option('only')} exclude each other; give one of them.")
    opened = _study(study, orders)
    given = as_texts(texts, field)
    if given.once and by != "zero":
        raise HeadscopeError(
            f"{option('by')} {by} reads the texts twice, which these do not allow; give files, or a list."
        )
    folder = Path(out)
    _claim(folder, overwrite)
    if asked.sample is not None:
        check_sample(given)
    loaded = as_model(model)
    if "length" not in options:
        asked = fitted(loaded, given, asked)
    windows = chosen_windows(loaded, given, asked, progress)
    job = AblationJob(windows, by, loss, folder, place, progress)
    if opened is not None:
        job.check_study(opened)
    with checkpoints.locked(folder):
        if overwrite:
            checkpoints.clear(folder)
            for name in (MANIFEST, *(stage_file(folder, stage).name for stage in STAGES)):
                (folder / name).unlink(missing_ok=True)
        job.check_folder()
        sets = [one for one in (job.named_set(heads, False), job.named_set(only, True)) if one is not None]
        if not sets and (not orders or any(one.kind == "importance" for one in orders)):
            job.measure_heads()
        if orders:
            job.measure_curve(orders, random_orders, steps, opened)
        if sets:
            job.measure_sets(sets)
        job.finish(opened)
    return Ablation(folder)


def _check_counts(random_orders: int, steps: int) -> None:
    for name, value, least in (("random_orders", random_orders, 0), ("steps", steps, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 1000:
            raise HeadscopeError(f"{option(name)} is {value}; it must be a whole number from {least} to 1000.")


def _study(study: StudyFolder | str | os.PathLike[str] | None, orders: Iterable[Order]) -> StudyFolder | None:
    opened = study if study is None or isinstance(study, StudyFolder) else StudyFolder(study)
    for one in orders:
        if one.column is not None:
            if opened is None:
                raise HeadscopeError(
                    f"{option('order')} {one.name} needs a study of the same model; name it with {option('study')}."
                )
            opened.column("heads", one.column)
    return opened


def _claim(folder: Path, overwrite: bool) -> None:
    """An ablation may be added to; anything else in the folder is the user's."""
    started = is_ablation(folder) or any(stage_file(folder, name).is_file() for name in STAGES)
    claim(folder, overwrite or started)


NamedCase = tuple[str, int, Case]
"""A row of the curve or the sets: what it is called, how many heads it silences, and which."""


class AblationJob:
    """One ablation, stage by stage: means of outputs, single heads, curves, sets."""

    def __init__(
        self,
        windows: ChosenWindows,
        by: By,
        loss: bool | None,
        folder: Path,
        place: Place,
        progress: bool,
    ) -> None:
        self._began = time.perf_counter()
        model, options = windows.model, windows.options
        self._windows = windows
        self._options = replace(options, batch_size=options.batch_size or 1)
        self._by = by
        self._folder = folder
        self._place = place
        self._progress = progress
        self._weights_hash = model.weights_hash
        self._architecture = model.architecture
        self._no_loss: str | None = None if loss is not False else "It was not asked for."
        if self._no_loss is None:
            try:
                model = with_head(model)
            except NoHead as problem:
                if loss:
                    raise HeadscopeError(f"{option('loss')} can't be had: {problem}") from None
                self._no_loss = str(problem)
        self._model = model
        self._loss: Predicts | None = predicts(model.network) if self._no_loss is None else None
        self._mask_token = self._mask() if self._loss == "masked tokens" else None
        self._capture = Capture(model.network, options.stack)
        if not self._capture.reads_text:
            raise HeadscopeError(f"{model.name} takes images, not texts; headscope ablate measures models of texts.")
        model.check_length(options.length)
        self._layers = self._capture.chosen_layers(options.layers)
        check_silent(self._capture, self._layers)
        self._resumable = resumable(self._capture)
        SilencedCases((), by, 1, (), {})  # refuses what it does not know, before anything is measured
        self._stages: dict[str, Stage] = {}
        self._there: dict[str, Stage] = {}
        self._undisturbed: Arrays | None = None

    def _mask(self) -> int:
        token = getattr(self._model.tokenizer, "mask_token_id", None)
        if token is None:
            raise HeadscopeError(
                f"The tokenizer of {self._model.name} has no mask token, which its loss takes; use "
                f"{either('--no-loss', 'loss=False')}."
            )
        return int(token)

    @property
    def _every_head(self) -> list[HeadName]:
        return [(layer, head) for layer in self._layers for head in range(self._capture.heads)]

    def check_study(self, study: StudyFolder) -> None:
        facts = study.manifest.model
        if facts.weights_sha256 is not None and facts.weights_sha256 != self._weights_hash:
            raise HeadscopeError(
                f"{study.folder} is a study of other weights ({facts.name}) than {self._model.name}; name a study of "
                f"the same model with {option('study')}."
            )

    def check_folder(self) -> None:
        """What is there already must have been measured alike, and on these windows: a folder is one ablation."""
        now = {"by": self._by, "loss": self._loss, **self._told}
        for name in STAGES:
            found = read_stage(self._folder, name)
            if found is None:
                continue
            self._there[name] = found[0]
            before = json.loads(found[0].identity)
            differing = [key for key in sorted(now) if key in before and before[key] != now[key]]
            if differing:
                told = " and ".join(
                    key if key == "weights" else f"{key} ({before[key]!r} there, {now[key]!r} now)" for key in differing
                )
                raise HeadscopeError(
                    f"{self._folder} holds an ablation that differs in {told}; give the same, "
                    f"another {option('out')}, or {option('overwrite', True)}."
                )
        if self._there:
            self._check_texts()

    def _check_texts(self) -> None:
        """Before anything is measured: so nothing is left behind of what is refused."""
        if self._windows.texts.once:
            raise HeadscopeError(
                f"{self._folder} holds an ablation, and these texts can be read only once, so whether they are its own "
                f"can't be told; give files or a list, another {option('out')}, or {option('overwrite', True)}."
            )
        shards = cut_shards(self._source().windows(None), WINDOWS_PER_SHARD)
        now = windows_hash({number: shard.fingerprint for number, shard in enumerate(shards)})
        if any(stage.windows_sha256 != now for stage in self._there.values()):
            raise HeadscopeError(
                f"The texts differ from those that the ablation in {self._folder} began with; give the same texts, "
                f"another {option('out')}, or {option('overwrite', True)}."
            )

    def named_set(self, heads: Collection[HeadName] | None, kept: bool) -> tuple[str, Case] | None:
        """A set of heads, or all others, and what it is called."""
        if heads is None:
            return None
        check_heads(self._capture, heads)
        if not heads and not kept:
            raise HeadscopeError(f"{option('heads')} names no head; write for example 3:1,5:7.")
        heads = {(int(layer), int(head)) for layer, head in heads}
        told = ",".join(f"{layer}:{head}" for layer, head in sorted(heads))
        if not kept:
            return told, tuple(sorted(heads))
        return f"all but {told}" if told else "all", tuple(one for one in self._every_head if one not in heads)

    def measure_heads(self) -> None:
        cases = tuple((one,) for one in self._every_head)
        self._undisturbed = self._measured(HEADS, cases, f"Silencing the heads of {self._model.name}", None)

    def measure_curve(self, orders: Sequence[Order], random_orders: int, steps: int, study: StudyFolder | None) -> None:
        before = read_stage(self._folder, CURVE)
        if before is not None and set(_case(max(before[0].cases, key=len))) != set(self._every_head):
            raise HeadscopeError(
                f"{self._folder} holds a curve over heads of other layers; give the same {option('layers')}, another "
                f"{option('out')}, or {option('overwrite', True)}."
            )
        stage = read_stage(self._folder, HEADS)
        importance = None
        if stage is not None:
            places = {_case(case)[0]: place for place, case in enumerate(stage[0].cases)}
            if all(head in places for head in self._every_head):
                importance = importance_of(stage[1]).value[[places[head] for head in self._every_head]]
        cases, rows = curve_cases(self._every_head, orders, random_orders, steps, self._options.seed, importance, study)
        named = [(row.name, row.heads, cases[row.case]) for row in rows]
        self._undisturbed = self._measured(CURVE, cases, f"Pruning {self._model.name}", named)

    def measure_sets(self, sets: Sequence[tuple[str, Case]]) -> None:
        rows = [(called, len(case), case) for called, case in sets]
        cases = tuple(case for _, case in sets)
        self._undisturbed = self._measured(SETS, cases, f"Silencing heads of {self._model.name}", rows)

    def _measured(self, name: str, cases: tuple[Case, ...], called: str, rows: Sequence[NamedCase] | None) -> Arrays:
        """What the stage adds up to: these cases, and those that it held before. Only what is new is measured.
        rows: of its table, where that is not a row a case."""
        there = read_stage(self._folder, name)
        before = [] if there is None else [_case(case) for case in there[0].cases]
        new = tuple(case for case in dict.fromkeys(cases) if case not in before)
        if there is None:
            stage, sums = self._run_cases(name, new, called)
        elif new:
            stage, added = self._run_cases(name, new, called)
            sums = _joined(there[1], added)
        else:
            stage, sums = there
        every = [*before, *new]
        if rows is None:
            places = sorted(range(len(every)), key=every.__getitem__)
            every, sums, kept = [every[place] for place in places], _of_cases(sums, places), []
        else:
            old = [] if there is None else [(row.name, row.heads, before[row.case]) for row in there[0].rows]
            named = {(label, heads): case for label, heads, case in [*old, *rows]}
            kept = [Row(label, heads, every.index(case)) for (label, heads), case in named.items()]
        stage = replace(stage, rows=kept, cases=[[list(head) for head in case] for case in every])
        self._stages[name] = stage
        write_stage(self._folder, name, stage, sums)
        return sums

    def _run_cases(self, name: str, cases: tuple[Case, ...], called: str) -> tuple[Stage, Arrays]:
        consumer = SilencedCases(
            cases,
            self._by,
            self._capture.heads,
            self._capture.measurable,
            self._resumable,
            means=self._means() if self._by == "mean" else None,
            donors=self._donors() if self._by == "shuffle" else None,
            loss=self._loss,
            mask_token=self._mask_token,
            seed=self._options.seed,
            told={"stage": name, **self._told},
        )
        return self._run(consumer, consumer.identity(), called)

    @property
    def _told(self) -> dict[str, Any]:
        """What of the options changes the result."""
        names = ("length", "windows", "short", "max_windows", "sample", "batch_size", "seed", "stack")
        values = self._options.as_dict()
        return {name: values[name] for name in names} | {
            "dtype": self._model.dtype,
            "weights": self._weights_hash[:16],
        }

    def _means(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """(L, H, d): of every head's output over all tokens of the windows."""
        capture = self._capture
        consumer = HeadMeans(capture.measurable, capture.heads, capture.head_width)
        there = read_stage(self._folder, MEANS)
        if there is None:
            told = {**consumer.identity(), **self._told}
            there = self._run(consumer, told, f"Averaging the heads of {self._model.name}")
            write_stage(self._folder, MEANS, *there)
        sums = there[1]
        return np.asarray(sums["output"] / max(int(sums["tokens"][0]), 1))

    def _donors(self) -> Donors:
        """Windows drawn at random from all, by the seed."""
        draws = np.random.default_rng(self._options.seed)
        kept: list[Any] = []
        source = self._source()
        for number, window in enumerate(source.windows(None)):
            place = number if number < DONORS else int(draws.integers(number + 1))
            if place < DONORS:
                kept[place : place + 1] = [window]
        if not kept:
            raise HeadscopeError(source.why_none())
        return Donors(np.stack([one.ids for one in kept]), np.array([one.size for one in kept], dtype=np.int64))

    def _run(self, consumer: Consumer, told: dict[str, Any], called: str) -> tuple[Stage, Arrays]:
        """What a consumer adds up over the windows, and how it ran."""
        began = time.perf_counter()
        source = self._source()
        weights_hash: Future[str] = Future()
        weights_hash.set_result(self._weights_hash)
        run = Run(
            self._model,
            self._capture,
            source,
            consumer,
            self._options,
            folder=self._folder,
            place=self._place,
            part=Part(),
            weights_hash=weights_hash,
            progress=self._progress,
            called=called,
        )

        def finish(total: ExactSum, ran: Ran) -> tuple[Stage, Arrays]:
            seconds = round(time.perf_counter() - began, 3)
            identity = json.dumps(told, sort_keys=True)
            return replace(_facts_of(source, ran), identity=identity, seconds=seconds), total.whole

        return run.measure(finish)

    def _source(self) -> TextWindows:
        return self._windows.source(WINDOWS_PER_SHARD)

    def _silenced_layers(self) -> list[int]:
        """Those asked for, and those of the heads that were silenced before."""
        heads = read_stage(self._folder, HEADS)
        before = [] if heads is None else [case[0][0] for case in heads[0].cases]
        return sorted({*self._layers, *before})

    def finish(self, study: StudyFolder | None) -> None:
        """Write tables and manifest."""
        last = list(self._stages.values())[-1]
        capture, model = self._capture, self._model
        low = high = value = None
        if self._loss is not None and self._undisturbed is not None:
            found = undisturbed_loss(self._undisturbed)
            value, low, high = (_number(one[0]) for one in (found.value, *found.interval()))
        facts = AblationFacts(
            headscope=metadata.version("headscope"),
            model=ModelFacts(
                name=model.name,
                layers=capture.layers,
                heads=capture.heads,
                head_width=capture.head_width,
                architecture=self._architecture,
                family=model.network.config.model_type,
                weights_sha256=self._weights_hash,
                dtype=model.dtype,
                captured_by=capture.route,
                stack=capture.stack,
                other_layers={str(layer): what for layer, what in capture.other_layers.items()} or None,
            ),
            source=last.source,
            options=self._options,
            by=self._by,
            layers=self._silenced_layers(),
            counts=last.counts,
            predicts=self._loss,
            no_loss=self._no_loss,
            undisturbed_loss=value,
            undisturbed_loss_low=low,
            undisturbed_loss_high=high,
            resumed=sorted(self._resumable),
            study=None if study is None else str(study.folder),
            run=last.run,
            seconds=round(time.perf_counter() - self._began, 3),
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            versions={
                "python": platform.python_version(),
                **{name: metadata.version(name) for name in ("torch", "transformers", "numpy")},
            },
            notices=[*model.notices, *self._windows.notices],
        )
        heads = read_stage(self._folder, HEADS)
        more = {}
        if study is not None and heads is not None:
            named = [(case[0][0], case[0][1]) for case in heads[0].cases]
            more[PREDICTORS] = predictors(named, importance_of(heads[1]), study)
        write_tables(self._folder, facts, more)


def _case(written: Sequence[Sequence[int]]) -> Case:
    return tuple((layer, head) for layer, head in written)


def _of_cases(sums: Arrays, places: Sequence[int]) -> Arrays:
    """Some cases, or all in another order. What is no sum of cases is (G,)."""
    return {name: array[list(places)] if array.ndim == 2 else array for name, array in sums.items()}


def _joined(one: Arrays, other: Arrays) -> Arrays:
    """The cases of the one, then those of the other, on the same windows."""
    return {name: np.concatenate([one[name], other[name]]) if one[name].ndim == 2 else one[name] for name in one}


def _facts_of(source: TextWindows, ran: Ran) -> Stage:
    """What was read and how it ran; the rest is filled in by the stage."""
    counts = {name: value for name, value in asdict(source.counts).items() if name != "longest_short"}
    facts: dict[str, Any] = {"windows": ran.windows, "windows_drawn_from": source.drawn_from}
    facts |= {"unreadable_records_left_out": source.unusable, "other_files_left_out": source.other_files}
    hashed = windows_hash(ran.fingerprints)
    return Stage(
        identity="",
        windows_sha256=hashed,
        cases=[],
        rows=[],
        source=SourceFacts(source.name, source.sha256, hashed, reading=source.reading),
        counts=CountFacts(**counts | facts),
        run=RunFacts(ran.device, ran.engine, ran.workers, ran.threads, ran.batch_size, source.windows_per_shard),
    )


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
