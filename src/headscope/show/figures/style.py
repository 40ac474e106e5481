"""What all figures share: sizes, fonts, colours, colour scales."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import Colormap, FuncNorm, LinearSegmentedColormap, ListedColormap, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, MultipleLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from headscope.insight.choices import Head, place_of
from headscope.show.figures.layout import MeasuredOnce
from headscope.show.figures.png import png
from headscope.wording import head_name, short

if TYPE_CHECKING:
    from headscope.folder.study_folder import StudyFolder

WIDTH = 7.1
"""Inches: two columns of a journal."""
FOOT = 0.17
"""Inches at the foot of every figure for the line that says what was measured."""
DPI = 200
SHARP = "none"
"""Interpolation of maps whose cells are to be seen: an SVG then holds each cell once, and not a picture of them."""
TITLE, TEXT, SMALL, TINY = 7.5, 7.0, 6.0, 5.5
GREY, PALE = "#666666", "#eeeeee"
CHANCE: dict[str, Any] = {"color": "black", "linewidth": 0.8, "linestyle": (0, (2, 1.2))}

SEQUENTIAL = LinearSegmentedColormap.from_list(
    "headscope", ["white", *matplotlib.colormaps["magma_r"](np.linspace(0.03, 1, 32))]
)
"""White for 0: most of most maps is near 0, and paper is white."""
DIVERGING = "RdBu_r"

HEAD_COLOURS = (
    "#8769ff", "#780f00", "#96e1e1", "#004b87", "#f0d200", "#789669",
    "#3c00a5", "#b4e187", "#3c8796", "#b47800", "#b4a5ff", "#691e3c",
)  # fmt: skip
"""As far apart as twelve colours can be for readers with any kind of colour vision; after that they begin again."""

TOKEN_COLOURS = ("#f0a51e", "#87b4ff", "#c3ff78", "#d2b4a5", "#4bc3d2", "#f0f0b4", "#87c369", "#96fff0")
"""Chosen likewise, and light enough for black text on them."""

_FALLBACK_FONTS = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans JP", "Noto Sans SC", "Hiragino Sans", "PingFang SC",
    "Yu Gothic", "Microsoft YaHei", "Malgun Gothic", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari",
    "Noto Sans Thai", "Noto Emoji", "Segoe UI Symbol", "Arial Unicode MS",
)  # fmt: skip
"""For the scripts that matplotlib's own font lacks; those that are installed are used."""

ON_SCREEN = 100
"""Dots per inch at which a notebook shows a figure; what it gets is as fine as a file, for screens that are finer."""
_lock = threading.RLock()
_set = False
"""Whether the settings are ours now."""
_Given = ParamSpec("_Given")


class ShownFigure(Figure):
    """A figure that a notebook shows, whatever matplotlib is set to there; as fine as a file of it."""

    def __init__(self, **choices: Any) -> None:
        super().__init__(dpi=DPI, **choices)
        FigureCanvasAgg(self)  # with which it is laid out too: text is then measured once

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        width, height = (int(inches * ON_SCREEN) for inches in self.get_size_inches())
        buffer = io.BytesIO()
        with settings():
            self.dpi = DPI
            FigureCanvasAgg(self).print_png(buffer)  # type: ignore[no-untyped-call]
        return buffer.getvalue(), {"width": width, "height": height}


@contextmanager
def settings() -> Iterator[None]:
    """Our settings, whatever the user's are. Matplotlib's are global, so one thread at a time has them; around several
    figures or files, they are made once for all."""
    global _set
    with _lock:
        if _set:
            yield
            return
        _set = True
        try:
            with _made():
                yield
        finally:
            _set = False


@contextmanager
def _made() -> Iterator[None]:
    with matplotlib.style.context(["default", _settings()]), warnings.catch_warnings():
        # A font without a script draws boxes; a warning for each character would not help.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def styled(draw: Callable[_Given, Figure]) -> Callable[_Given, Figure]:
    """Draw with our settings, and lay out once: saving the figure then depends on no setting."""

    @wraps(draw)
    def drawn(*given: _Given.args, **choices: _Given.kwargs) -> Figure:
        with settings():
            figure = draw(*given, **choices)
            layout = figure.get_layout_engine()
            if layout is not None:
                layout.execute(figure)
            figure.set_layout_engine("none")
        return figure

    return drawn


def save(figure: Figure, path: Path, title: str, description: str = "") -> None:
    """Write a figure in the format that the name of the file ends with; the same figure gives the same file."""
    said = {"Title": title} | ({"Description": description} if description else {})
    with settings():
        # Figure.savefig would draw everything twice, for a layout that is already made.
        if path.suffix == ".svg":
            FigureCanvasSVG(figure).print_svg(path, metadata={**said, "Date": None})  # type: ignore[no-untyped-call]
        elif path.suffix == ".png":
            path.write_bytes(png(pixels(figure), said, DPI))
        else:
            figure.savefig(path, dpi=DPI)


