"""What all figures share: sizes, fonts, colours, colour scales."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, MultipleLocator
from numpy.typing import NDArray

if TYPE_CHECKING:
    from headscope.results import Study

WIDTH = 7.1
"""Inches: two columns of a journal."""
DPI = 200
SMALL, TINY = 6.0, 5.5
GREY, PALE = "#666666", "#eeeeee"

SEQUENTIAL = "magma_r"
DIVERGING = "RdBu_r"

HEAD_COLOURS = (
    "#332288", "#88ccee", "#117733", "#ddaa33", "#cc6677", "#44aa99",
    "#882255", "#5577bb", "#999933", "#ee8866", "#aa4499", "#555555",
)  # fmt: skip
"""Chosen so that neighbours differ for colour-blind readers too; past twelve heads they begin again."""

TOKEN_COLOURS = ("#f6c54f", "#9bd0f5", "#b5de8a", "#f4a6a0", "#c9b3e6", "#7fd1c4", "#e0b98a", "#f7b6d9")
"""Light enough for black text on them."""

_FALLBACK_FONTS = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans JP", "Noto Sans SC", "Noto Sans Mono CJK JP", "Hiragino Sans",
    "PingFang SC", "Yu Gothic", "Microsoft YaHei", "Malgun Gothic", "Noto Sans Arabic", "Noto Sans Hebrew",
    "Noto Sans Devanagari", "Noto Sans Thai", "Noto Emoji", "Segoe UI Symbol", "Arial Unicode MS",
)  # fmt: skip

_lock = threading.RLock()
_Choices = ParamSpec("_Choices")


@contextmanager
def settings() -> Iterator[None]:
    """Our settings, whatever the user's are. Matplotlib's are global, so one thread at a time has them."""
    with _lock, matplotlib.style.context(["default", _settings()]), warnings.catch_warnings():
        # A font without a script draws boxes; a warning for each character would not help.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def styled(
    draw: Callable[Concatenate[Study, _Choices], Figure],
) -> Callable[Concatenate[Study, _Choices], Figure]:
    """Draw with our settings, and lay out once: saving the figure then depends on no setting."""

    @wraps(draw)
    def drawn(study: Study, *args: _Choices.args, **choices: _Choices.kwargs) -> Figure:
        with settings():
            figure = draw(study, *args, **choices)
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
        return figure

    return drawn


def save(figure: Figure, path: Path, title: str) -> None:
    """Write a figure in the format that the name of the file ends with."""
    metadata: dict[str, Any] = {"Title": title}
    if path.suffix == ".svg":
        metadata["Date"] = None
    with settings():
        figure.savefig(path, dpi=DPI, metadata=metadata)


def new_figure(study: Study, height: float, width: float = WIDTH) -> Figure:
    """An empty figure, with a line at its foot that says what was measured."""
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.04, h_pad=0.04, wspace=0.02, hspace=0.02)  # type: ignore[union-attr]
    options = study.manifest["options"]
    figure.supxlabel(
        f"{short(Path(study.model_name).name, 40)} · {study.windows:,} windows of {options['length']} tokens · "
        f"threshold {options['threshold']:g}",
        fontsize=TINY,
        color=GREY,
        x=0.995,
        ha="right",
        parse_math=False,
    )
    return figure


def head_colour(head: int) -> str:
    return HEAD_COLOURS[head % len(HEAD_COLOURS)]


def layer_colours(study: Study, layers: Sequence[int]) -> list[Any]:
    """Dark for the first layers of the model, light for the last."""
    depth = study.manifest["model"]["layers"]
    colours = matplotlib.colormaps["viridis"]
    return [colours(0.9 * layer / max(depth - 1, 1)) for layer in layers]


def title(axes: Axes, text: str, head: int | None = None) -> None:
    """A title at the left; that of one head begins with a square in the colour of the head."""
    if head is None:
        axes.set_title(text, loc="left")
        return
    size = matplotlib.rcParams["axes.titlesize"]
    axes.annotate(
        "■", (0, 1), (0, 4), "axes fraction", "offset points", color=head_colour(head), fontsize=size, va="baseline"
    )
    axes.annotate(text, (0, 1), (size * 1.1, 4), "axes fraction", "offset points", fontsize=size, va="baseline")


def short(text: str, most: int) -> str:
    """The beginning of a text, on one line, without characters that can't be drawn.

    >>> short("constabulary", 8)
    'constab…'
    """
    clean = "".join(character if character.isprintable() else "·" for character in text[: most + 1])
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def heat_map(
    axes: Axes,
    matrix: NDArray[Any],
    label: str = "",
    *,
    power: float = 0.5,
    diverging: bool = False,
    top: float | None = None,
) -> AxesImage:
    """A square map of tokens, row i and column j, with its colour bar.

    Values go to colours by `power`, so that the many small ones can be told apart; diverging: 0 in the middle.
    """
    high = float(np.nanmax(np.abs(matrix), initial=0)) if top is None else top
    high = high if high > 0 else 1.0
    norm = SignedPower(power, high) if diverging else PowerNorm(power, 0, high, clip=True)
    image = axes.imshow(matrix, cmap=DIVERGING if diverging else SEQUENTIAL, norm=norm, interpolation="auto")
    axes.set_facecolor(PALE)
    token_ticks(axes, len(matrix))
    colour_bar(axes, image, label)
    return image


def colour_bar(axes: Axes, image: AxesImage, label: str = "", place: tuple[float, ...] = (1.03, 0, 0.05, 1)) -> None:
    """A colour bar as high as its map, with a few round numbers."""
    bar = axes.figure.colorbar(image, cax=axes.inset_axes(place))
    bar.locator = FixedLocator(_round_numbers(image.norm))
    bar.formatter = FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−"))
    bar.minorticks_off()
    bar.update_ticks()
    bar.outline.set_linewidth(0.4)  # type: ignore[operator]
    bar.ax.tick_params(labelsize=TINY, length=1.5, pad=1.5)
    if label:
        bar.set_label(label, fontsize=SMALL, labelpad=2)


def token_ticks(axes: Axes, length: int) -> None:
    """At most five positions are labelled on each side."""
    step = next(step for step in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048) if length <= 5 * step)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MultipleLocator(step))
    axes.set_xlim(-0.5, length - 0.5)
    axes.set_ylim(length - 0.5, -0.5)


def nothing(axes: Axes, text: str = "no high pairs") -> None:
    """Say that there is nothing to draw."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=GREY, style="italic")


