"""`headscope.nulls`: the same windows where there is nothing to know, measured to hold a study against."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from typing import Any

from headscope.arguments import naming_typos
from headscope.corpus.null_kinds import CALLED, NULLS, Null
from headscope.corpus.nulls import NullWindows
from headscope.corpus.sampling import Sample, Spread
from headscope.corpus.text_windows import texts_hash
from headscope.corpus.texts import SAMPLE, Texts, as_texts, sample_texts
from headscope.errors import HeadscopeError
from headscope.folder.manifest import MANIFEST, Manifest, NullFacts, read_manifest
from headscope.folder.roles_file import write_roles
from headscope.folder.study_folder import StudyFolder, claim, is_null_of, null_folder, null_options
from headscope.insight.beside import beside
from headscope.insight.roles import ROLES, roles, rules_of
from headscope.jobs.study_job import StudyJob
from headscope.model.capture import Capture
from headscope.model.loading import Model, load, redrawn
from headscope.run import checkpoints, shards
from headscope.run.engines import Place
from headscope.run.shards import Part
from headscope.show.objects import Study
from headscope.speaking import either, option
from headscope.wording import counted


@naming_typos()
def nulls(
    study: StudyFolder | str | os.PathLike[str],
    model: Model | str | None = None,
    texts: Any = None,
    *,
    field: str | Sequence[str] | None = None,
    max_windows: int | None = None,
    only: Sequence[Null] | None = None,
    overwrite: bool = False,
    progress: bool = True,
    device: str = "auto",
    engine: str = "local",
    workers: int | None = None,
    threads: int | None = None,
    address: str | None = None,
) -> Study:
    """Measure what a finished study would be where there is nothing to know, into its folder `nulls`.

    tokens: the tokens of each window in random order. sentences: those of each text in random order, cut anew.
    weights: the architecture with random weights. With all three, heads have roles, and findings and claims say what is
    learned. model, texts (and their `field`): those of the study, which is checked; by default they are looked for
    where it read them.
    max_windows: so many of its windows, evenly spread. What is there already is not measured again.

    >>> import headscope
    >>> study = headscope.nulls("wiki", max_windows=500)  # doctest: +SKIP
    >>> study.heads["role"].value_counts()  # doctest: +SKIP
    """
    opened = Study(study.folder if isinstance(study, StudyFolder) else study)
    wanted = NULLS if only is None else tuple(only)
    _check(opened, max_windows, wanted)
    place = Place(engine, workers, threads, address)
    spread = Spread(opened.windows, min(max_windows or opened.windows, opened.windows))
    missing = [null for null in NULLS if null in wanted and _is_missing(opened, null, spread, overwrite)]
    if missing:
        given = _texts(opened, texts, field)
        loaded = _model(opened.manifest, model, device)
        for null in missing:
            _measure(opened, null, loaded, given, spread, place, progress, overwrite)
    finished = Study(opened.folder)
    if set(finished.nulls) == set(NULLS):
        of_nulls: dict[str, Manifest] = {null: one.manifest for null, one in finished.nulls.items()}
        rules = rules_of(ROLES)
        write_roles(finished.folder, roles(finished), beside(finished), finished.manifest, of_nulls, rules)
    return Study(opened.folder)


def _check(study: Study, max_windows: int | None, only: Sequence[Null]) -> None:
    manifest = study.manifest
    if max_windows is not None and max_windows < 1:
        raise HeadscopeError(f"{option('max_windows')} is {max_windows}; it must be a whole number of at least 1.")
    for null in only:
        if null not in NULLS:
            raise HeadscopeError(f"There is no null {null!r}; there are {', '.join(NULLS)}.")
    if manifest.kind != "texts":
        raise HeadscopeError(f"{study.folder} is a study of images; only studies of texts have nulls.")
    if manifest.null is not None:
        raise HeadscopeError(f"{study.folder} is a null study itself; name the study that it belongs to.")
    if manifest.part is not None:
        raise HeadscopeError(f"{study.folder} is a part of a study; merge the parts first.")
    if manifest.merged is not None and " + " in manifest.source.name:
        raise HeadscopeError(
            f"{study.folder} was merged from studies of different texts; make the nulls of each of them."
        )
    if manifest.source.windows_sha256 is None or manifest.model.weights_sha256 is None:
        raise HeadscopeError(f"{study.folder} does not say what it measured exactly; run the study again first.")


def _is_missing(study: Study, null: Null, spread: Spread, overwrite: bool) -> bool:
    """Whether it is to be measured; one that is there but of other windows is refused."""
    folder = null_folder(study.folder, null)
    if overwrite or not (folder / MANIFEST).is_file():
        return True
    there = read_manifest(folder)
    if is_null_of(there, study.manifest, null) and there.null == _facts(study.manifest, null, spread):
        return False
    raise HeadscopeError(
        f"{folder} holds a null of other windows, weights or options than this study with "
        f"{counted(spread.taken, 'window')}; give the same {option('max_windows')}, or "
        f"{option('overwrite', True)}."
    )


def _facts(manifest: Manifest, null: Null, spread: Spread) -> NullFacts:
    assert manifest.source.windows_sha256 is not None
    assert manifest.model.weights_sha256 is not None
    return NullFacts(null, manifest.source.windows_sha256, manifest.model.weights_sha256, spread.taken)


def _sample(manifest: Manifest) -> Sample | None:
    """The windows of the study among all that its texts have; None where it has all of them."""
    drawn_from = manifest.counts.windows_drawn_from
    return None if drawn_from is None else Sample(drawn_from, manifest.counts.windows, manifest.options.seed)


def _texts(study: Study, texts: Any, field: str | Sequence[str] | None) -> Texts:
    """Those of the study, by their hash."""
    source, counts = study.manifest.source, study.manifest.counts
    how = f"give them: {either('headscope nulls FOLDER TEXTS...', 'headscope.nulls(study, texts=...)')}"
    if texts is not None:
        given = as_texts(texts, field)
    elif source.reading is not None:
        try:
            given = source.reading.read()
        except HeadscopeError as problem:
            raise HeadscopeError(
                f"The texts of {study.folder} are not where it read them ({problem.sentence}); {how}"
            ) from None
    elif source.name == SAMPLE:
        given = sample_texts()
    else:
        raise HeadscopeError(f"{study.folder} does not say where its texts are ({source.name}); {how}")
    if given.once:
        raise HeadscopeError("Nulls read the texts several times, which these do not allow; give files, or a list.")
    if texts_hash(islice(given, counts.texts)) != source.sha256:
        raise HeadscopeError(f"{given.name} holds other texts than {study.folder} measured ({source.name}); {how}")
    return given


def _model(manifest: Manifest, model: Model | str | None, device: str) -> Model:
    """That of the study, by the hash of its weights."""
    facts = manifest.model
    if isinstance(model, Model):
        loaded = model
    else:
        loaded = load(model or facts.name, device=device, dtype=facts.dtype or "float32", seed=manifest.options.seed)
    if loaded.weights_hash != facts.weights_sha256:
        raise HeadscopeError(
            f"{loaded.name} has other weights than the model of the study ({facts.name}); name the right one with "
            f"{option('model')}."
        )
    return loaded


def _measure(
    study: Study,
    null: Null,
    model: Model,
    texts: Texts,
    spread: Spread,
    place: Place,
    progress: bool,
    overwrite: bool,
) -> None:
    folder = null_folder(study.folder, null)
    options = null_options(study.manifest.options)
    if null == "weights":
        # A study of random weights is held against others than its own.
        model = redrawn(model, options.seed + 1)
    capture = Capture(model.network, options.stack)
    source = NullWindows(
        null,
        spread,
        texts,
        model.tokenizer,
        options,
        shards.WINDOWS_PER_SHARD,
        model_name=model.name,
        embedding_rows=model.embedding_rows,
        sample=_sample(study.manifest),
    )
    facts = _facts(study.manifest, null, spread)
    job = StudyJob(model, capture, source, options, Part(), null=facts, called=f"Measuring {CALLED[null]}")
    claim(folder, overwrite)
    with checkpoints.locked(folder):
        if overwrite:
            (folder / MANIFEST).unlink(missing_ok=True)
            checkpoints.clear(folder)
        job.run(folder, place, progress)
