"""Sources that texts were really read from are counted, and those that were not reached are known."""

from __future__ import annotations

from pathlib import Path

from headscope.corpus.text_windows import TextWindows
from headscope.corpus.texts import read_texts
from headscope.corpus.used_sources import MOST_LISTED
from headscope.options import Options

LINE = "The tide was low, and the gulls came to the harbour in the morning."


def written(folder: Path, **lines: int) -> list[Path]:
    paths = [folder / f"{name}.txt" for name in lines]
    for path, count in zip(paths, lines.values(), strict=True):
        path.write_text(f"{LINE}\n" * count)
    return paths


def read(paths, tokenizer, **options) -> TextWindows:
    asked = Options(length=8, windows="first", **options)
    source = TextWindows(read_texts(paths, lines=True), tokenizer, asked, 16)
    for _ in source.windows(None):
        pass
    return source


def counts(source: TextWindows) -> list[tuple[str, int, int]]:
    return [(Path(one.name).name, one.texts, one.windows) for one in source.used.listed]


def test_texts_and_windows_of_each_file(tiny, tmp_path: Path) -> None:
    source = read(written(tmp_path, a=3, b=5), tiny.tokenizer)
    assert counts(source) == [("a.txt", 3, 3), ("b.txt", 5, 5)]
    assert (source.used.more, source.not_reached) == (0, 0)


def test_a_file_that_is_never_reached_is_not_said_to_be_used(tiny, tmp_path: Path) -> None:
    paths = written(tmp_path, a=3, b=5, c=1)
    for most, used, missed in (
        (2, [("a.txt", 2, 2)], 2),
        (3, [("a.txt", 3, 3)], 2),
        (4, [("a.txt", 3, 3), ("b.txt", 1, 1)], 1),
    ):
        source = read(paths, tiny.tokenizer, max_windows=most)
        assert counts(source) == used
        assert source.not_reached == missed


def test_a_file_without_windows_counts_its_texts(tiny, tmp_path: Path) -> None:
    paths = written(tmp_path, a=1, b=1)
    paths[0].write_text("Short.\n")
    assert counts(read(paths, tiny.tokenizer)) == [("a.txt", 1, 0), ("b.txt", 1, 1)]


def test_of_very_many_files_the_first_are_listed_and_the_rest_counted(tiny, tmp_path: Path) -> None:
    paths = written(tmp_path, **{f"f{number:03}": 1 for number in range(MOST_LISTED + 7)})
    source = read(paths, tiny.tokenizer)
    assert len(source.used.listed) == MOST_LISTED
    assert source.used.more == 7
    assert {one.windows for one in source.used.listed} == {1}
