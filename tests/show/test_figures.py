"""Figures show the numbers of the study: what is drawn is read back and compared with its arrays and tables."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch
from numpy.testing import assert_allclose

import headscope
from headscope import HeadscopeError, Study
from headscope.insight import choices
from headscope.measure.catalogue import columns
from headscope.model.loading import Model
from headscope.show import figures
from headscope.show.figures import atlas, fig05, rows, style, tokens
from headscope.wording import percent

SILENT = (1, 2)
"""Layer and head that put out nothing: no high pairs."""
ODD = "It cost $5, then $7: <script>alert(1)</script> 😀 مرحبا 京都 \u202e{} _a_ ^b^ %s \\alpha "


@pytest.fixture(scope="module")
def silenced(tiny_folder: Path) -> Model:
    """The tiny model, with one head that puts out zeros."""
    model = headscope.load(str(tiny_folder), device="cpu")
    layer, head = SILENT
    value = model.network.encoder.layer[layer].attention.self.value
    width = value.out_features // 4
    for parameter in (value.weight, value.bias):
        parameter.data[head * width : (head + 1) * width] = 0
    return model


@pytest.fixture(scope="module")
def study(silenced: Model, sample: list[str], tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("figures") / "study"
    return headscope.study(silenced, sample, out=folder, length=40, max_windows=24, progress=False)


def maps(figure: Figure) -> list[np.ndarray]:
    return [np.asarray(axes.images[0].get_array()) for axes in figure.axes if axes.images]


def drawn_rows(axes: Axes) -> dict[str, np.ndarray]:
    """Label -> the distribution that a row shows: heights are square roots of shares."""
    found = {}
    for patch in axes.patches:
        if isinstance(patch, StepPatch) and patch.get_fill():
            values, _, baseline = patch.get_data()
            height = np.asarray(baseline) - values
            found[patch.get_label()] = height**2 / (height**2).sum()
    return found


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def shares(counts: np.ndarray) -> np.ndarray:
    return counts / counts.sum(-1, keepdims=True)


def test_summed_attention_is_that_of_the_study(study: Study) -> None:
    layers, head = [0, 2], 3
    shown = maps(study.figure(2, layers=layers, heads=[head]))
    assert len(shown) == 4
    for place, layer in enumerate(layers):
        whole = study.arrays["attention_sum"][layer] / study.windows
        assert_allclose(shown[2 * place], whole[head])
        assert_allclose(shown[2 * place + 1], whole.sum(0))


def test_under_summed_attention_stands_how_much_goes_where_a_map_shows_it_in_one_cell(study: Study) -> None:
    one, summed = study.figure(2, layers=[2], heads=[3]).axes[:2]
    for axes, table, place in ((one, study.heads, 2 * 4 + 3), (summed, study.layers, 2)):
        numbers = texts(axes)[-1]
        assert f"first token {percent(table.attention_to_first[place])}" in numbers
        assert f"before {percent(table.attention_previous[place])}" in numbers


def test_lines_and_diagonals_are_taken_out_of_summed_attention(study: Study) -> None:
    whole, without, rest = maps(study.figure(3))
    assert_allclose(whole, study.arrays["attention_sum"][2].sum(0) / study.windows)
    assert_allclose(without, study.arrays["attention_sum_without_lines"][2].sum(0) / study.windows)
    near = np.abs(np.subtract.outer(np.arange(40), np.arange(40))) <= 1
    assert not rest[near].any()
    assert_allclose(rest[~near], without[~near])


def test_attention_on_one_text_marks_the_tokens_that_are_lines(study: Study) -> None:
    view = study.example
    figure = study.figure(4, layers=[0, 2], heads=[1])
    shown = maps(figure)
    assert_allclose(shown[2], view.attention[2, 1])
    assert_allclose(shown[3], view.attention[2].sum(0), rtol=1e-5)
    page = figure.axes[-1]
    labels = [label[:12] for label in view.labels]
    assert [text for text in texts(page) if text in set(labels)] == labels
    bold = [text.get_text() for text in page.texts if text.get_fontweight() == "bold"]
    lines = sorted({place for layer in (0, 2) for place in view.lines(layer, 1).position})
    assert bold == [labels[place] for place in lines]
    squares = [patch for patch in page.patches if isinstance(patch, Rectangle)]
    assert len(squares) == 2 + sum(len(view.lines(layer, 1)) for layer in (0, 2))


def test_blocks_are_cut_at_the_lines(study: Study) -> None:
    view = study.example
    figure = study.figure(5, layers=[2], heads=[1])
    attention, similarity, cut, means = maps(figure)
    blocks = view.blocks(2, 1)
    assert_allclose(attention, view.attention[2, 1])
    assert_allclose(similarity, view.similarity[2, 1])
    assert_allclose(cut, view.similarity[2, 1])
    assert_allclose(means, blocks.means[blocks.of][:, blocks.of])
    across = [line.get_ydata()[0] for line in figure.axes[2].lines if line.get_xdata()[0] != line.get_xdata()[1]]
    down = [line.get_xdata()[0] for line in figure.axes[2].lines if line.get_ydata()[0] != line.get_ydata()[1]]
    assert across == down == view.lines(2, 1).position.tolist()


def test_the_head_with_the_clearest_blocks_is_shown(study: Study) -> None:
    layer, head = fig05.most_telling(study, [0, 1, 2])
    view = study.example
    few = [
        (one, other) for one in range(3) for other in range(4) if 5 <= len(view.lines(one, other)) <= view.size / 3
    ] or [(one, other) for one in range(3) for other in range(4)]
    best = np.nanmax([view.blocks(*place).contrast for place in few])
    assert view.blocks(layer, head).contrast == best


@pytest.mark.parametrize(
    ("number", "panel", "histogram", "mean", "chance"),
    [
        (6, 0, "repeat_histogram", "repeat_probability", "repeat_chance"),
        (6, 1, "repeat_in_sentence_histogram", "repeat_probability_in_sentence", None),
        (8, 0, "same_sentence_histogram", "same_sentence_probability", "same_sentence_chance"),
        (11, 0, "focal_share_histogram", "focal_share", "focal_chance"),
    ],
)
def test_a_row_is_the_distribution_of_a_head(
    study: Study, number: int, panel: int, histogram: str, mean: str, chance: str | None
) -> None:
    axes = study.figure(number, layers=[0]).axes[panel]
    counts = study.arrays[histogram][0]
    table = study.heads[study.heads.layer == 0]
    shown = drawn_rows(axes)
    assert list(shown) == [f"head {head}" for head in range(4)]
    for head in range(4):
        assert_allclose(shown[f"head {head}"], shares(counts[head]))
    _, *marks = axes.collections
    given_distance = columns()[mean].given_distance
    marked = [name for name in (chance, given_distance, mean) if name is not None]
    for of_heads, name in zip(marks, marked, strict=True):
        (at, low), (again, high) = np.transpose(of_heads.get_segments(), (1, 2, 0))
        assert_allclose(at, table[name])
        assert_allclose(again, table[name])
        assert_allclose(high, range(4))
        assert (low < high).all()
    decimals = 3 if number == 6 else 2
    assert [text for text in texts(axes) if re.fullmatch(r"[\d.]+", text)] == [
        f"{value:.{decimals}f}" for value in table[mean]
    ]


def test_distances_are_those_of_the_heads_with_chance_over_them(study: Study) -> None:
    axes = study.figure(7, layers=[0, 2], heads=[1, 3]).axes
    for panel, layer in zip(axes, (0, 2), strict=True):
        shown = drawn_rows(panel)
        assert list(shown) == ["head 1", "head 3"]
        for head in (1, 3):
            assert_allclose(shown[f"head {head}"], shares(study.arrays["distance_histogram"][layer, head, 1:]))
    curve = next(line for line in axes[0].lines if len(line.get_xdata()) == 39)
    expected = np.array([40 - distance for distance in range(1, 40)]) / (40 * 39 / 2)
    height = 0 - curve.get_ydata()
    assert_allclose(height**2 / (height**2).sum(), expected)


def test_all_rows_of_a_panel_have_one_scale(study: Study) -> None:
    axes = study.figure(8, layers=[0]).axes[0]
    tops = [
        float(np.max(np.asarray(patch.get_data().baseline) - patch.get_data().values))
        for patch in axes.patches
        if isinstance(patch, StepPatch) and patch.get_fill()
    ]
    most = shares(study.arrays["same_sentence_histogram"][0]).max(-1)
    assert_allclose(np.square(tops) / most, rows.FULL**2 / most.max())


def test_the_pair_tables_and_the_text_show_the_same_pairs(study: Study) -> None:
    view = study.example
    figure = study.figure(9, heads=[0, 3])
    first, second, page = figure.axes
    for axes, head in ((first, 0), (second, 3)):
        pairs = view.pairs(2, head)[:18]
        found = texts(axes)
        assert [text for text in found if re.fullmatch(r"\d\.\d\d", text)] == [f"{value:.2f}" for value in pairs.value]
        places = [int(text) for text in found if re.fullmatch(r" *\d+", text)]
        assert places == [place for pair in pairs.itertuples() for place in (pair.i, pair.j)]
        assert f"{min(len(view.pairs(2, head)), 18)}" in " ".join(found)
    marked = {place for head in (0, 3) for side in ("i", "j") for place in view.pairs(2, head)[side][:18]}
    backgrounds = [patch for patch in page.patches if patch.get_height() > 4]
    assert len(backgrounds) == len(marked)
    under = [to_hex(patch.get_facecolor()) for patch in page.patches if patch.get_height() < 4]
    for head in (0, 3):
        members = set(view.pairs(2, head).i[:18]) | set(view.pairs(2, head).j[:18])
        assert under.count(style.head_colour(head)) == len(members)


def test_equal_tokens_have_equal_colours(study: Study) -> None:
    view = study.example
    page = study.figure(9, heads=[0, 3]).axes[-1]
    marked = sorted({place for head in (0, 3) for side in ("i", "j") for place in view.pairs(2, head)[side][:18]})
    backgrounds = [to_hex(patch.get_facecolor()) for patch in page.patches if patch.get_height() > 4]
    colours: dict[int, set[str]] = {}
    for place, colour in zip(marked, backgrounds, strict=True):
        colours.setdefault(int(view.ids[place]), set()).add(colour)
    assert all(len(of_token) == 1 for of_token in colours.values())
    own = [colour for of_token in colours.values() for colour in of_token if colour in style.TOKEN_COLOURS]
    assert len(own) == len(set(own)) == min(len(colours), len(style.TOKEN_COLOURS))


def test_location_maps_are_of_the_nearest_and_the_farthest_head(study: Study) -> None:
    enough = study.heads[study.heads.pairs_per_window >= 10]
    ends = [enough.loc[enough.mean_distance.idxmin()], enough.loc[enough.mean_distance.idxmax()]]
    figure = study.figure(10)
    for shown, axes, row in zip(maps(figure), figure.axes, ends, strict=True):
        layer, head = int(row["layer"]), int(row["head"])
        assert_allclose(shown, study.arrays["high_count"][layer, head] / study.windows)
        assert f"Layer {layer}, head {head}" in " ".join(texts(axes))


def test_unique_focal_tokens_have_a_row_for_each_layer(study: Study) -> None:
    shown = drawn_rows(study.figure(11).axes[1])
    assert list(shown) == ["layer 0", "layer 1", "layer 2"]
    for layer in range(3):
        assert_allclose(shown[f"layer {layer}"], shares(study.arrays["unique_focal_histogram"][layer]))


def test_similarity_maps_are_of_one_text_and_of_all(study: Study) -> None:
    above_0, above_2, below_0, below_2 = maps(study.figure(12, layers=[0, 2]))
    assert_allclose(above_0, study.example.similarity[0].sum(0), rtol=1e-5)
    assert_allclose(above_2, study.example.similarity[2].sum(0), rtol=1e-5)
    assert_allclose(below_0, study.arrays["similarity_sum"][0].sum(0) / study.windows)
    assert_allclose(below_2, study.arrays["similarity_sum"][2].sum(0) / study.windows)


def test_distance_of_a_layer_sums_over_its_heads(study: Study) -> None:
    axes = study.figure(13, layers=[0, 2]).axes[0]
    curves = [patch for patch in axes.patches if isinstance(patch, StepPatch)]
    for curve, layer in zip(curves, (0, 2), strict=True):
        counts = study.arrays["distance_histogram"][layer].sum(0)[1:]
        assert_allclose(curve.get_data().values, counts / counts.sum())
        assert f"mean {study.layers.mean_distance[layer]:.1f}" in curve.get_label()


def test_the_spectrum_tells_how_many_pairs_are_high(study: Study) -> None:
    axes = study.figure("spectrum", layers=[1]).axes[0]
    (curve,) = [patch for patch in axes.patches if isinstance(patch, StepPatch)]
    counts = study.arrays["similarity_histogram"][1].sum(0)
    assert_allclose(curve.get_data().values, counts / counts.sum())
    assert f"{study.layers.pairs[1] / counts.sum():.1%} above 0.3" in curve.get_label()
    assert any(np.allclose(line.get_xdata(), 0.3) for line in axes.lines)


@pytest.mark.parametrize(("which", "array"), [("location", "high_count"), ("similarity", "similarity_sum")])
def test_every_cell_of_the_atlas_is_a_head(study: Study, which: str, array: str) -> None:
    (mosaic,) = maps(study.figure("atlas", map=which))
    pitch = (mosaic.shape[1] + 2) // 4
    for layer in range(3):
        for head in range(4):
            cell = mosaic[layer * pitch :, head * pitch :][:40, :40]
            expected = study.arrays[array][layer, head] / study.windows
            pairs = ~np.eye(40, dtype=bool)
            assert_allclose(cell[pairs], expected[pairs])


def test_large_cells_are_shrunk_to_means_without_the_diagonal() -> None:
    cells = np.arange(2 * 3 * 25.0).reshape(2, 3, 5, 5)
    small = atlas.shrunk(np.repeat(np.repeat(cells, 4, -1), 4, -2), 8)
    assert small.shape == (2, 3, 7, 7)
    whole = np.repeat(np.repeat(cells, 4, -1), 4, -2)
    assert_allclose(small[1, 2, 0, 1], whole[1, 2, 0:3, 3:6].mean())
    assert_allclose(small[1, 2, 0, 0], whole[1, 2, 0:3, 0:3][~np.eye(3, dtype=bool)].mean())
    assert_allclose(small[0, 0, 6, 5], whole[0, 0, 18:20, 15:18].mean())


@pytest.mark.parametrize(
    ("depth", "expected"),
    [(12, [1, 6, 10, 11]), (6, [0, 2, 4, 5]), (24, [3, 13, 21, 23]), (3, [0, 1, 2, 2]), (1, [0, 0, 0, 0])],
)
def test_the_layers_of_the_paper_are_found_at_the_same_depth(depth: int, expected: list[int]) -> None:
    assert [choices.scaled(layer, depth) for layer in choices.PAPER_LAYERS] == expected


def test_only_layers_that_were_measured_are_shown(silenced: Model, sample: list[str], tmp_path: Path) -> None:
    partial = headscope.study(
        silenced, sample, out=tmp_path / "s", length=8, layers=(1,), max_windows=6, progress=False
    )
    for number in figures.drawable(partial):
        assert partial.figure(number).axes
    assert choices.layers_of(partial, None, choices.PAPER_LAYERS) == [1]
    with pytest.raises(HeadscopeError, match=r"Layer 2 was not measured in .*; there are layers 1\."):
        partial.figure(7, layers=[2])


def test_the_figure_of_thresholds_shows_the_study_at_each(study: Study) -> None:
    figure = study.figure("thresholds", layers=[0, 2])
    many, distance, sentence, _, heads, _ = figure.axes
    assert many.get_yscale() == "log"
    for axes, column in ((many, "pairs_per_window"), (distance, "mean_distance")):
        first, last = [line for line in axes.lines if len(line.get_xdata()) > 2]
        for line, layer in ((first, 0), (last, 2)):
            for place in (0, 25, 90):
                at = study.at(line.get_xdata()[place])
                assert_allclose(line.get_ydata()[place], at.layers[column][layer])
    at = study.at(0.3)
    lift = at.layers.same_sentence_probability / at.layers.same_sentence_chance_by_distance
    drawn = [line.get_ydata()[25] for line in sentence.lines if len(line.get_xdata()) > 2]
    assert_allclose(drawn[:2], lift[[0, 2]])
    lifts = at.heads.same_sentence_probability / at.heads.same_sentence_chance_by_distance
    assert next(line.get_ydata()[25] for line in heads.lines if len(line.get_xdata()) > 2) == (lifts > 1.1).sum()
    assert next(line.get_xdata()[0] for line in heads.lines if len(line.get_xdata()) == 2) == 0.3


def test_a_head_without_high_pairs_says_so(study: Study) -> None:
    layer, head = SILENT
    assert study.heads.pairs[layer * 4 + head] == 0
    for number, panel in ((6, 0), (6, 1), (7, 0), (8, 0), (11, 0)):
        axes = study.figure(number, layers=[layer]).axes[panel]
        assert f"head {head}" not in drawn_rows(axes)
        assert texts(axes).count("no high pairs") == 1
    assert "no high pairs" in texts(study.figure(9, layers=[layer], heads=[head]).axes[0])
    assert "no high pairs" in texts(study.figure(10, layers=[layer], heads=[head]).axes[0])


def test_all_figures_of_a_study_without_any_high_pair_are_drawn(
    silenced: Model, tiny_folder: Path, sample: list[str], tmp_path: Path
) -> None:
    model = headscope.load(str(tiny_folder), device="cpu")
    for layer in model.network.encoder.layer:
        layer.attention.self.value.weight.data.zero_()
        layer.attention.self.value.bias.data.zero_()
    empty = headscope.study(model, sample, out=tmp_path / "s", length=12, max_windows=4, progress=False)
    assert not empty.heads.pairs.any()
    for number in figures.drawable(empty):
        assert empty.figure(number).axes


def test_the_same_head_has_the_same_colour_everywhere(study: Study) -> None:
    row = next(patch for patch in study.figure(8).axes[0].patches if patch.get_label() == "head 2")
    assert_allclose(row.get_facecolor()[:3], style.paler(style.head_colour(2)))
    square = next(text for text in study.figure(2, heads=[2]).axes[0].texts if text.get_text() == "■")
    assert square.get_color() == style.head_colour(2)
    table = study.figure(9, heads=[2]).axes[0].patches[0]
    assert to_hex(table.get_facecolor()) == style.head_colour(2)


VISION = {
    "normal": np.eye(3),
    "without green": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "without red": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "without blue": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}
"""Linear RGB as it is seen -> as readers with full colour blindness of one kind see it (Machado et al., 2009)."""


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("colours", [style.HEAD_COLOURS, style.TOKEN_COLOURS])
def test_colours_are_told_apart_by_all_readers(colours: tuple[str, ...], vision: str) -> None:
    seen = np.array([cielab(VISION[vision] @ linear(np.array(to_rgb(colour)))) for colour in colours])
    apart = np.linalg.norm(seen[:, None] - seen, axis=-1)[~np.eye(len(colours), dtype=bool)]
    assert apart.min() > 12


def linear(rgb: np.ndarray) -> np.ndarray:
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def cielab(rgb: np.ndarray) -> np.ndarray:
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(np.maximum(matrix @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089], 0.0089))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_text_is_drawn_as_it_is(silenced: Model, tiny_folder: Path, tmp_path: Path) -> None:
    strange = headscope.study(silenced, [ODD * 6], out=tmp_path / "s", length=40, progress=False)
    for number in (4, 9):
        figure = strange.figure(number)
        drawn = [text for axes in figure.axes for text in axes.texts]
        assert "$" in {text.get_text() for text in drawn}
        assert not any(text.get_parse_math() for text in drawn if "$" in text.get_text())
        assert not any("\u202e" in text.get_text() for text in drawn)
        style.save(figure, tmp_path / f"{number}.png", "odd")
        style.save(figure, tmp_path / f"{number}.svg", "odd")


def test_lines_of_text_are_broken_between_tokens_and_inside_long_ones() -> None:
    from headscope.one_text.describing import Segment

    parts = [
        Segment("[CLS]", 0, True),
        Segment("aaaa", 1),
        Segment("  \n", None),
        Segment("b" * 25, 2),
        Segment("cc", 3),
    ]
    lines = tokens.broken(parts, 10)
    assert ["".join(segment.characters for _, segment in line) for line in lines] == [
        "[CLS] aaaa",
        "b" * 10,
        "b" * 10,
        "b" * 5 + "cc",
    ]
    assert [start for start, _ in lines[-1]] == [0, 5]