def frame(axes: Axes, colour: str, width: float = 0.5) -> None:
    axes.add_patch(
        Rectangle((0, 0), 1, 1, transform=axes.transAxes, fill=False, edgecolor=colour, linewidth=width, clip_on=False)
    )


class SignedPower(Normalize):
    """Colours by sign(x) |x| ** power, 0 in the middle."""

    def __init__(self, power: float, high: float) -> None:
        super().__init__(-high, high, clip=True)
        self.power = power

    def __call__(self, value: Any, clip: bool | None = None) -> Any:
        scaled = np.ma.masked_invalid(value) / float(self.vmax or 1)
        return 0.5 + 0.5 * np.sign(scaled) * np.minimum(np.abs(scaled), 1) ** self.power

    def inverse(self, value: Any) -> Any:
        centred = 2 * np.asarray(value) - 1
        return float(self.vmax or 1) * np.sign(centred) * np.abs(centred) ** (1 / self.power)


def _round_numbers(norm: Normalize) -> list[float]:
    """0 and numbers such as 0.02 or 5 that stand well apart on the scale; the largest first choice."""
    low, high = float(norm.vmin or 0), float(norm.vmax or 1)
    steps = [digit * 10.0**power for power in range(-8, 9) for digit in (5, 2, 1)]
    chosen = [0.0]
    for value in sorted((step for step in steps if step <= high), reverse=True):
        if all(abs(norm(value) - norm(other)) > (0.14 if low == 0 else 0.1) for other in chosen):
            chosen.append(value)
    return sorted(chosen + ([-value for value in chosen if value] if low < 0 else []))


def _settings() -> dict[str, Any]:
    installed = set(font_manager.get_font_names())
    fallback = [name for name in _FALLBACK_FONTS if name in installed]
    return {
        "font.family": ["DejaVu Sans", *fallback],
        "font.size": 7,
        "axes.titlesize": 7.5,
        "axes.titlepad": 4,
        "axes.labelsize": 7,
        "axes.labelpad": 2,
        "axes.linewidth": 0.5,
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "xtick.major.size": 2,
        "ytick.major.size": 2,
        "xtick.major.width": 0.5,
        "ytick.major.width": 0.5,
        "xtick.major.pad": 2,
        "ytick.major.pad": 2,
        "legend.fontsize": SMALL,
        "legend.frameon": False,
        "lines.linewidth": 1.0,
        "svg.hashsalt": "headscope",
        "axes.unicode_minus": True,
    }
