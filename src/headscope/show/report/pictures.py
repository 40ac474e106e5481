"""Figures as the page carries them: inside it, as small as they get without losing what they show."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

from headscope.errors import HeadscopeError
from headscope.folder.study_folder import StudyFolder
from headscope.progress import Bar
from headscope.show import figures
from headscope.show.figures import style

LARGEST = 600_000
"""Bytes of a picture: with a dozen of them the page stays below 12 MB."""
QUALITIES = (90, 75, 50, 25)
"""Tried in turn where a lossless picture is larger; at 90 the eye sees no loss."""


@dataclass(frozen=True)
class Picture:
    """A figure of the page. number: its key in `figures.FIGURES`; width, height: in pixels."""

    number: str
    title: str
    caption: str
    source: str
    width: int
    height: int

    @property
    def label(self) -> str:
        """What stands before the title; figures that the paper lacks have no number."""
        return f"Figure {self.number}. " if self.number.isdecimal() else ""


def pictures(study: StudyFolder, progress: bool = False) -> tuple[list[Picture], list[str]]:
    """All figures, and a sentence for each that can't be drawn (a study without an example has no Fig. 4)."""
    drawn: list[Picture] = []
    missing: list[str] = []
    with Bar("Putting figures on the page", "figures", progress) as bar:
        numbers = figures.drawable(study)
        bar.expect(len(numbers), exact=True)
        for number in numbers:
            module = figures.FIGURES[number]
            try:
                source, width, height = _data_uri(_png(study, number))
                drawn.append(Picture(number, module.TITLE, module.CAPTION, source, width, height))
            except HeadscopeError as problem:
                missing.append(f"{module.TITLE}: {problem}")
            bar.advance(1)
    return drawn, missing


def _png(study: StudyFolder, number: str) -> bytes:
    """The figure that is in the folder, unless it is older than the study."""
    kept = study.folder / f"figures{study.suffix}" / f"{figures.file_name(number)}.png"
    if kept.is_file() and kept.stat().st_mtime >= study.written:
        return kept.read_bytes()
    buffer = io.BytesIO()
    figure = figures.draw(study, number)
    with style.settings():
        figure.savefig(buffer, format="png", dpi=style.DPI)
    return buffer.getvalue()


def _data_uri(png: bytes) -> tuple[str, int, int]:
    """Any picture -> a WebP as data URI, and its width and height."""
    from PIL import Image, UnidentifiedImageError

    try:
        image = Image.open(io.BytesIO(png)).convert("RGB")
    except (UnidentifiedImageError, OSError):
        raise HeadscopeError("the drawn figure can't be read; draw it again with headscope figures.") from None
    for lossless, quality in ((True, 80), *((False, quality) for quality in QUALITIES)):
        buffer = io.BytesIO()
        image.save(buffer, "webp", method=4, lossless=lossless, quality=quality)
        if buffer.tell() <= LARGEST:
            break
    encoded = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/webp;base64,{encoded}", image.width, image.height
