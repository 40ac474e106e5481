"""The options of a study, checked at the door."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from operator import index
from typing import Any, Literal, get_args

from headscope.errors import HeadscopeError
from headscope.speaking import either, option

Windows = Literal["all", "first"]
Short = Literal["auto", "drop", "pad"]
Special = Literal["keep", "drop"]
Sentences = Literal["auto", "english", "unicode", "lines"]
Similarity = Literal["dot", "centred", "cosine"]
Dtype = Literal["float32", "float16", "bfloat16"]
Maps = Literal["auto", "none", "location", "all"]
Stack = Literal["encoder", "decoder", "cross", "text", "vision"]
SHORTEST = 3
"""Tokens of a window: with two special ones there is one of a text."""
TOKENS_AT_ONCE = 1024
"""In a batch whose size is not asked for: the fastest on a CPU, with windows of 128 tokens and of 512."""


@dataclass(frozen=True)
class Options:
    """What is measured and how; every field changes the result or its last float digits. short: windows shorter than
    `length` are left out, padded, or as a first look at the texts decides; a study keeps what was decided. sample: so
    many windows, drawn by `seed` and spread over all texts; max_windows: the first ones. maps: which of the maps of
    every head are written, positions against positions: they are most of a folder; auto: all, unless they are very
    large. keep_windows: the numbers of every
    window are written too; meta: with these columns of the texts' table or fields of their objects.

    >>> Options(length=64).length
    64
    """

    length: int = 128
    threshold: float = 0.3
    line_threshold: float = 0.3
    windows: Windows = "all"
    short: Short = "auto"
    special: Special = "keep"
    similarity: Similarity = "dot"
    sentences: Sentences = "auto"
    max_windows: int | None = None
    sample: int | None = None
    layers: tuple[int, ...] | None = None
    batch_size: int | None = None
    seed: int = 0
    stack: Stack | None = None
    maps: Maps = "auto"
    keep_windows: bool = False
    meta: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _at_least("length", self.length, SHORTEST)
        if self.batch_size is not None:
            _at_least("batch_size", self.batch_size, 1)
        if self.max_windows is not None:
            _at_least("max_windows", self.max_windows, 1)
        if self.sample is not None:
            _at_least("sample", self.sample, 1)
            if self.max_windows is not None:
                raise HeadscopeError(
                    f"{option('sample')} spreads over all texts and {option('max_windows')} takes the first ones; give "
                    "one of them."
                )
        for name, value in (("threshold", self.threshold), ("line_threshold", self.line_threshold)):
            if not 0 <= value < 1:
                raise HeadscopeError(f"{option(name)} is {value:g}; it must be at least 0 and below 1.")
        for name, choice, kinds in (
            ("windows", self.windows, Windows),
            ("short", self.short, Short),
            ("special", self.special, Special),
            ("similarity", self.similarity, Similarity),
            ("sentences", self.sentences, Sentences),
            ("maps", self.maps, Maps),
            *([("stack", self.stack, Stack)] if self.stack is not None else []),
        ):
            if choice not in get_args(kinds):
                raise HeadscopeError(f"{option(name)} is {choice!r}; it must be {' or '.join(get_args(kinds))}.")
        object.__setattr__(self, "meta", self.meta if isinstance(self.meta, str) else tuple(self.meta))
        if isinstance(self.meta, str) or not all(isinstance(name, str) and name for name in self.meta):
            example = either("label,year", '("label", "year")')
            raise HeadscopeError(f"{option('meta')} is {self.meta!r}; it must name columns, for example {example}.")
        if self.meta and not self.keep_windows:
            object.__setattr__(self, "keep_windows", True)
        for name in self.meta:
            if self.meta.count(name) > 1:
                raise HeadscopeError(f"{option('meta')} names {name} twice; name each column once.")
        if self.layers is not None:
            object.__setattr__(self, "layers", _layers(self.layers))

    @property
    def windows_at_once(self) -> int:
        """Windows in a batch: as asked for, or by their length.

        >>> Options(length=128).windows_at_once, Options(length=1024).windows_at_once
        (8, 1)
        """
        return self.batch_size or max(1, TOKENS_AT_ONCE // self.length)

    def as_fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        values = asdict(self)
        if self.layers is not None:
            values["layers"] = list(self.layers)
        values["meta"] = list(self.meta)
        return values

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Options:
        """From JSON: what `as_dict` made. Before there was a choice of `sentences`, all were taken for English."""
        layers = values.get("layers")
        return cls(
            **{
                "sentences": "english",
                "short": "drop",
                "maps": "all",
                **values,
                "layers": None if layers is None else tuple(layers),
                "meta": tuple(values.get("meta", ())),
            }
        )


def _layers(given: Iterable[Any]) -> tuple[int, ...]:
    """Numbers of layers, each once, in their order."""
    example = either("0-5 or 3,7,11", "range(6) or (3, 7, 11)")
    try:
        asked = [*given]
        layers = {index(layer) for layer in asked}
        usable = (
            len(layers) > 0 and not isinstance(given, str | bytes) and not any(isinstance(one, bool) for one in asked)
        )
    except TypeError:
        usable = False
    if not usable:
        raise HeadscopeError(f"{option('layers')} is {given!r}; name layers by their numbers, for example {example}.")
    return tuple(sorted(layers))


def parse_layers(text: str) -> tuple[int, ...]:
    """Read a choice of layers or heads.

    >>> parse_layers("0-2,5")
    (0, 1, 2, 5)
    """
    chosen: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None:
            raise HeadscopeError(f"{text!r} is not a list of numbers; write for example 0-5 or 3,7,11.")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last > 10_000:
            raise HeadscopeError(f"{part.strip()!r} in {text!r} is not a range; write the lower number first.")
        chosen.update(range(first, last + 1))
    return tuple(sorted(chosen))


def parse_heads(text: str, option: str) -> frozenset[tuple[int, int]]:
    """Read a set of heads, a layer and the number of a head in it each.

    >>> sorted(parse_heads("3:1, 5:7", "--heads"))
    [(3, 1), (5, 7)]
    """
    heads = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,6}):([0-9]{1,6})\s*", part)
        if match is None:
            raise HeadscopeError(f"{option} is {text!r}; write layer:head of each, for example 3:1,5:7.")
        heads.add((int(match[1]), int(match[2])))
    return frozenset(heads)


def _at_least(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise HeadscopeError(f"{option(name)} is {value}; it must be a whole number of at least {least}.")
