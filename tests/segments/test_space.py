"""The space that sentences are placed in."""

from __future__ import annotations

import numpy as np
import pytest

from headscope.segments.how_many import LEAST, fading, penalty_of
from headscope.segments.sentence_vectors import Vectors
from headscope.segments.space import HEADS_SHARE, contrast, main_axes, part_of, space_of, unit, whitening


def topics(seed: int = 0, length: int = 12, count: int = 6, width: int = 8, noise: float = 0.5) -> np.ndarray:
    """Sentences of several topics in a row."""
    draw = np.random.default_rng(seed)
    return np.repeat(draw.normal(size=(count, width)), length, 0) + noise * draw.normal(size=(length * count, width))


def vectors_of(rows: np.ndarray, heads: int = 3) -> Vectors:
    draw = np.random.default_rng(1)
    of_heads = np.stack([rows, *(draw.normal(size=rows.shape) for _ in range(heads - 1))], 1)[:, None]
    return Vectors(of_heads.astype(np.float32), rows.astype(np.float32), np.ones(len(rows), np.bool_))


def test_whitening_makes_differences_of_neighbours_alike_in_all_directions() -> None:
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(4000, 5)) * [1, 2, 4, 8, 16]
    differences = np.diff(rows @ whitening([rows]), axis=0) / np.sqrt(2)
    spread = np.linalg.eigvalsh(differences.T @ differences / len(differences))
    assert spread.max() / spread.min() < 1.3


def test_of_few_sentences_whitening_changes_little() -> None:
    rows = np.random.default_rng(0).normal(size=(3, 200))
    values = np.linalg.eigvalsh(whitening([rows]))
    assert values.max() / values.min() < 10


def test_equal_sentences_are_left_as_they_are() -> None:
    np.testing.assert_array_equal(whitening([np.ones((5, 3))]), np.eye(3))


def test_a_head_that_tells_topics_apart_has_the_contrast_and_the_weight() -> None:
    space = space_of([vectors_of(topics())], whole=True)
    assert space.weights.argmax() == 0
    assert space.weights[0, 0] > 0.9
    assert space.weights.sum() == pytest.approx(1)
    assert contrast([np.ones((3, 2))]) == 0


def test_vectors_have_length_one_and_heads_their_share() -> None:
    vectors = vectors_of(topics())
    placed = space_of([vectors], whole=True).place(vectors)
    np.testing.assert_allclose((placed**2).sum(1), 1)
    np.testing.assert_allclose((placed[:, 8:] ** 2).sum(1), HEADS_SHARE)


def test_a_sentence_without_tokens_lies_in_the_centre() -> None:
    vectors = vectors_of(topics())
    known = vectors.known.copy()
    known[5] = False
    placed = space_of([Vectors(vectors.heads, vectors.pooled, known)], whole=True).place(
        Vectors(vectors.heads, vectors.pooled, known)
    )
    assert not placed[5].any()
    assert placed[6].any()


def test_a_part_has_mean_nothing_and_mean_squared_length_one() -> None:
    _, (placed,) = part_of([topics()])
    np.testing.assert_allclose(placed.mean(0), 0, atol=1e-12)
    assert (placed**2).sum(1).mean() == pytest.approx(1)


@pytest.mark.parametrize("shape", [(40, 7), (7, 40)])
def test_along_the_main_axes_products_are_kept(shape: tuple[int, int]) -> None:
    vectors = np.random.default_rng(0).normal(size=shape)
    axes = main_axes(vectors, 40)
    np.testing.assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), atol=1e-9)
    np.testing.assert_allclose((vectors @ axes) @ (vectors @ axes).T, vectors @ vectors.T, atol=1e-9)
    assert main_axes(vectors, 3).shape == (shape[1], 3)


def test_similarity_fades_over_the_length_of_topics() -> None:
    """Twice the area is what a boundary between two topics saves, about."""
    long, short = (unit(topics(length=length, count=240 // length, width=40)) for length in (20, 5))
    assert 2.5 < fading([long]) / fading([short]) < 6
    assert penalty_of([long], 240) > penalty_of([short], 240)
    runs = [long[:120], long[120:]]
    assert fading(runs) == pytest.approx(fading([long]), rel=0.35)


def test_noise_has_the_least_penalty() -> None:
    noise = unit(np.random.default_rng(0).normal(size=(60, 50)))
    assert penalty_of([noise], 60) == pytest.approx(LEAST, rel=0.1)
    assert fading([noise[:2]]) == 0


def test_rows_of_zeros_stay() -> None:
    np.testing.assert_array_equal(unit(np.array([[0.0, 0.0], [3.0, 4.0]])), [[0, 0], [0.6, 0.8]])
