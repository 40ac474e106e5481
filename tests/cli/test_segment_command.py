"""headscope segment, as a user types it."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def text_file(tmp_path: Path, sample) -> Path:
    file = tmp_path / "text.txt"
    file.write_text(sample[0], "utf-8")
    return file


def test_help_has_examples_and_needs_no_torch():
    code = "import sys; sys.argv = ['headscope', 'segment', '--help']\nfrom headscope.cli import main\n"
    code += "try: main()\nfinally: print('torch' in sys.modules, 'pandas' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Examples" in shown.stdout
    assert shown.stdout.strip().endswith("False False")


def test_segments_are_printed_with_a_line_between_and_how_they_were_found_apart(call, text_file, tiny_folder, sample):
    code, out, told = call("segment", text_file, "-m", tiny_folder, "--segments", 3)
    assert code == 0
    assert out.split("\n").count("==========") == 2
    assert "".join(out.replace("==========", "").split()) == "".join(sample[0].split())
    assert "3 segments of" in told
    assert "head and pooled vectors of layer 2" in told
    assert "Weightiest of" in told
    assert call("segment", text_file, "-m", tiny_folder, "-q")[2] == ""


def test_json_is_a_list_of_segments(call, text_file, tiny_folder, sample):
    code, out, _ = call("segment", text_file, "-m", tiny_folder, "--json", "--segments", 4)
    rows = json.loads(out)
    assert code == 0
    assert len(rows) == 4
    assert list(rows[0]) == ["start", "end", "score", "first_sentence", "last_sentence"]
    assert "".join(sample[0][row["start"] : row["end"]] for row in rows) == sample[0]


def test_several_texts_are_named(call, tiny_folder, tmp_path, sample):
    with gzip.open(tmp_path / "texts.jsonl.gz", "wt") as file:
        for text in sample[:2]:
            file.write(json.dumps({"text": text}) + "\n")
    (tmp_path / "lines.txt").write_bytes(b"The sea was calm.\r\nThe sea was wide.\r\n")
    files = (tmp_path / "texts.jsonl.gz", tmp_path / "lines.txt")
    rows = json.loads(call("segment", *files, "-m", tiny_folder, "--json", "--lines")[1])
    assert len({row["origin"] for row in rows}) == 3
    _, out, _ = call("segment", *files, "-m", tiny_folder, "--lines", "--html", tmp_path / "page.html")
    assert out.count("==> ") == 3
    assert "·" not in out.splitlines()[-1]
    assert (tmp_path / "page.html").read_text("utf-8").count("<svg") == 3


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--segments", 0], "--segments is 0"),
        (["--segments", 4000], "--segments is 4000, but"),
        (["--granularity", 0], "--granularity is 0"),
        (["--using", "hands"], "--using is 'hands'; it must be heads or pooled or both"),
        (["--level", "words"], "--level is 'words'"),
        (["--layers", "7"], "--layers asks for layer 7"),
        (["--html", "/nowhere/page.html"], "can't be written"),
        (["--stack", "decoder"], "--stack decoder is for encoder-decoders"),
    ],
)
def test_bad_options_end_in_one_sentence(call, arguments, expected, text_file, tiny_folder):
    code, out, told = call("segment", text_file, "-m", tiny_folder, *arguments)
    assert (code, out) == (2, "")
    assert expected in told
    assert told.count("\n") == 1


def test_a_file_that_is_not_there_ends_in_one_sentence(call, tiny_folder, tmp_path):
    code, _, told = call("segment", tmp_path / "none.txt", "-m", tiny_folder)
    assert code == 2
    assert "There is no file or folder" in told


def test_standard_input_is_read(tiny_folder):
    done = subprocess.run(
        [sys.executable, "-m", "headscope", "segment", "-", "-m", str(tiny_folder), "--level", "sentences", "--json"],
        input="The sea was calm. The sea was wide.",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["start"] == 0
