"""Which windows of the texts are measured, where that was left open: a first look at the texts decides."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headscope.corpus.sampling import Sample
from headscope.corpus.short_texts import first_look
from headscope.corpus.text_windows import Counted, TextWindows, count_windows
from headscope.corpus.texts import Texts
from headscope.corpus.window_facts import WindowFacts
from headscope.corpus.windows import Cutter
from headscope.errors import HeadscopeError
from headscope.model.loading import Model
from headscope.options import SHORTEST, Options
from headscope.progress import Bar
from headscope.speaking import option


@dataclass(frozen=True)
class ChosenWindows:
    """Windows of texts. options: with all that was left open decided. notices: what is to be said of that."""

    model: Model
    texts: Texts
    options: Options
    notices: list[str]
    sample: Sample | None = None
    texts_sha256: str | None = None

    def source(self, windows_per_shard: int, example: int = 0) -> TextWindows:
        options = self.options
        return TextWindows(
            self.texts,
            self.model.tokenizer,
            options,
            windows_per_shard,
            example=example,
            model_name=self.model.name,
            embedding_rows=self.model.embedding_rows,
            sample=self.sample,
            texts_sha256=self.texts_sha256,
            facts=WindowFacts(options.meta) if options.keep_windows else None,
        )


def fitted(model: Model, given: Texts, options: Options) -> Options:
    """Of token ids that nobody has said a length for, windows are as long as the longest row."""
    first = given.first(1, 1)
    if given.once or not first or first[0].given is None:
        return options
    return replace(options, length=Cutter(model.tokenizer, options, model.embedding_rows).length_of_rows(given))


def check_sample(given: Texts) -> None:
    if given.once:
        raise HeadscopeError(
            f"{option('sample')} reads the texts twice, which these do not allow; give files, or a list."
        )


def chosen_windows(model: Model, given: Texts, options: Options, progress: bool) -> ChosenWindows:
    notices: list[str] = []
    if options.short == "auto":
        cutter = Cutter(model.tokenizer, options, model.embedding_rows)
        look = first_look(given, cutter)
        notices += filter(None, [look.notice(options.length)])
        unused = 0 if look.longest is None else cutter.content - look.longest
        options = replace(options, short=look.short, length=max(SHORTEST, options.length - unused))
    if options.sample is None:
        return ChosenWindows(model, given, options, notices)
    counted = _counted(model, given, options, progress)
    sample = Sample(counted.windows, min(options.sample, counted.windows), options.seed)
    if options.sample > counted.windows > 0:
        notices.append(
            f"A sample of {options.sample:,} windows was asked for, and the texts have {counted.windows:,}: all of "
            "them were measured."
        )
    return ChosenWindows(model, given, options, notices, sample, counted.sha256)


def _counted(model: Model, given: Texts, options: Options, progress: bool) -> Counted:
    """A sample is spread over all windows, so they are counted first."""
    with Bar("Counting the windows to sample from", "windows", progress) as bar:

        def tick(more: int, expected: int | None) -> None:
            bar.advance(more)
            bar.expect(expected, exact=False)

        return count_windows(given, model.tokenizer, options, model.embedding_rows, tick)
