"""Documents whose segments are known: sections of Wikipedia, and pieces of articles put together as Choi did."""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

from headscope.corpus.alone import sentence_spans

SHARED = Path(__file__).parents[3] / "shared"
WIKI = SHARED / "segmentation" / "wiki-sections"
KYOTO = SHARED / "corpora" / "kyoto-wikipedia.jsonl.gz"

PIECES, SHORTEST, LONGEST = 10, 3, 11
"""Of a synthetic document: pieces, and sentences of each."""
SEPARATOR = "=========="


class Document(NamedTuple):
    """lengths: of its segments, in sentences."""

    sentences: list[str]
    lengths: list[int]


def sections(folder: Path = WIKI) -> list[Document]:
    """A file a document, a sentence a line, lines of ========== between segments; in the order of their names."""
    found = []
    for file in sorted(folder.iterdir(), key=lambda file: (len(file.name), file.name)):
        segments: list[list[str]] = [[]]
        for line in file.read_text("utf-8").splitlines():
            if line.startswith(SEPARATOR):
                segments.append([])
            elif line.strip():
                segments[-1].append(line.strip())
        filled = [segment for segment in segments if segment]
        if filled:
            found.append(Document([line for segment in filled for line in segment], [len(part) for part in filled]))
    return found


def synthetic(half: str, count: int, seed: int, alike: bool = False) -> list[Document]:
    """Each of the first sentences of 10 articles. half: "choosing", the articles that settings were chosen on, or
    "reporting", those that numbers are reported for. alike: all articles of a document are of one category."""
    articles = _articles()[half]
    by_category = defaultdict(list)
    for article in articles:
        by_category[article[0].partition("/")[0]].append(article)
    large = [name for name, some in by_category.items() if len(some) >= 3 * PIECES]
    draw = random.Random(seed)
    documents = []
    for _ in range(count):
        pool = by_category[draw.choice(large)] if alike else articles
        pieces = [sentences[: draw.randint(SHORTEST, LONGEST)] for _, sentences in draw.sample(pool, PIECES)]
        documents.append(Document([line for piece in pieces for line in piece], [len(piece) for piece in pieces]))
    return documents


@cache
def _articles() -> dict[str, list[tuple[str, list[str]]]]:
    """Names and first sentences of articles, in two halves."""
    found = []
    with gzip.open(KYOTO, "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            text = record["text"]
            sentences = [text[start:end].strip() for start, end in sentence_spans(text, "auto")]
            if len(sentences) > LONGEST:
                found.append((record["id"], sentences[:LONGEST]))
    order = list(range(len(found)))
    random.Random(5).shuffle(order)
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    return {
        half: [found[place] for place in some] for half, some in zip(("choosing", "reporting"), halves, strict=True)
    }
