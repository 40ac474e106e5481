"""Models to test on: the built-in one, a tiny one with random weights, and real ones where they are at hand."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import planted_models
import pytest
import torch
from planted_models import planted
from runs import digests, small_study

import headscope
from headscope.model.loading import Model
from headscope.model.processor import keep_off_tiles
from headscope.show.objects import Study

keep_off_tiles()  # before any test, and for every process that one starts

SHARED = Path(__file__).parents[2] / "shared"
GTE_SMALL = SHARED / "models" / "gte-small"

OF_A_MODEL = {"minilm", "tiny", "tiny_folder", "gte_small"}
"""Fixtures: what uses one of them, through whatever others or by its name, needs a model."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need a model are marked; `make check` leaves them out. Those that build one themselves say so."""
    for item in items:
        used = {*getattr(item, "fixturenames", ())}
        if hasattr(item, "callspec"):
            used |= {value for value in item.callspec.params.values() if isinstance(value, str)}
        if used & OF_A_MODEL:
            item.add_marker("model")


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_heard() -> None:
    """A shell starts what runs in its background deaf to it, and so would be all that the tests start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def minilm() -> Model:
    return headscope.load("minilm", device="cpu")


@pytest.fixture(scope="session")
def sample() -> list[str]:
    return [text.text for text in headscope.sample_texts()]


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory, sample: list[str]) -> Path:
    """A BERT of 3 layers x 4 heads with random weights, and a WordPiece tokenizer trained on the sample texts."""
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "tiny"
    folder.mkdir()
    words = BertWordPieceTokenizer()
    words.train_from_iterator(sample, vocab_size=600, show_progress=False)
    # Training numbers the same words otherwise each time; numbered by their names, every run has the same model.
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    known = [*special, *sorted(set(words.get_vocab()) - set(special))]
    BertWordPieceTokenizer({word: number for number, word in enumerate(known)}).save(str(folder / "tokenizer.json"))
    BertTokenizerFast(tokenizer_file=str(folder / "tokenizer.json")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=600,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=96,
        initializer_range=0.6,
    )
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> Model:
    return headscope.load(str(tiny_folder), device="cpu")


@pytest.fixture(scope="session")
def gte_small() -> Model:
    if not GTE_SMALL.is_dir():
        pytest.skip("gte-small is not beside the project (../shared/models/gte-small)")
    return headscope.load(str(GTE_SMALL), device="cpu")


@pytest.fixture(scope="module")
def browser():
    """Chromium, where there is one."""
    driver = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    with driver.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of 16 windows, so that a small study has several; each is on disk before the next."""
    monkeypatch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 16)
    monkeypatch.setattr("headscope.run.checkpoints.SECONDS", 0)


@pytest.fixture(scope="session")
def whole(tiny: Model, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The bytes of an undisturbed study in one process, in shards of 16 windows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 16)
        return digests(small_study(tiny, tmp_path_factory.mktemp("undisturbed") / "whole").folder)


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small studies in a row: waiting for the disk would take longer than measuring."""
    monkeypatch.setattr("headscope.files.os.fsync", lambda handle: None)


@pytest.fixture(scope="session")
def planted_study(tiny: Model, sample: list[str], tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study with nulls of a model whose heads are known."""
    return headscope.study(
        planted(tiny.tokenizer),
        sample,
        out=tmp_path_factory.mktemp("planted") / "s",
        length=planted_models.LENGTH,
        max_windows=400,
        nulls=True,
        progress=False,
    )