def pixels(figure: Figure) -> NDArray[np.uint8]:
    """(height, width, 3): the figure as a PNG file would show it."""
    with settings():
        figure.dpi = DPI
        canvas = figure.canvas if isinstance(figure.canvas, FigureCanvasAgg) else FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        rgba = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
    drawn: NDArray[np.uint8] = rgba[..., :3].copy()
    return drawn


def new_figure(
    study: StudyFolder, height: float, width: float = WIDTH, *, below: float = 0, maps: bool = False
) -> Figure:
    """An empty figure, with a line at its foot that says what was measured; sizes in inches.

    below: kept free between the panels and the foot. maps: the panels are square, so the space between is taken out.
    """
    foot = (FOOT + below) / height
    layout = MeasuredOnce(w_pad=0.04, h_pad=0.04, wspace=0.02, hspace=0.02, rect=(0, foot, 1, 1 - foot), compress=maps)
    figure = ShownFigure(figsize=(width, height), layout=layout)
    figure.text(
        1 - 0.05 / width,
        0.05 / height,
        f"{short(Path(study.model_name).name, 40)} · {study.extent} · threshold {study.manifest.options.threshold:g}",
        fontsize=TINY,
        color=GREY,
        ha="right",
        parse_math=False,
        in_layout=False,
    )
    return figure


def head_colour(head: int) -> str:
    return HEAD_COLOURS[head % len(HEAD_COLOURS)]


def layer_colours(layers: Sequence[object]) -> list[Any]:
    """Dark for the first of the layers shown, bright for the last."""
    return list(matplotlib.colormaps["plasma"](np.linspace(0, 0.8, len(layers))))


def paler(colour: Any, share: float = 0.3) -> tuple[float, ...]:
    """A colour mixed with so much white."""
    return tuple(share + (1 - share) * part for part in to_rgb(colour))


def title(axes: Axes, text: str, head: int | None = None) -> None:
    """A title at the left; that of one head begins with a square in the colour of the head."""
    if head is None:
        axes.set_title(text, loc="left", parse_math=False)
        return
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "fontsize": TITLE}
    axes.annotate("■", (0, 1), (0, 4), color=head_colour(head), **place)
    axes.annotate(text, (0, 1), (1.1 * TITLE, 4), parse_math=False, **place)


def name_dot(axes: Axes, study: StudyFolder, head: Head, value: float) -> None:
    """Write beside the dot of a head which it is, in a panel of layers and some value."""
    late = place_of(study, head[0]) > len(study.manifest.layers) / 2
    axes.annotate(
        head_name(head), (head[0], value), (-4 if late else 4, 0), textcoords="offset points",
        fontsize=TINY, ha="right" if late else "left", va="center",
    )  # fmt: skip


def heat_map(
    axes: Axes,
    matrix: NDArray[Any],
    label: str = "",
    *,
    diverging: bool = False,
    power: float | None = None,
    top: float | None = None,
    spread: bool = False,
) -> AxesImage:
    """A square map of tokens, row i and column j, with its colour bar; diverging: red above 0, blue below.

    power: colours go by value ** power; by default by the square root where most values are small beside the largest.
    top: the end of the scale; by default the largest value, or, where a few stand far above all others, the end of
    the others. The bar then has an arrow. spread: the colours are spread over the middle 96 % of the values off the
    diagonal, for a map that is much the same everywhere; the bar then has an arrow at both ends.
    """
    values = np.abs(matrix[np.isfinite(matrix)])
    most = float(values.max(initial=0)) or 1.0
    common, middle = np.quantile(values, [0.98, 0.5]) if values.size else (0.0, 0.0)
    if top is None:
        top = float(common) if 0 < 3 * common < most else most
    if power is None:
        power = 0.5 if middle < 0.2 * top else 1.0
    low = max(float(np.nanmin(matrix, initial=0)), -top) if diverging else 0.0
    norm, colours = scale(power, low, top)
    if spread:
        low, top = (float(end) for end in np.quantile(matrix[~np.eye(len(matrix), dtype=bool)], [0.02, 0.98]))
        norm, colours, power = Normalize(low, max(top, low + 1e-9)), SEQUENTIAL, 1.0
    sharp = SHARP if len(matrix) <= 200 else "auto"
    image = axes.imshow(matrix, cmap=colours if diverging or spread else SEQUENTIAL, norm=norm, interpolation=sharp)
    axes.set_facecolor(PALE)
    token_ticks(axes, len(matrix))
    beside = axes.inset_axes((1.03, 0, 0.05, 1))
    colour_bar(image, beside, f"{label}, √ scale" if label and power < 1 else label, beyond=top < most, below=spread)
    return image


