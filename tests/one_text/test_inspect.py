"""headscope inspect: the terminal, the page, the notebook, and what is refused. Texts may hold anything."""

from __future__ import annotations

import io
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import headscope
from headscope import HeadscopeError, cli
from headscope.one_text.describing import about_head, segments, stands_out
from headscope.show.terminal import show
from headscope.wording import short, visible

TEXT = "The potter made a bowl. The bowl cracked, so the potter made another bowl!"
LONG_WORD = "abcdefghij" * 1000
HOSTILE = (
    '<script>alert(1)</script> & "quoted" <!-- {{ 7 * 7 }} </div></script><img src=x onerror=alert(2)>. '
    "Emoji 👩‍👩‍👧 🎉 and flags. שלום עולם, مرحبا. "
    f"{LONG_WORD} \x1b[31mred\x1b[0m \u202eturned\u202c end."
)


@pytest.fixture
def call(monkeypatch, capsys):
    """Inside this process: (exit code, standard output, standard error)."""

    def calling(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["headscope", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        told = capsys.readouterr()
        return code, told.out, told.err

    return calling


@pytest.fixture(scope="module")
def hostile(tiny) -> headscope.View:
    return headscope.inspect(tiny, HOSTILE)


class Reader(HTMLParser):
    """The tags of a page, and the text of its element #text (or of all, for a snippet)."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.shown = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.shown += data


def printed(view: headscope.View, heads: list[int], *, top: int = 12, colour: bool = False, layer: int = 2) -> str:
    console = Console(
        file=io.StringIO(), width=100, force_terminal=colour, color_system="truecolor" if colour else None
    )
    show(console, view, [(layer, head) for head in heads], top)
    return console.file.getvalue()


def test_the_terminal_shows_the_pairs_and_the_text(call, tiny_folder, tiny):
    code, out, _ = call("inspect", TEXT, "--model", tiny_folder, "--layer", 1, "--head", "2,0", "--top", 4)
    assert code == 0
    view = headscope.inspect(tiny, TEXT)
    assert out.index("Layer 1, head 0") < out.index("Layer 1, head 2")
    for head in (0, 2):
        part = out[out.index(f"Layer 1, head {head}") :]
        rows = re.findall(r"^ +(\d+) +(\S+) +(\d+) +(\S+) +(\d+) +(\d\.\d\d)", part, re.M)[:4]
        pairs = view.pairs(1, head).head(4)
        told = zip(pairs.i, pairs.token_i, pairs.j, pairs.token_j, pairs.distance, pairs.value, strict=True)
        assert rows == [(str(i), a, str(j), b, str(d), f"{value:.2f}") for i, a, j, b, d, value in told]
        assert f"and {len(view.pairs(1, head)) - 4} more" in part


def shown_heads(out: str) -> list[tuple[int, int]]:
    return [(int(layer), int(head)) for layer, head in re.findall(r"^Layer (\d+), head (\d+)$", out, re.M)]


def test_by_default_the_most_telling_heads_of_all_layers_are_shown(call, tiny_folder, tiny):
    _, out, _ = call("inspect", TEXT, "--model", tiny_folder)
    view = headscope.inspect(tiny, TEXT)
    assert shown_heads(out) == view.telling_heads()
    for place in view.telling_heads():
        assert (stands_out(view, *place) or about_head(view, *place)) in " ".join(out.split())
    assert "Shown are the most telling of 12 heads in layers 0 to 2" in out


@pytest.mark.parametrize("layer", [0, -1])
def test_with_a_layer_its_most_telling_heads_are_shown(call, tiny_folder, tiny, layer):
    _, out, _ = call("inspect", TEXT, "--model", tiny_folder, "--layer", layer)
    assert shown_heads(out) == headscope.inspect(tiny, TEXT).telling_heads(layer)
    assert f"Shown are the most telling of 4 heads in layer {layer % 3}" in out


def test_heads_without_a_layer_are_those_of_the_last(call, tiny_folder):
    _, out, _ = call("inspect", TEXT, "--model", tiny_folder, "--head", "3,1")
    assert shown_heads(out) == [(2, 1), (2, 3)]
    assert "most telling" not in out


def test_page_and_notebook_open_at_the_most_telling_head(tiny):
    view = headscope.inspect(tiny, TEXT)
    layer, head = view.telling_heads()[0]
    assert f'"open": [{layer}, {head}]' in view.html()
    assert f"Layer {layer}, head {head}: " in view._repr_html_()
    assert f'"open": [0, {view.telling_heads(0)[0][1]}]' in view.html(layer=0)
    assert '"open": [2, 1]' in view.html(head=1)
    assert stands_out(view, layer, head) in isolated_away(view._repr_html_())


def isolated_away(html: str) -> str:
    return html.replace("\u2068", "").replace("\u2069", "")


def test_without_colours_the_tokens_of_the_table_are_marked(tiny):
    view = headscope.inspect(tiny, TEXT)
    out = printed(view, [1], top=1)
    first = view.pairs(2, 1).iloc[0]
    assert out.count("«") == 2
    assert f"«{first.token_i}»" in out
    assert f"«{first.token_j}»" in out


def test_with_colours_the_focal_token_is_underlined_and_nothing_else(tiny):
    view = headscope.inspect(tiny, TEXT)
    out = printed(view, [1], colour=True)
    underlined = re.findall(r"\x1b\[[\d;]*4;30;48[\d;]*m([^\x1b]+)\x1b", out)
    assert underlined == [view.labels[place] for place in view.focal(2, 1).positions]


def test_a_file_and_standard_input_are_read(call, tiny_folder, tmp_path, monkeypatch):
    file = tmp_path / "potter.txt"
    file.write_text(TEXT, "utf-8")
    _, from_argument, _ = call("inspect", TEXT, "--model", tiny_folder)
    _, from_file, _ = call("inspect", file, "--model", tiny_folder)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    _, from_input, _ = call("inspect", "-", "--model", tiny_folder)
    assert from_argument == from_file == from_input


def test_words_are_whole(call, tiny_folder):
    _, out, _ = call("inspect", "The cartographer met the cartographer.", "--model", tiny_folder, "--words", "--top", 0)
    assert re.search(r"\d+ +cartographer +\d+ +cartographer .*equal", out)
    _, out, _ = call("inspect", "The cartographer met the cartographer.", "--model", tiny_folder, "--top", 0)
    assert not re.search(r"\d+ +cartographer ", out)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([""], "The text is empty"),
        (["   "], "The text is empty"),
        (["missing.txt"], "There is no file missing.txt"),
        ([TEXT, "--layer", "99"], "There is no layer 99: the model has 3, numbered 0 to 2"),
        ([TEXT, "--head", "7"], "There is no head 7: a layer has 4, 0 to 3"),
        ([TEXT, "--head", "one"], "'one' is not a list of numbers"),
        ([TEXT, "--threshold", "1.5"], "--threshold is 1.5"),
        ([TEXT, "--special", "maybe"], "--special is 'maybe'"),
        ([TEXT, "--length", "500"], "takes at most 96 tokens"),
        ([TEXT, "--html", "no/such/folder/page.html"], "no/such/folder/page.html can't be written"),
        ([TEXT, "--model", "./no-such-model"], "no-such-model"),
        ([TEXT, "--study", "no/such/study"], "There is no study folder no/such/study"),
    ],
)
def test_what_can_not_be_done_is_one_sentence_and_exit_code_2(call, tiny_folder, arguments, sentence):
    model = [] if "--model" in arguments else ["--model", tiny_folder]
    code, out, err = call("inspect", *arguments, *model)
    assert code == 2
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""


def test_csv_holds_every_pair_of_the_heads_shown(call, tiny_folder, tiny, tmp_path):
    call("inspect", TEXT, "--model", tiny_folder, "--head", "1,3", "--csv", tmp_path / "pairs.csv", "--top", 1)
    table = pd.read_csv(tmp_path / "pairs.csv")
    view = headscope.inspect(tiny, TEXT)
    assert list(table.columns[:4]) == ["layer", "head", "i", "j"]
    for head in (1, 3):
        mine = table[table["head"] == head].reset_index(drop=True)
        expected = view.pairs(2, head)
        assert mine[["i", "j", "token_i", "token_j"]].equals(expected[["i", "j", "token_i", "token_j"]])
        assert mine.value.to_numpy() == pytest.approx(expected.value.to_numpy())
    assert set(table.layer) == {2}


def test_the_picture_shows_the_matrices(call, tiny_folder, tiny, tmp_path):
    from headscope.show.view_picture import draw

    view = headscope.inspect(tiny, TEXT)
    axes = draw(view, [(1, 0), (2, 3)]).axes
    images = [each.images[0].get_array() for each in axes if each.images]
    expected = [view.attention[1, 0], view.normalised[1, 0], view.attention[2, 3], view.normalised[2, 3]]
    assert len(images) == 4
    for image, matrix in zip(images, expected, strict=True):
        assert np.asarray(image) == pytest.approx(matrix)
    code, *_ = call("inspect", TEXT, "--model", tiny_folder, "--png", tmp_path / "maps.png")
    assert code == 0
    assert (tmp_path / "maps.png").read_bytes().startswith(b"\x89PNG")


def test_no_token_is_lost_in_the_text(hostile):
    assert "".join(piece.characters for piece in segments(hostile) if not piece.special) == hostile.text
    assert hostile.text == HOSTILE[: len(hostile.text)]
    assert LONG_WORD in hostile.text


def test_a_terminal_is_not_steered_by_the_text(hostile):
    out = printed(hostile, [0, 1], top=500)
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert LONG_WORD not in out.replace("\n", "")
    assert max(map(len, out.splitlines())) <= 110
    assert "·[31mred" in re.sub("[«»]", "", out)


def test_labels_are_short_and_on_one_line():
    assert short("constabulary", 8) == "constab…"
    assert short("a\nb\tc") == "a·b·c"
    assert visible("a\x1b[0m\u2066b\n") == "a·[0m·b\n"
    assert visible("👩‍👧 می‌خواهم") == "👩‍👧 می‌خواهم"


@pytest.mark.parametrize("several", [[TEXT, TEXT], pd.Series([TEXT, TEXT]), pd.DataFrame({"text": [TEXT, TEXT]})])
def test_several_texts_are_refused_not_dropped(tiny, several):
    with pytest.raises(HeadscopeError, match="More than one text was given"):
        headscope.inspect(tiny, several)


def test_one_text_may_lie_in_a_list_or_a_file(call, tiny, tiny_folder, tmp_path):
    assert headscope.inspect(tiny, [TEXT]).text == headscope.inspect(tiny, TEXT).text
    (tmp_path / "a.csv").write_text("text\nThe cat sat.\nThe cat slept.\n")
    code, _, err = call("inspect", tmp_path / "a.csv", "--model", tiny_folder)
    assert code == 2
    assert "a.csv" in err
    assert "More than one text" in err
    with pytest.raises(HeadscopeError, match="text is None"):
        headscope.inspect(tiny, None)
