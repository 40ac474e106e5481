"""Figures as the page carries them: inside it, those that are drawn already as they are, others as small as they get
quickly without losing what they show."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from headscope.errors import HeadscopeError
from headscope.folder.study_folder import StudyFolder
from headscope.garbage import without_collecting
from headscope.insight.choices import Shown
from headscope.insight.findings import Finding
from headscope.progress import Bar
from headscope.show import figures
from headscope.show.figures import style
from headscope.show.figures.of_findings import versions
from headscope.show.helpers import Helpers

LARGEST = 600_000
"""Bytes of a picture: with two dozen of them the page stays below 12 MB, as few are nearly as large."""
METHOD, EFFORT = 0, 40
"""Of packing a picture without loss. By the next method it is smaller by a third and takes seven times as long, longer
than drawing it did."""
QUALITIES = (90, 75, 50, 25)
"""Tried in turn where a lossless picture is larger; at 90 the eye sees no loss."""


@dataclass(frozen=True)
class Picture:
    """A figure of the page. number: its key in `figures.FIGURES`; name: of its file; width, height: in pixels.
    shown: the layers and heads that it draws, None: all. topics: of the findings that it is drawn for."""

    number: str
    name: str
    title: str
    caption: str
    source: str
    width: int
    height: int
    shown: Shown | None = None
    topics: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"fig-{self.number}{self.name.removeprefix(figures.file_name(self.number))}"

    @property
    def label(self) -> str:
        """What stands before the title; figures that the paper lacks have no number."""
        return f"Figure {self.number}. " if self.number.isdecimal() else ""

    @property
    def drawn(self) -> str:
        """Which layers and heads it draws, in words; nothing where it draws all."""
        return str(self.shown or "")

    @property
    def link(self) -> str:
        """How a finding calls it."""
        return f"Fig. {self.number}" if self.number.isdecimal() else self.number.capitalize()

    def draws(self, finding: Finding) -> bool:
        """Whether it is the figure of a finding, and all layers and heads that this names are there to see."""
        return self.number == finding.figure and (self.shown is None or self.shown.draws(finding.layers, finding.heads))


@dataclass(frozen=True)
class Pictures:
    """of_findings: at the layers and heads that findings name; of_paper: at those of the paper. missing: a sentence for
    each figure that can't be drawn (a study without an example has no Fig. 4)."""

    of_findings: list[Picture] = field(default_factory=list)
    of_paper: list[Picture] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def of(self, finding: Finding) -> Picture | None:
        """The one that shows a finding; None where none does."""
        named = bool(finding.layers or finding.heads)
        return next((one for one in [*self.of_findings * named, *self.of_paper] if one.draws(finding)), None)


def pictures(study: StudyFolder, found: Sequence[Finding]) -> Pictures:
    """All figures of the page."""
    with drawing(study, found) as finish:
        return finish()


@contextmanager
def drawing(
    study: StudyFolder, found: Sequence[Finding], progress: bool = False, helpers: Helpers | None = None
) -> Iterator[Callable[[], Pictures]]:
    """The same, with something done here while helpers draw: what this gives is called for the pictures."""
    wanted = [(version.wanted, version.topics) for version in versions(study, found)]
    wanted += [(figures.Wanted(number, figures.file_name(number)), ()) for number in figures.drawable(study)]
    hands = helpers or Helpers(study.folder)

    order = figures.slow_first([each for each, _ in wanted])

    def finish() -> Pictures:
        made = Pictures()
        drawn = dict(zip(order, hands.finish(), strict=True))
        for place, (each, topics) in enumerate(wanted):
            picture = drawn[place]
            if isinstance(picture, Picture):
                (made.of_findings if topics else made.of_paper).append(picture)
            elif not topics:
                made.missing.append(f"{figures.FIGURES[each.number].TITLE}: {picture}")
        return made

    with Bar("Putting figures on the page", "figures", progress) as bar:
        bar.expect(len(wanted), exact=True)
        hands.begin(study, [(put_on_page, wanted[place]) for place in order], lambda: bar.advance(1))
        yield finish


def put_on_page(study: StudyFolder, wanted: figures.Wanted, topics: tuple[str, ...]) -> Picture | str:
    """One figure, or why it can't be drawn."""
    module = figures.FIGURES[wanted.number]
    try:
        shown = figures.shown(study, wanted.number, **wanted.choices)
        source = _source(study, wanted, shown)
    except HeadscopeError as problem:
        return str(problem)
    return Picture(wanted.number, wanted.name, module.TITLE, module.CAPTION, *source, shown, topics)


Source = tuple[str, int, int]
"""A picture as data URI, and its width and height."""


def _source(study: StudyFolder, wanted: figures.Wanted, shown: Shown | None) -> Source:
    """Of the picture that is in the folder, unless it is older than the study or says that it shows something else."""
    kept = study.folder / f"figures{study.suffix}" / f"{wanted.name}.png"
    if kept.is_file() and kept.stat().st_mtime >= study.written:
        source = _source_of_file(kept, str(shown or ""), "" if wanted.choices else str(shown or ""))
        if source is not None:
            return source
    with without_collecting(), style.settings():
        return data_uri(Image.fromarray(style.pixels(figures.draw(study, wanted.number, **wanted.choices))))


def _source_of_file(path: Path, drawn: str, unsaid: str) -> Source | None:
    """None where the picture shows something else than `drawn`. unsaid: what it shows where it does not say so."""
    try:
        content = path.read_bytes()
        with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
            if image.info.get("Description", unsaid) != drawn:
                return None
            if len(content) > LARGEST:
                return data_uri(image.convert("RGB"))
            size = image.size
            image.verify()
    except (UnidentifiedImageError, OSError, SyntaxError):
        raise HeadscopeError("the drawn figure can't be read; draw it again with headscope figures.") from None
    return f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}", *size


def data_uri(image: Image.Image) -> Source:
    """A WebP, without loss where that is not too large."""
    for lossless, quality in ((True, EFFORT), *((False, quality) for quality in QUALITIES)):
        buffer = io.BytesIO()
        image.save(buffer, "webp", method=METHOD, lossless=lossless, quality=quality)
        if buffer.tell() <= LARGEST:
            break
    encoded = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/webp;base64,{encoded}", image.width, image.height
