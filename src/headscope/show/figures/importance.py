"""What each head is worth, beside what it does; and what is left when more and more heads are removed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.patches import Patch, Rectangle

from headscope.errors import HeadscopeError
from headscope.insight.pruning import RANDOM
from headscope.show.figures import role_marks, style
from headscope.show.figures.layout import MeasuredOnce
from headscope.speaking import option
from headscope.wording import counted, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headscope.folder.ablation_folder import AblationFolder
    from headscope.folder.study_folder import StudyFolder

TITLE = "What each head is worth, beside what it does"
CAPTION = (
    "A cell for each head: rows are layers, columns heads. Left: what it costs to silence it, the increase of the loss "
    "or, without a language-model head, the drift of embeddings, 1 less their cosine; blue: the model is better off "
    "without it. Right: its role, where it has one."
)
CURVE_TITLE = "Heads removed"
CURVE_CAPTION = (
    "What is left of the model when more and more heads are silenced: a line for each order, from the first heads "
    "removed to the last, with 95 % intervals over texts; grey: random orders."
)
LABELS = {"loss_increase": "increase of the loss, nats", "embedding_drift": "drift of embeddings, 1 − cosine"}
CELL, AROUND, LEGEND = 0.17, 0.75, 0.45
"""Inches of a cell, about the cells, and for the names of roles below them."""


@style.styled
def draw(ablation: AblationFolder, study: StudyFolder | None = None) -> Figure:
    """The atlas of importance, and beside it that of roles, where a study with nulls is given."""
    table = ablation.heads
    if table is None:
        raise HeadscopeError(f"{ablation.folder} measured no single heads, so there is nothing to draw of them.")
    layers, heads = table["layer"].unique().tolist(), int(table["head"].max()) + 1
    values = ablation.importance.value.reshape(len(layers), heads)
    roles = _roles(study, layers)
    marks = role_marks.marked(roles)
    height = CELL * len(layers) + AROUND + (LEGEND if marks else 0)
    figure = _figure(ablation, height, below=LEGEND if marks else 0.0)
    panels = figure.subplots(1, 2 if marks else 1, squeeze=False)[0]
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0) or 1.0
    norm, colours = style.scale(0.5, low, high)
    image = panels[0].imshow(values, cmap=colours, norm=norm, interpolation=style.SHARP, aspect="auto")
    _cells(panels[0], layers, heads)
    style.title(panels[0], f"what it is worth: {LABELS[ablation.worth]}, √ scale")
    style.colour_bar(image, panels[0].inset_axes((1.03, 0, 0.04, 1)))
    if marks:
        _draw_roles(panels[1], roles, heads, marks)
        _cells(panels[1], layers, heads)
        style.title(panels[1], "what it does")
        handles = [Patch(facecolor=colour, label=f"{letter}  {role}") for role, (colour, letter) in marks.items()]
        place = (0.02, style.FOOT / height)
        figure.legend(handles=handles, loc="lower left", bbox_to_anchor=place, ncols=5, handlelength=1)
    return figure


@style.styled
def draw_curve(ablation: AblationFolder) -> Figure:
    """The loss, or the cosine of embeddings, over the heads removed: a line an order, random ones as a band."""
    curve = ablation.curve
    if curve is None:
        raise HeadscopeError(
            f"{ablation.folder} holds no curve; run headscope ablate with {option('order')} to have one."
        )
    column = "loss" if ablation.manifest.predicts else "embedding_cosine"
    start = ablation.manifest.undisturbed_loss if ablation.manifest.predicts else 1.0
    figure = _figure(ablation, 2.8, width=4.6)
    axes = figure.subplots()
    is_random = curve["order"].str.startswith(RANDOM)
    band = curve[is_random].pivot(index="removed", columns="order", values=column)
    if len(band):
        removed, values = [0, *band.index], band.to_numpy()
        axes.fill_between(removed, [start, *values.min(1)], [start, *values.max(1)], color="#dddddd", linewidth=0)
        label = f"mean and range of {counted(values.shape[1], 'random order')}"
        axes.plot(removed, [start, *values.mean(1)], color=style.GREY, linestyle="--", label=label)
    for number, (order, rows) in enumerate(curve[~is_random].groupby("order", sort=False)):
        colour = style.head_colour(number)
        axes.plot([0, *rows["removed"]], [start, *rows[column]], color=colour, marker="o", markersize=2, label=order)
        axes.vlines(rows["removed"], rows[f"{column}_low"], rows[f"{column}_high"], color=colour, linewidth=0.8)
    axes.set_xlabel("heads removed")
    axes.set_ylabel("loss, nats" if column == "loss" else "cosine of embeddings")
    axes.legend()
    return figure


def _figure(ablation: AblationFolder, height: float, width: float = style.WIDTH, below: float = 0.0) -> Figure:
    """With a line at its foot that says what was measured."""
    facts = ablation.manifest
    foot = (style.FOOT + below) / height
    layout = MeasuredOnce(w_pad=0.04, h_pad=0.04, rect=(0, foot, 1, 1 - foot))
    figure = style.ShownFigure(figsize=(width, height), layout=layout)
    said = (
        f"{short(Path(facts.model.name).name, 40)} · {counted(facts.counts.windows, 'window')} of "
        f"{facts.options.length} tokens · silenced by {facts.by}"
    )
    figure.text(
        1 - 0.05 / width,
        0.05 / height,
        said,
        fontsize=style.TINY,
        color=style.GREY,
        ha="right",
        parse_math=False,
        in_layout=False,
    )
    return figure


def _roles(study: StudyFolder | None, layers: list[int]) -> list[str]:
    """Of the heads of these layers; none without a study that has them."""
    if study is None or study.roles is None:
        return []
    table = study.heads
    mine = table[table["layer"].isin(layers)]
    return mine["role"].tolist() if mine["layer"].nunique() == len(layers) else []


def _cells(axes: Axes, layers: list[int], heads: int) -> None:
    axes.set_xlim(-0.5, heads - 0.5)
    axes.set_ylim(len(layers) - 0.5, -0.5)
    axes.set_xticks(range(heads))
    step = 1 if len(layers) <= 16 else 2
    axes.set_yticks(range(0, len(layers), step), [str(layer) for layer in layers[::step]])
    axes.tick_params(length=0)
    axes.set_xlabel("head")
    axes.set_ylabel("layer")


def _draw_roles(axes: Axes, roles: list[str], heads: int, marks: dict[str, tuple[str, str]]) -> None:
    axes.set_facecolor(style.PALE)
    for place, role in enumerate(roles):
        if role:
            row, column = divmod(place, heads)
            colour, letter = marks[role]
            cell = (column - 0.5, row - 0.5)
            axes.add_patch(Rectangle(cell, 1, 1, facecolor=colour, edgecolor="white", linewidth=0.4))
            axes.text(column, row, letter, ha="center", va="center", fontsize=style.TINY, color="white")
