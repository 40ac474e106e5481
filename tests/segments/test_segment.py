"""headscope.segment: a text cut where the model does."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import headscope
from headscope.corpus.alone import Alone
from headscope.errors import HeadscopeError
from headscope.jobs import segmenting
from headscope.model.loading import Model
from headscope.model.recording import NotCaptured
from headscope.segments import line_units
from headscope.segments.wishes import Wishes

ONE_MODEL = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
PIECES = [*"abc .!?\n\r\t", "。", "猫", "é", "\u200b", "\x00", "🙂", "The cat sat. ", "No, said J. Doe; "]
SOME_TEXT = st.lists(st.sampled_from(PIECES), min_size=1, max_size=40).map("".join)
REFUSED = ("nothing to cut", "unknown to the tokenizer")


@pytest.fixture(scope="module")
def articles(sample: list[str]) -> str:
    """Four sample texts in a row."""
    return "\n\n".join(sample[number] for number in (0, 5, 9, 20))


@ONE_MODEL
@given(SOME_TEXT, st.sampled_from(["topics", "sentences"]), st.booleans())
def test_segments_are_the_text_and_nothing_is_lost(tiny: Model, text: str, level: str, lines: bool) -> None:
    try:
        cut = headscope.segment(tiny, text, level=level, lines=lines)
    except HeadscopeError as problem:
        if not any(reason in str(problem) for reason in REFUSED):
            raise
        return
    assert "".join(cut.pieces()) == text
    assert cut.segments[0].start == 0
    assert cut.segments[-1].end == len(text)
    for before, after in pairwise(cut.segments):
        assert before.end == after.start
    assert all(0 <= segment.score <= 1 and segment.end > segment.start for segment in cut.segments)
    assert cut.segments[-1].last_sentence == len(cut.sentences) - 1


def test_articles_are_told_apart(minilm: Model, articles: str, sample: list[str]) -> None:
    cut = headscope.segment(minilm, articles)
    starts = {segment.start for segment in cut.segments}
    assert {articles.index(sample[number]) for number in (0, 5, 9, 20)} <= starts
    assert len(headscope.segment(minilm, articles, granularity=4)) > len(cut) >= 4
    assert len(headscope.segment(minilm, articles, granularity=0.1)) == 1


@pytest.mark.parametrize("using", ["heads", "pooled", "both"])
def test_a_known_number_is_met(minilm: Model, articles: str, using: str) -> None:
    for number in (1, 4, 11):
        cut = headscope.segment(minilm, articles, segments=number, using=using)
        assert len(cut) == number
        assert {"heads": "head vectors", "pooled": "pooled", "both": "head and pooled"}[using] in repr(cut)
    assert bool(cut.heads.size) == (using != "pooled")


def test_boundaries_score_above_a_half_and_other_places_below(minilm: Model, articles: str) -> None:
    cut = headscope.segment(minilm, articles)
    chosen = np.isin(cut.places, [segment.start for segment in cut.segments])
    assert (cut.scores[chosen] >= 0.5).all()
    # A place next to a boundary can't be one: a segment has two sentences.
    apart = ~chosen & ~np.roll(chosen, 1) & ~np.roll(chosen, -1)
    apart[-1] = False
    assert (cut.scores[apart] <= 0.5).all()


def test_the_choice_of_heads_is_shown(minilm: Model, articles: str) -> None:
    heads = headscope.segment(minilm, articles).heads
    assert list(heads.columns) == ["layer", "head", "contrast", "weight"]
    assert sorted(heads.layer.unique()) == [4, 5]
    assert heads.weight.sum() == pytest.approx(1)
    assert heads.weight.is_monotonic_decreasing
    chosen = headscope.segment(minilm, articles, layers=(1, 3)).heads
    assert sorted(chosen.layer.unique()) == [1, 3]


def test_the_size_of_batches_changes_nothing_but_rounding(
    minilm: Model, articles: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = headscope.segment(minilm, articles)
    monkeypatch.setattr("headscope.corpus.alone.TOKENS_AT_ONCE", 100)
    other = headscope.segment(minilm, articles)
    assert [segment.start for segment in one.segments] == [segment.start for segment in other.segments]
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-4)


def test_the_order_of_texts_changes_nothing(minilm: Model, sample: list[str]) -> None:
    texts = [next(iter(headscope.sample_texts()))._replace(text=text) for text in sample[:3]]
    there = list(segmenting.segment_all(minilm, texts, Wishes()))
    back = list(segmenting.segment_all(minilm, texts[::-1], Wishes()))[::-1]
    assert [cut.as_json() for cut in there] == [cut.as_json() for cut in back]


@pytest.mark.slow
def test_a_long_text_is_read_in_runs_and_cut_alike(
    minilm: Model, sample: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n\n".join(sample[:8])
    whole = headscope.segment(minilm, text)
    monkeypatch.setattr(segmenting, "SAMPLE", 96)
    monkeypatch.setattr(segmenting, "RUNS", 4)
    parts = headscope.segment(minilm, text)
    assert "".join(parts.pieces()) == text
    articles = {text.index(article) for article in sample[:8]}
    for cut in (whole, parts):
        assert len(articles & {segment.start for segment in cut.segments}) >= 6
    assert len(headscope.segment(minilm, text, segments=30)) == 30


def test_lines_are_sentences(tiny: Model) -> None:
    cut = headscope.segment(tiny, "the cat sat. it slept\r\nthe dog\r\n\r\nran off\r\n", lines=True)
    assert [cut.text[start:end] for start, end in cut.sentences] == [
        "the cat sat. it slept\r\n",
        "the dog\r\n\r\n",
        "ran off\r\n",
    ]


def test_a_sentence_that_is_too_long_is_cut_and_said(tiny: Model) -> None:
    cut = headscope.segment(tiny, "the sea " * 200 + ". The sea was calm. The sea was wide.")
    assert cut.notices == ("1 sentence longer than 96 tokens: only the beginning was read.",)
    assert not headscope.segment(tiny, "The sea was calm. The sea was wide.").notices


def test_sentences_of_nothing_but_marks_are_taken_as_they_come(tiny: Model) -> None:
    cut = headscope.segment(tiny, "...\n\n!!!\n\n???\n\nThe sea was calm.\n\n---", sentences="lines")
    assert len(cut.sentences) == 5


def test_equal_sentences_make_one_segment(minilm: Model) -> None:
    assert len(headscope.segment(minilm, "The cat sat.\n" * 40, lines=True)) == 1
    both = headscope.segment(minilm, "The cat sat.\n" * 20 + "Stocks fell again.\n" * 20, lines=True)
    assert [segment.first_sentence for segment in both.segments] == [0, 20]


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
@example([0.1, 0.1, 0.1, 0.7])
def test_a_place_that_all_heads_vote_for_has_a_score_of_one_and_no_more(watch: list[float]) -> None:
    every = np.packbits(np.ones((1, 4), np.bool_), axis=1)
    lines = line_units.Lines(np.array([0]), np.array([1]), np.zeros(1, np.int8), every, (1, 4))
    votes = line_units.votes_of(lines, line_units.weights_of(np.array([watch])))
    (score,) = line_units.score_of(votes)
    assert score <= 1
    assert score == pytest.approx(1)


def test_units_end_where_sentences_do_and_not_at_abbreviations(minilm: Model, sample: list[str]) -> None:
    cut = headscope.segment(minilm, sample[0], level="sentences")
    pieces = [piece.strip() for piece in cut.pieces()]
    assert "The only legitimate child of Lord Byron never knew her father." in pieces
    assert any("J.-M. Jacquard" in piece for piece in pieces)
    assert any("L. F. Menabrea" in piece for piece in pieces)
    assert 20 <= len(pieces) <= 30
    assert len(headscope.segment(minilm, sample[0], level="sentences", segments=7)) == 7
    assert len(headscope.segment(minilm, sample[0], level="sentences", granularity=0.3)) < len(pieces)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"level": "paragraphs"}, "level is 'paragraphs'; it must be topics or sentences"),
        ({"using": "tails"}, "using is 'tails'"),
        ({"segments": 0}, "segments is 0"),
        ({"segments": 9}, "segments is 9, but the text has 2 sentences"),
        ({"granularity": -1.0}, "granularity is -1"),
        ({"layers": (7,)}, "layers asks for layer 7"),
    ],
)
def test_what_cannot_be_is_refused_with_the_value_given(tiny: Model, asked: dict[str, object], told: str) -> None:
    with pytest.raises(HeadscopeError, match=told):
        headscope.segment(tiny, "The sea was calm. The sea was wide.", **asked)


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_an_empty_text_is_refused(tiny: Model, text: str) -> None:
    with pytest.raises(HeadscopeError, match="nothing to cut"):
        headscope.segment(tiny, text)


@pytest.mark.parametrize("text", [None, 5, ["a text"]])
def test_what_is_no_text_is_refused(tiny: Model, text: object) -> None:
    with pytest.raises(HeadscopeError, match="give a string, or the Path of a file"):
        headscope.segment(tiny, text)


def test_the_capture_is_proved_on_the_sentences_themselves(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []

    def refuse(capture: object, ids: object, mask: object) -> None:
        shown.append(ids)
        raise NotCaptured("not captured rightly")

    monkeypatch.setattr(segmenting, "prove", refuse)
    for level in ("topics", "sentences"):
        with pytest.raises(NotCaptured):
            headscope.segment(tiny, "The sea was calm.", level=level)
    assert len(shown) == 2


def test_sentences_run_with_others_of_their_length(tiny: Model) -> None:
    alone = Alone(tiny.tokenizer, 96, None)
    ids = alone.ids(["the sea", "the", "", "the sea was wide and calm", "sea"])
    groups = list(alone.groups(ids))
    assert sorted(np.concatenate([group.which for group in groups]).tolist()) == [0, 1, 3, 4]
    assert all((group.mask.sum(1) == [len(ids[which]) for which in group.which]).all() for group in groups)
    assert alone.empty == 1


def test_json_and_table_say_the_same(minilm: Model, articles: str) -> None:
    cut = headscope.segment(minilm, articles, segments=4)
    rows = json.loads(json.dumps(cut.as_json()))
    assert list(rows[0]) == ["start", "end", "score", "first_sentence", "last_sentence"]
    table = cut.to_frame()
    assert table.start.tolist() == [row["start"] for row in rows]
    assert "".join(table.text) == articles


def test_the_page_shows_the_text_escaped_and_needs_no_network(tiny: Model, tmp_path: Path) -> None:
    cut = headscope.segment(tiny, "The <b>sea</b> was calm & wide.\nIt <script>rose</script>.", lines=True, segments=2)
    page = cut.save_html(tmp_path / "page.html").read_text("utf-8")
    assert "&lt;script&gt;rose" in page
    assert "<script" not in page
    assert "http://" not in page.replace("http-equiv", "")
    assert "https://" not in page
    snippet = cut._repr_html_()
    assert "&lt;b&gt;sea" in snippet
    assert "<script" not in snippet
