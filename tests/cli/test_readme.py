"""Every command and every line of Python of the README, run word for word on a small corpus and a tiny model."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def block(language: str, beginning: str) -> str:
    [found] = [
        text for text in re.findall(rf"```{language}\n(.*?)```", README, flags=re.S) if text.startswith(beginning)
    ]
    return found


def _lengthened(folder: Path) -> None:
    """The tiny model takes 96 tokens; the README's commands take 128."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder)
    places = model.embeddings.position_embeddings
    wider = torch.nn.Embedding.from_pretrained(places.weight.repeat(2, 1)[:128].clone())
    model.embeddings.position_embeddings = wider
    model.config.max_position_embeddings = 128
    model.save_pretrained(folder)


@pytest.fixture
def desk(tiny_folder: Path, sample: list[str], tmp_path: Path, monkeypatch) -> Path:
    """A folder with all that the README speaks of. A folder of that name stands for a model of the hub."""
    for name in ("bert-base-uncased", "gpt2"):
        shutil.copytree(tiny_folder, tmp_path / name)
        _lengthened(tmp_path / name)
    with gzip.open(tmp_path / "wiki.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({"text": text[:900]}) + "\n" for text in sample[:10])
    (tmp_path / "letter.txt").write_text(sample[0][:300])
    (tmp_path / "book.txt").write_text("\n\n".join(sample[:2]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_what_is_typed_works_word_for_word(call, desk: Path, sample: list[str]) -> None:
    lines = [shlex.split(line, comments=True) for line in block("sh", "headscope study wiki").splitlines()]
    assert len(lines) > 15
    small = ("--no-figures", "--quiet", "--short", "pad")
    for number, name in enumerate(("other-study", "part-1", "part-2")):
        (desk / f"{name}.txt").write_text(sample[number][:600])
        assert call("study", f"{name}.txt", "-m", "bert-base-uncased", "-o", name, *small)[0] == 0
    verbs = set()
    for _, verb, *words in lines:
        if verb == "explore":  # a server, which does not end: see test_explore_command
            continue
        verbs.add(verb)
        code, out, err = call(verb, *words)
        assert code == 0, (verb, words, err)
        assert "Traceback" not in out + err
    assert {"study", "nulls", "inspect", "figures", "report", "compare", "segment", "ablate", "merge"} <= verbs
    for made in ("wiki/report.html", "wiki/report-0.20.html", "wiki/claims.json", "cat.html", "book.html", "whole"):
        assert (desk / made).exists(), made


@pytest.mark.slow
def test_the_lines_of_python_work_word_for_word(desk: Path, sample: list[str], tiny) -> None:
    import headscope

    for name, texts in (("base", sample[:9]), ("tuned", sample[9:18])):
        headscope.study(tiny, texts, out=name, length=64, max_windows=9, progress=False)
    code = block("python", "import headscope")
    assert code.count("\n") > 12
    texts = [text[:900] for text in sample[:10]]
    exec(code, {"texts": texts, "labels": ["calm", "rough"] * 5})
