"""`headscope.inspect`: one text, looked at closely."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from headscope.arguments import naming_typos
from headscope.corpus.given_ids import is_numbers
from headscope.corpus.texts import Text, as_texts, only_text
from headscope.corpus.windows import Counts, Cutter, refuse_unknown, unpadded
from headscope.errors import HeadscopeError
from headscope.folder.study_folder import StudyFolder
from headscope.model.capture import Capture
from headscope.model.loading import Model, as_model
from headscope.model.proof import prove
from headscope.one_text.look import look
from headscope.one_text.view import OneText
from headscope.options import Options, Sentences, Similarity, Special, Stack
from headscope.show.objects import Study, View
from headscope.speaking import option
from headscope.wording import counted

LONGEST = 512
"""Tokens of a text that `inspect` takes unless told otherwise; a model may take fewer."""


@naming_typos()
def inspect(
    model: Model | str,
    text: Any,
    *,
    length: int | None = None,
    window: int = 0,
    threshold: float = 0.3,
    line_threshold: float = 0.3,
    special: Special = "keep",
    similarity: Similarity = "dot",
    sentences: Sentences = "auto",
    layers: Sequence[int] | None = None,
    stack: Stack | None = None,
    study: StudyFolder | str | os.PathLike[str] | None = None,
) -> View:
    """Look at one text closely: one window of it, in every head.

    text: a string, or the `Path` of a file that holds one text; a pair of strings, as in `("premise", "hypothesis")`;
    or token ids, one row of them. length: the most tokens to take; by default as many as the model takes, up to 512,
    and of token ids all. A shorter text is not padded. window: which of that many tokens, by default the first.
    layers: those to keep, -1 is the last; by default all.
    similarity: of the outputs as they are (dot), less their mean over the window (centred), or of length 1 (cosine).
    stack: of an encoder-decoder, which of its stacks of layers.
    study: of the same model, or its folder; the view shows beside each head what it says of it.

    >>> import headscope
    >>> view = headscope.inspect("minilm", "The cat sat. The cat slept.")  # doctest: +SKIP
    >>> view.pairs(layer=5, head=8)  # doctest: +SKIP
    """
    given = _given(text)
    if study is not None and not isinstance(study, StudyFolder):
        study = Study(study)
    model = as_model(model)
    if length is None:
        length = min(LONGEST, model.longest or LONGEST)
        if given.given is not None:
            length = Cutter(model.tokenizer, Options(), model.embedding_rows).length_of_rows([given])
    model.check_length(length)
    looking = Looking(model, stack)
    if study is not None:
        _check_study(study, model, looking.capture)
    options = Options(
        length=length,
        threshold=threshold,
        line_threshold=line_threshold,
        special=special,
        similarity=similarity,
        sentences=sentences,
        layers=_numbered(layers, looking.capture) if layers is not None else None,
        short="pad",
        stack=stack,
    )
    seen = looking.at(given, options, window)
    return View(**{item.name: getattr(seen, item.name) for item in fields(seen)}, study=study)


class Looking:
    """A model that is looked at texts with, one after the other: its heads are found once, and what is captured of
    them is proved on the first text."""

    def __init__(self, model: Model, stack: Stack | None = None) -> None:
        self.model = model
        self.capture = Capture(model.network, stack)
        self._proved = False

    def at(self, text: Any, options: Options, window: int = 0) -> OneText:
        """One window of a text, in every head."""
        model, counts = self.model, Counts()
        cutter = Cutter(model.tokenizer, options, model.embedding_rows)
        chosen = next(cutter.cut(_given(text), counts, window + 1, lambda number: number == window), None)
        if chosen is None:
            raise HeadscopeError(
                f"The text has {counted(counts.windows, 'window')} of {options.length} tokens; "
                f"there is no window {window}."
                if counts.windows
                else "The text holds no token of this model; there is nothing to look at."
            )
        refuse_unknown(counts, model.name)
        if not self._proved:
            batch = unpadded(chosen)
            prove(self.capture, *self.capture.inputs(batch), self.capture.types(batch))
            self._proved = True
        return look(model, self.capture, chosen, options)


def count_windows(model: Model, text: Any, length: int) -> int:
    """How many windows of that many tokens a text has; the last may be shorter."""
    counts = Counts()
    cutter = Cutter(model.tokenizer, Options(length=length, short="pad"), model.embedding_rows)
    next(cutter.cut(_given(text), counts, wanted=lambda number: False), None)
    return counts.windows


def _check_study(study: StudyFolder, model: Model, capture: Capture) -> None:
    """Refuse a study that says nothing of the heads that are looked at."""
    study.check_not_empty()
    if study.manifest.kind != "texts":
        raise HeadscopeError(f"{study.folder} is a study of images; give one of texts.")
    facts = study.manifest.model
    if facts.weights_sha256 != model.weights_hash:
        theirs, ours = facts.name, model.name
        if facts.dtype not in (None, model.dtype):
            theirs, ours = f"{theirs} in {facts.dtype}", f"{ours} in {model.dtype}"
        raise HeadscopeError(
            f"{study.folder} is a study of {theirs}, whose weights are not those of {ours}; "
            "give a study of the same model."
        )
    if facts.stack != capture.stack:
        raise HeadscopeError(
            f"{study.folder} is a study of the stack {facts.stack}, and this is {capture.stack}; "
            f"give {option('stack', facts.stack)}, or another study."
        )


def _given(text: Any) -> Text:
    given = _only_text(text)
    if given is None or not (given.text.strip() or given.given):
        raise HeadscopeError("The text is empty; there is nothing to look at.")
    return given


def _only_text(text: Any) -> Text | None:
    """The one that was given; several are refused, not dropped."""
    if isinstance(text, Text):
        return text
    if isinstance(text, str):
        return next(iter(as_texts([text])))._replace(origin="")
    if text is None:
        raise HeadscopeError("text is None; give a string, or the Path of a file.")
    if _is_one(text):
        text = [text]
    return only_text(as_texts(text))


def _is_one(text: Any) -> bool:
    """A pair of strings, or a row of token ids, which would be several texts elsewhere."""
    if isinstance(text, tuple) and len(text) == 2 and all(isinstance(part, str) for part in text):
        return True
    if isinstance(text, (list, tuple)):
        return bool(text) and all(isinstance(part, int) for part in text)
    return is_numbers(text) and text.ndim == 1


def _numbered(layers: Iterable[int], capture: Capture) -> tuple[int, ...]:
    """Layers asked for -> their numbers in order; negative ones count from the last one that has attention."""
    count, last = capture.layers, capture.measurable
    for layer in layers:
        if not -len(last) <= layer < count:
            raise HeadscopeError(f"There is no layer {layer}: the model has {count}, numbered 0 to {count - 1}.")
    return tuple(sorted({last[layer] if layer < 0 else layer for layer in layers}))
