"""The command line: what a user types, and one clear sentence with exit code 2 where it can't be done."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file


def run(*arguments: str | Path, **settings) -> subprocess.CompletedProcess[str]:
    """As a process of its own."""
    command = [sys.executable, "-m", "headscope", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **settings)


@pytest.fixture
def text_file(tmp_path: Path, sample) -> Path:
    file = tmp_path / "text.txt"
    file.write_text(sample[0], "utf-8")
    return file


def test_help_has_examples_and_needs_no_torch():
    code = "import sys; sys.argv = ['headscope', 'study', '--help']\nfrom headscope.cli import main\n"
    code += "try: main()\nfinally: print('torch' in sys.modules, 'pandas' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Examples" in shown.stdout
    assert shown.stdout.strip().endswith("False False")


def test_a_study_is_summed_up_at_the_end(call, text_file, tiny_folder, tmp_path):
    code, out, _ = call("study", text_file, "-m", tiny_folder, "--length", 48, "-o", tmp_path / "s", "--no-figures")
    assert code == 0
    assert "3 layers x 4 heads" in out
    assert "windows of 48 tokens from 1 text, measured in" in out
    assert out.count("•") >= 3
    assert (tmp_path / "s" / "heads.csv").is_file()


def test_standard_input_is_read(tiny_folder, tmp_path, sample):
    done = run(
        "study", "-", "-m", tiny_folder, "--length", 48, "-o", tmp_path / "s", "--quiet", "--no-figures",
        input=sample[1], env={**os.environ, "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "s" / "study.json").is_file()


BAD_TEXTS = {
    "missing": (None, "no file or folder"),
    "empty.txt": (b"", "is empty"),
    "image.txt": (b"\x89PNG\0\0", "is not text"),
    "latin.txt": (b"caf\xe9", "is not UTF-8"),
    "a.jsonl": (b'{"text": "ok"}\n{"no": 1}\n', "a.jsonl, line 2"),
    "b.jsonl": (b"nonsense\n", "b.jsonl, line 1 is not JSON"),
    "c.txt.gz": (gzip.compress(b"x" * 999)[:-9], "not a whole gzip"),
    "short.txt": (b"Only a few words.", "--short pad"),
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_bad_texts_end_in_one_sentence(call, name, tiny_folder, tmp_path):
    content, expected = BAD_TEXTS[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    code, out, err = call(
        "study", tmp_path / name, "-m", tiny_folder, "--length", 48, "-o", tmp_path / "s", "-q", "--short", "drop"
    )
    assert code == 2
    assert expected in err
    assert err.startswith("headscope: ")
    assert err.count("\n") == 1
    assert out == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--length", "5000"], "at most 96"),
        (["--length", "48", "--layers", "99"], "layer 99"),
        (["--layers", "x"], "not a list of numbers"),
        (["--threshold", "7"], "--threshold is 7"),
        (["--windows", "some"], "all or first"),
        (["--batch-size", "0"], "--batch-size is 0"),
        (["--device", "warp"], "--device warp"),
        (["--dtype", "int8"], "--dtype is 'int8'"),
    ],
)
def test_bad_options_end_in_one_sentence(call, arguments, expected, text_file, tiny_folder, tmp_path):
    code, _, err = call("study", text_file, "-m", tiny_folder, "-o", tmp_path / "s", "-q", *arguments)
    assert code == 2
    assert expected in err
    assert "Traceback" not in err


def test_nan_in_the_weights_ends_in_one_sentence(call, text_file, tiny_folder, tmp_path):
    copy = Path(shutil.copytree(tiny_folder, tmp_path / "copy"))
    weights = load_file(copy / "model.safetensors")
    weights["encoder.layer.1.attention.self.value.weight"][:] = float("nan")
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    code, _, err = call("study", text_file, "--model", copy, "--length", 48, "-o", tmp_path / "s", "-q")
    assert code == 2
    assert "encoder.layer.1.attention.self.value.weight" in err


def test_outputs_that_overflow_name_the_layer(call, text_file, tiny_folder, tmp_path):
    copy = Path(shutil.copytree(tiny_folder, tmp_path / "copy"))
    weights = load_file(copy / "model.safetensors")
    weights["encoder.layer.1.attention.self.value.weight"] *= 3e38
    weights["encoder.layer.1.attention.self.value.weight"].clamp_(-3e38, 3e38)
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    code, _, err = call("study", text_file, "--model", copy, "--length", 48, "-o", tmp_path / "s", "-q")
    assert code == 2
    assert "Layer 1, head 0 puts out NaN or infinity" in err


def test_a_folder_with_something_else_is_left_alone(call, text_file, tiny_folder, tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "thesis.doc").write_text("years of work")
    arguments = [
        "study",
        text_file,
        "--model",
        tiny_folder,
        "--length",
        "48",
        "--out",
        tmp_path / "s",
        "-q",
        "--no-figures",
    ]
    code, _, err = call(*arguments)
    assert code == 2
    assert "something other than a study" in err
    assert [file.name for file in (tmp_path / "s").iterdir()] == ["thesis.doc"]
    assert call(*arguments, "--overwrite")[0] == 0
    assert (tmp_path / "s" / "thesis.doc").read_text() == "years of work"


def test_bad_records_can_be_passed_over(call, tiny_folder, tmp_path, sample):
    lines = [json.dumps({"text": sample[0]}), "nonsense", json.dumps({"title": "x"})]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), "utf-8")
    code, out, _ = call(
        "study", tmp_path / "a.jsonl", "-m", tiny_folder, "--length", 48, "-o", tmp_path / "s",
        "--skip-bad", "--no-figures",
    )  # fmt: skip
    assert code == 0
    assert "left out: 2 unusable records" in out


def test_sentences_are_split_as_asked_and_it_is_said_where_there_are_none(call, tiny_folder, tmp_path):
    (tmp_path / "a.txt").write_text("cat dog。\n" * 200, "utf-8")
    asked = ["study", tmp_path / "a.txt", "-m", tiny_folder, "--length", 24, "--no-figures"]
    code, out, _ = call(*asked, "-o", tmp_path / "lines", "--sentences", "lines")
    assert code == 0
    assert "no sentence ends" not in out
    code, out, _ = call(*asked, "-o", tmp_path / "english", "--sentences", "english")
    assert code == 0
    assert "no sentence ends before the last token" in out
    options = json.loads((tmp_path / "lines" / "study.json").read_text("utf-8"))["options"]
    assert options["sentences"] == "lines"
    code, _, err = call(*asked, "-o", tmp_path / "no", "--sentences", "german")
    assert code == 2
    assert "--sentences is 'german'" in err


def test_an_unknown_verb_is_a_usage_error():
    done = run("stduy")
    assert done.returncode == 2
    assert "No such command" in done.stderr
