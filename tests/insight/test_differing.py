"""What differs between studies is told by hashes and options, not by names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headscope.corpus.grid import Grid
from headscope.folder.manifest import CountFacts, Manifest, ModelFacts, NullFacts, SourceFacts
from headscope.insight.differing import heading, other_tokenizers, same_texts, shortened, what_differs
from headscope.options import Options

SHAPE: dict[str, Any] = {"layers": 6, "heads": 12, "head_width": 32, "architecture": "BertModel", "family": "bert"}


def a_study(
    weights: str | None = "a",
    texts: str | None = "a",
    windows: str | None = "a",
    options: dict[str, Any] | None = None,
    kind: Any = "texts",
    versions: dict[str, str] | None = None,
    **model: Any,
) -> Manifest:
    """Hashes are a letter, 64 times."""
    weights, texts, windows = (None if letter is None else letter * 64 for letter in (weights, texts, windows))
    return Manifest(
        "0.2.0",
        ModelFacts("a name", **{**SHAPE, "weights_sha256": weights, **model}),
        SourceFacts("a place", texts, windows),
        Options(**options or {}),
        list(range(6)),
        CountFacts(160),
        kind=kind,
        versions={"torch": "2.13.0", "nupunkt": "0.8.0", **(versions or {})},
    )


STACKED = {"stack": "decoder"}
HEADINGS = {
    "Two models of the same shape on the same texts, cut into other windows": (
        {"weights": "b", "windows": "b", "options": {"sample": 500, "seed": 1}},
    ),
    "The same study twice: the same model on the same windows, measured alike": ({},),
    "The same study 3 times: the same model on the same windows, measured alike": ({}, {}),
    "The same model on different texts": ({"texts": "b", "windows": "b"},),
    "The same model on the same texts, cut into other windows": ({"windows": "b", "options": {"windows": "first"}},),
    "The same model on the same windows, with another version of torch": ({"versions": {"torch": "2.12.0"}},),
    "The same model on the same windows, with another option seed": ({"options": {"seed": 3}},),
    "Two models of the same shape on the same windows": ({"weights": "b"},),
    "Two models of the same shape on different texts": ({"weights": "b", "texts": "b", "windows": "b"},),
    "Two models of different shapes on the same windows": ({"weights": "b", "layers": 12},),
    "Two models of the same shape on the same texts, cut into other windows by their tokenizers": (
        {"weights": "b", "windows": "b"},
    ),
    "Three models of the same shape on the same windows": ({"weights": "b"}, {"weights": "c"}),
    "Two models of the same shape, in three studies, on the same windows": ({"weights": "b"}, {"weights": "b"}),
    "Two stacks of the same model on different texts": ({"texts": "b", "windows": "b", **STACKED},),
    "Two studies whose weights have no hash on texts that have no hash": (
        {"weights": None, "texts": None, "windows": None},
    ),
}


@pytest.mark.parametrize("said", HEADINGS)
def test_a_heading_says_what_studies_are_to_each_other(said: str) -> None:
    assert heading([a_study(), *(a_study(**other) for other in HEADINGS[said])]) == said


def test_options_that_change_no_number_do_not_make_another_study() -> None:
    otherwise = a_study(options={"batch_size": 1, "maps": "none", "max_windows": 160})
    assert heading([a_study(), otherwise]).startswith("The same study twice")


def test_images_are_not_called_texts() -> None:
    grid = replace(a_study(kind="images"), source=SourceFacts("here", "a" * 64, "a" * 64, Grid(7, 7, 1)))
    other = replace(grid, source=SourceFacts("there", "b" * 64, "b" * 64, Grid(7, 7, 1)))
    assert heading([grid, other]) == "The same model on different images"
    assert heading([grid, replace(grid, model=a_study("b").model)]) == (
        "Two models of the same shape on the same images"
    )


def test_a_null_is_said_to_be_one() -> None:
    null = replace(a_study(windows="b"), null=NullFacts("tokens", "a" * 64, "a" * 64, 160))
    assert heading([a_study(), null]) == "The same model on the same texts, nulls among them (shuffled tokens)"


def test_only_what_differs_is_listed_and_by_whole_hashes() -> None:
    found = what_differs({"wiki": a_study(), "news": a_study(texts="b", windows="c", options={"max_windows": 9})})
    assert found.to_dict("split")["data"] == [
        ["texts", "a" * 64, "b" * 64],
        ["windows", "a" * 64, "c" * 64],
        ["option max_windows", None, "9"],
    ]
    assert list(found.columns) == ["what", "wiki", "news"]
    assert what_differs({"one": a_study(), "other": a_study()}).empty
    assert [shortened(value) for value in ("a" * 64, None, "9")] == ["aaaaaaaa…", "–", "9"]


def test_texts_of_one_name_are_not_the_same_and_without_a_hash_nothing_is() -> None:
    assert not same_texts([a_study(), a_study(texts="b")])
    assert not same_texts([a_study(texts=None), a_study(texts=None)])
    elsewhere = replace(a_study(), source=SourceFacts("elsewhere", "a" * 64, "a" * 64))
    assert same_texts([a_study(), elsewhere])


def test_windows_that_options_or_versions_explain_say_nothing_of_tokenizers() -> None:
    assert other_tokenizers([a_study(), a_study(windows="b")])
    assert not other_tokenizers([a_study(), a_study(windows="b", options={"windows": "first"})])
    assert not other_tokenizers([a_study(), a_study(windows="b", versions={"nupunkt": "0.9.0"})])
    assert not other_tokenizers([a_study(), a_study(texts="b", windows="b")])
