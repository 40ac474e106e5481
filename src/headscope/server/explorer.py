"""What the explorer can show: texts with its models, and a study."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from headscope.errors import HeadscopeError
from headscope.insight.about_heads import about_study_beside
from headscope.jobs.inspecting import Looking, count_windows
from headscope.model.loading import Model
from headscope.one_text.view import OneText
from headscope.options import Options
from headscope.show.objects import Study
from headscope.show.viewer.of_study import has_sums, pack_study, pack_sums
from headscope.show.viewer.packing import pack
from headscope.speaking import option
from headscope.wording import model_label

MOST_CHARACTERS = 200_000
"""Of a text."""
LONGEST = 512
"""Tokens of a window."""
FIRST = (
    "The river had risen in the night, and by morning the ferry could not leave. The ferryman sat on the steps and "
    "mended a net. Three women with baskets asked him when the ferry would leave; he looked at the river, then at "
    "the net, and said that the river would decide. So the women set down their baskets, and one of them began to "
    "tell of another river, in another spring, and of another ferryman, who had not waited."
)
"""The text to begin with, where no study keeps one."""


class Explorer:
    """models: those that texts can be looked at with; the first is that of the study, where there is one."""

    def __init__(self, models: Sequence[Model], study: Study | None = None) -> None:
        self._models = {model.name: Looking(model) for model in models}
        self._study = study
        self._looks = ThreadPoolExecutor(1)
        """One text at a time, in one thread, until it is packed: several at once would share the same cores, wait for
        each other within every product, and all be late."""

    @property
    def about(self) -> dict[str, Any]:
        """What the page offers."""
        first: dict[str, Any] = {"from": "text", "text": FIRST, "length": 128, "window": 0}
        if self._models:
            first["model"] = next(iter(self._models))
        study = self._study
        return {
            "models": [{"name": name, "label": model_label(name)} for name in self._models],
            "longest": min([LONGEST, *(looking.model.longest or LONGEST for looking in self._models.values())]),
            "limit": MOST_CHARACTERS,
            "study": study and {"example": self._has_example, "sums": has_sums(study)},
            "first": {"from": "example"}
            if study and self._has_example
            else first
            if self._models
            else {"from": "sums"},
        }

    def look(self, text: str, model: str, length: int, window: int) -> str:
        """A window of a text, packed for the viewer, as JSON."""
        if model not in self._models:
            raise HeadscopeError(
                f"There is no model {model!r} here; start headscope explore with {option('model', model)}."
            )
        return self._looks.submit(self._looked, self._models[model], text, length, window).result()

    def _looked(self, looking: Looking, text: str, length: int, window: int) -> str:
        loaded = looking.model
        options = Options(length=min(length, loaded.longest or length), short="pad")
        view = looking.at(text, options, window)
        mine = self._study if self._study and self._study.manifest.model.weights_sha256 == loaded.weights_hash else None
        return _json(
            {
                **_packed(view, mine),
                "windows": count_windows(loaded, text, options.length),
                "fits": mine is not None,
            }
        )

    @cached_property
    def study(self) -> str:
        return _json(pack_study(self._opened))

    @cached_property
    def sums(self) -> str:
        return _json(pack_sums(self._opened))

    @cached_property
    def example(self) -> str:
        return _json({**_packed(self._opened.example, self._opened), "windows": 1, "fits": True})

    @property
    def _opened(self) -> Study:
        if self._study is None:
            raise HeadscopeError("There is no study here; start headscope explore with the folder of one.")
        return self._study

    @cached_property
    def _has_example(self) -> bool:
        try:
            return self._study is not None and bool(self._study.example.size)
        except HeadscopeError:
            return False


def _packed(view: OneText, study: Study | None) -> dict[str, Any]:
    return {**pack(view), "aboutStudy": None if study is None else about_study_beside(view, study)}


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