def colour_bar(
    image: AxesImage, bar_axes: Axes, label: str = "", *, beyond: bool = False, below: bool = False, lying: bool = False
) -> None:
    """A colour bar with a few round numbers. beyond: there are values past its end; below: before its beginning."""
    orientation = "horizontal" if lying else "vertical"
    ends = {(True, True): "both", (True, False): "max", (False, True): "min"}.get((beyond, below), "neither")
    bar = bar_axes.figure.colorbar(image, cax=bar_axes, orientation=orientation, extend=ends, extendfrac=0.04)
    bar.locator = FixedLocator(_round_numbers(image.norm))
    bar.formatter = FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−"))
    bar.minorticks_off()
    bar.update_ticks()
    bar_axes.tick_params(labelsize=TINY, length=1.5, pad=1.5)
    if label and lying:
        bar_axes.annotate(
            label,
            (1, 0.5),
            (6, 0),
            "axes fraction",
            "offset points",
            va="center",
            fontsize=SMALL,
            annotation_clip=False,
        )
    elif label:
        bar.set_label(label, fontsize=SMALL, labelpad=2)


def token_ticks(axes: Axes, length: int) -> None:
    """At most five positions are labelled on each side."""
    step = 1 << max(length // 5, 1).bit_length() - (length < 10)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MultipleLocator(step))
    axes.set_xlim(-0.5, length - 0.5)
    axes.set_ylim(length - 0.5, -0.5)


def logarithmic(axes: Axes) -> None:
    """Have y go by powers of ten, from one to the next at least; over many of them, nothing is marked between. They are
    written in plain characters: mathtext, which matplotlib has for them, takes a fifth of a second to get ready."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < 10 * low:
        axes.set_ylim(10.0 ** np.floor(np.log10(low)), 10.0 ** np.ceil(np.log10(high)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    if high > 1e4 * low:
        axes.yaxis.set_minor_locator(NullLocator())


def power_of_ten(value: float) -> str:
    """
    >>> power_of_ten(1e-12), power_of_ten(1), power_of_ten(1000), power_of_ten(1e5)
    ('10⁻¹²', '1', '1,000', '10⁵')
    """
    power = round(np.log10(value))
    return f"{10**power:,}" if 0 <= power <= 3 else "10" + str(power).translate(_SUPERSCRIPT)


_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def nothing(axes: Axes, text: str = "no high pairs") -> None:
    """Say that there is nothing to draw."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=GREY, style="italic")


def scale(power: float, low: float, high: float) -> tuple[Normalize, Colormap]:
    """How values from low <= 0 to high go to colours: by sign(x) |x| ** power, white for 0, red above, blue below.

    The blue part is as long as there are values for it: nothing where low is 0.
    """
    end = max(high, -low)

    def forward(value: Any) -> Any:
        return np.sign(value) * np.abs(np.asarray(value) / end) ** power

    def backward(value: Any) -> Any:
        return end * np.sign(value) * np.abs(value) ** (1 / power)

    first, last = forward(low), forward(high)
    norm = FuncNorm((forward, backward), low, high)
    colours = matplotlib.colormaps[DIVERGING](0.5 + 0.5 * np.linspace(first, last, 256))
    return norm, ListedColormap(colours, "headscope signed")


def _round_numbers(norm: Any) -> list[float]:
    """0 and numbers such as 0.02 or 5 that stand well apart on the scale, the largest first."""
    if np.isclose(norm.inverse(0.5), (norm.vmin + norm.vmax) / 2):
        ticks = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(norm.vmin, norm.vmax)
        return [float(tick) for tick in ticks if norm.vmin <= tick <= norm.vmax]
    steps = [float(f"{digit}e{power}") for power in range(-9, 10) for digit in (1, 2, 5)]
    steps = [0.0, *(step for step in reversed(steps) if step <= norm.vmax)]
    at, below = dict(zip(steps, norm(steps), strict=True)), dict(zip(steps, norm(np.negative(steps)), strict=True))
    chosen: list[float] = []
    for value in steps:
        if all(abs(at[value] - at[other]) > 0.12 for other in chosen):
            chosen.append(value)
    return sorted(chosen + [-value for value in chosen if norm.vmin <= -value < 0 and at[0] - below[value] > 0.12])


def _settings() -> dict[str, Any]:
    installed = set(font_manager.get_font_names())
    fallback = [name for name in _FALLBACK_FONTS if name in installed]
    return {
        "font.family": ["DejaVu Sans", *fallback],
        "font.size": TEXT,
        "axes.titlesize": TITLE,
        "axes.titlepad": 4,
        "axes.titley": 1,  # else every drawing looks anew for what may be in the way of a title
        "axes.labelsize": TEXT,
        "axes.labelpad": 2,
        "axes.linewidth": 0.4,
        "axes.edgecolor": GREY,
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "xtick.color": GREY,
        "ytick.color": GREY,
        "xtick.labelcolor": "black",
        "ytick.labelcolor": "black",
        "xtick.major.size": 2,
        "ytick.major.size": 2,
        "xtick.minor.size": 1.2,
        "ytick.minor.size": 1.2,
        "xtick.major.width": 0.4,
        "ytick.major.width": 0.4,
        "xtick.minor.width": 0.3,
        "ytick.minor.width": 0.3,
        "xtick.major.pad": 2,
        "ytick.major.pad": 2,
        "legend.fontsize": SMALL,
        "legend.frameon": False,
        "lines.linewidth": 1.0,
        "svg.hashsalt": "headscope",
    }
