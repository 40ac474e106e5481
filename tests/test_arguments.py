"""A mistyped argument names the nearest one, whatever the verb."""

from __future__ import annotations

import inspect

import pytest

import headscope
from headscope.errors import HeadscopeError


@pytest.mark.parametrize(
    ("verb", "given", "typed", "meant"),
    [
        (headscope.study, ("minilm", ["A text."]), "treshold", "threshold"),
        (headscope.study, ("minilm", ["A text."]), "overwrit", "overwrite"),
        (headscope.study_images, ("minilm", []), "max_image", "max_images"),
        (headscope.inspect, ("minilm", "A text."), "treshold", "threshold"),
        (headscope.nulls, ("folder",), "max_window", "max_windows"),
        (headscope.segment, ("minilm", "A text."), "levels", "level"),
        (headscope.load, ("minilm",), "dytpe", "dtype"),
        (headscope.read_texts, ("a.csv",), "fields", "field"),
        (headscope.merge, (["a", "b"],), "ouput", "out"),
    ],
)
def test_a_typo_names_the_nearest_argument(verb, given, typed, meant):
    with pytest.raises(
        HeadscopeError, match=f"^headscope.{verb.__name__} has no argument {typed}; the nearest is {meant}"
    ):
        verb(*given, **{typed: 1})
    with pytest.raises(TypeError):
        verb(*given, **{typed: 1})


def test_what_is_like_nothing_points_to_the_help():
    with pytest.raises(HeadscopeError, match=r"has no argument qqqq; help\(headscope.study\) shows"):
        headscope.study("minilm", qqqq=1)


def test_verbs_still_show_their_arguments():
    assert "texts" in inspect.signature(headscope.study).parameters
    assert "Measure every head" in headscope.study.__doc__
