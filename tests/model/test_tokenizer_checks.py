"""The tokenizer is the model's, or it is refused; what of a text it does not know is counted and said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertModel,
    Gemma2Config,
    Gemma2Model,
    LlamaConfig,
    LlamaModel,
    PreTrainedTokenizerFast,
)

import headscope
from headscope.corpus.texts import Text
from headscope.corpus.windows import Counts, Cutter, cut_all, refuse_unknown, unknown_notice, unknown_share
from headscope.errors import HeadscopeError
from headscope.options import Options


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_folder, tmp_path / "copy"))


def load(folder: Path) -> headscope.Model:
    return headscope.load(str(folder), device="cpu")


def refused(folder: Path) -> str:
    with pytest.raises(HeadscopeError) as told:
        load(folder)
    return str(told.value)


def change_tokenizer(folder: Path, change: Any) -> None:
    content = json.loads((folder / "tokenizer.json").read_text())
    change(content)
    (folder / "tokenizer.json").write_text(json.dumps(content))


class TestFiles:
    @pytest.mark.parametrize("kept", [[], ["tokenizer_config.json"], ["merges.txt"]])
    def test_a_folder_without_a_vocabulary_is_refused(self, folder, kept):
        (folder / "merges.txt").write_text("a b\n")
        for path in [*folder.glob("tokenizer*"), folder / "merges.txt"]:
            if path.name not in kept:
                path.unlink()
        assert "holds no tokenizer" in refused(folder)

    def test_a_vocabulary_as_plain_lines_is_enough(self, folder, tiny):
        words = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.txt").write_text("\n".join(sorted(words, key=words.__getitem__)) + "\n")
        text = "The cat sat on the mat."
        assert load(folder).tokenizer(text)["input_ids"] == tiny.tokenizer(text)["input_ids"]

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            ("[" * 100_000, "nested too deeply"),
            ("{", "is not JSON"),
            ("", "is not JSON"),
            ("[]", "holds no JSON object"),
            ("{}", "holds no vocabulary"),
            ('{"model": {"vocab": {}}}', "empty vocabulary"),
            ('{"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}', "can't be used"),
            ('{"model": {"type": "NoSuch", "vocab": {"a": 0}}}', "can't be used"),
            ('{"version": "1.0", "model": {"type": "WordPiece", "vocab": {"a": 1e99}}}', "can't be used"),
        ],
        ids=range(9),
    )
    def test_what_is_no_tokenizer_is_refused(self, folder, content, reason):
        (folder / "tokenizer.json").write_text(content)
        assert reason in refused(folder)

    def test_a_tokenizer_larger_than_any_is_refused_unread(self, folder):
        with open(folder / "tokenizer.json", "wb") as file:
            file.truncate(2**40)
        assert "1,048,576 MB large" in refused(folder)

    @pytest.mark.parametrize("content", ["[]", "{", "[" * 100_000, '{"a":' * 300 + "1" + "}" * 300])
    def test_settings_that_are_none_are_refused(self, folder, content):
        (folder / "tokenizer_config.json").write_text(content)
        assert "tokenizer_config.json" in refused(folder)

    def name_class(self, folder: Path, named: Any) -> None:
        settings = json.loads((folder / "tokenizer_config.json").read_text()) | {"tokenizer_class": named}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))

    @pytest.mark.parametrize("named", ["NoSuchTokenizer", "PreTrainedTokenizerFast", "", "os"])
    def test_tokenizer_json_is_taken_as_it_is_where_no_class_of_transformers_is_named(self, folder, tiny, named):
        self.name_class(folder, named)
        assert load(folder).tokenizer("The cat.")["input_ids"] == tiny.tokenizer("The cat.")["input_ids"]

    @pytest.mark.parametrize(
        "named", ["BertModel", "AutoTokenizer", "logging", "__class__", 5, ["a"], "T5Tokenizer", "GPT2Tokenizer"]
    )
    def test_a_class_that_is_no_tokenizer_or_not_this_one_is_refused(self, folder, named):
        torch.save({}, folder / "pytorch_model.bin")
        self.name_class(folder, named)
        assert "tokenizer" in refused(folder)

    def test_a_class_that_config_json_names_is_looked_at_too(self, folder):
        (folder / "tokenizer_config.json").unlink()
        config = json.loads((folder / "config.json").read_text()) | {"tokenizer_class": "BertModel"}
        (folder / "config.json").write_text(json.dumps(config))
        assert "gives BertModel as tokenizer_class" in refused(folder)

    def test_code_of_a_tokenizer_is_never_run(self, folder, tmp_path):
        settings = {"tokenizer_class": "EvilTokenizer", "auto_map": {"AutoTokenizer": ["evil.EvilTokenizer", None]}}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
        assert "runs no remote code" in refused(folder)
        assert not (tmp_path / "ran").exists()

    def test_settings_can_not_name_files_elsewhere(self, folder, tmp_path, tiny):
        change = {"fast_tokenizer_files": ["tokenizer.5.0.0.json"], "vocab_file": "/etc/passwd", "tokenizer_file": "/x"}
        settings = json.loads((folder / "tokenizer_config.json").read_text()) | change
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        (folder / "tokenizer.5.0.0.json").write_text("{}")
        assert load(folder).tokenizer("The cat.")["input_ids"] == tiny.tokenizer("The cat.")["input_ids"]


class TestVocabulary:
    def test_ids_beyond_the_embedding_are_refused(self, folder):
        config = BertConfig.from_pretrained(folder)
        config.vocab_size = 500
        BertModel(config).save_pretrained(folder)
        assert "gives the id 599, but the embedding of the network has 500 rows" in refused(folder)

    def test_a_special_token_beyond_the_embedding_is_refused(self, folder):
        def beyond(content: dict[str, Any]) -> None:
            content["model"]["vocab"]["[CLS]"] = 700
            content["added_tokens"] = [one for one in content["added_tokens"] if one["content"] != "[CLS]"]
            content["post_processor"] = None

        change_tokenizer(folder, beyond)
        assert "the embedding of the network has 600 rows" in refused(folder)

    def test_an_added_token_without_a_row_is_said_and_a_text_that_holds_it_refused(self, folder):
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"], "pad_token": "<padding>"})
        tokenizer.save_pretrained(folder)
        model = load(folder)
        assert any("2 added tokens without a row in the embedding" in notice for notice in model.notices)
        cutter = Cutter(model.tokenizer, Options(length=8, short="pad"), model.embedding_rows)
        [window] = cutter.cut(Text("a", "The cat."), Counts())
        assert window.ids.max() < 600
        with pytest.raises(HeadscopeError, match="b, line 3 holds <image>"):
            list(cutter.cut(Text("b, line 3", "The <image> cat."), Counts()))

    def test_a_vocabulary_without_its_unknown_token_is_refused(self, folder):
        def without(content: dict[str, Any]) -> None:
            del content["model"]["vocab"]["[UNK]"]
            content["added_tokens"] = []

        change_tokenizer(folder, without)
        assert "has no unknown token ([UNK])" in refused(folder)

    def test_a_tokenizer_that_drops_what_it_does_not_know_says_so(self, folder):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["[PAD]"], show_progress=False)
        tokenizer.train_from_iterator([text.text for text in headscope.sample_texts()], trainer)
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]").save_pretrained(folder)
        assert any("are dropped" in notice for notice in load(folder).notices)

    def test_a_tokenizer_of_few_of_the_rows_may_be_of_another_model(self, folder):
        config = BertConfig.from_pretrained(folder)
        config.vocab_size = 30_000
        BertModel(config).save_pretrained(folder)
        assert any("knows only 600 of the 30,000" in notice for notice in load(folder).notices)

    def test_a_tokenizer_of_another_kind_than_its_class_is_refused(self, folder):
        tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=special, show_progress=False)
        tokenizer.train_from_iterator([text.text for text in headscope.sample_texts()], trainer)
        tokenizer.save(str(folder / "tokenizer.json"))
        assert "is a BPE tokenizer, but transformers makes a WordPiece one of it (BertTokenizer)" in refused(folder)

    def test_a_tokenizer_that_is_made_anew_with_other_rules_is_said(self, folder):
        def cased(content: dict[str, Any]) -> None:
            content["normalizer"]["lowercase"] = False

        change_tokenizer(folder, cased)
        assert any("other tokens than tokenizer.json says" in notice for notice in load(folder).notices)


def decoder_tokenizer(adds_beginning: bool, begin: str) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Replace("▁", " ")
    special = ["<unk>", begin, "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([text.text[:2000] for text in headscope.sample_texts()], trainer)
    if adds_beginning:
        tokenizer.post_processor = processors.TemplateProcessing(single=f"{begin} $A", special_tokens=[(begin, 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=begin, eos_token="</s>", unk_token="<unk>")


SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": 600,
}


@pytest.mark.parametrize(
    ("begin", "family", "said"), [("<bos>", "gemma2", True), ("<s>", "llama", True), ("<|endoftext|>", "llama", False)]
)
def test_a_decoder_whose_texts_lack_their_first_token_is_said(tmp_path, begin, family, said):
    if family == "gemma2":
        Gemma2Model(Gemma2Config(**SMALL, num_key_value_heads=2, head_dim=8)).save_pretrained(tmp_path)
    else:
        LlamaModel(LlamaConfig(**SMALL)).save_pretrained(tmp_path)
    for adds_beginning in (False, True):
        decoder_tokenizer(adds_beginning, begin).save_pretrained(tmp_path)
        notices = [notice for notice in load(tmp_path).notices if "begin with" in notice]
        assert bool(notices) == (said and not adds_beginning)


class TestUnknownTokens:
    def counted(self, tokenizer: Any, text: str, **options: Any) -> Counts:
        counts = Counts()
        list(cut_all([Text("a", text)], Cutter(tokenizer, Options(length=8, **options)), counts, None))
        return counts

    def test_known_and_unknown_tokens_are_counted(self, tiny):
        counts = self.counted(tiny.tokenizer, "The cat 京 the 都", short="pad")
        assert counts.tokens == len(tiny.tokenizer("The cat 京 the 都", add_special_tokens=False)["input_ids"])
        assert counts.unknown_tokens == 2

    def test_only_tokens_of_windows_that_are_taken_count(self, tiny):
        text = "The cat sat. " * 20
        assert self.counted(tiny.tokenizer, text, windows="first").tokens == 6
        counts = self.counted(tiny.tokenizer, text)
        assert counts.tokens == 6 * counts.windows

    def test_tokens_of_windows_that_another_part_measures_count_as_their_windows_do(self, tiny):
        counts = Counts()
        cutter = Cutter(tiny.tokenizer, Options(length=8))
        assert not list(cutter.cut(Text("a", "The cat sat. " * 20), counts, wanted=lambda window: False))
        assert counts.tokens == 6 * counts.windows > 0

    def test_a_tokenizer_that_falls_back_on_bytes_knows_everything(self):
        assert self.counted(decoder_tokenizer(True, "<s>"), "京都 🜚", short="pad").unknown_tokens == 0

    def test_unknown_pieces_of_unigrams_are_counted_whatever_they_are_called(self):
        tokenizer = Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0), ("▁", -2.0)], unk_id=0, byte_fallback=False))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        unnamed = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
        counts = self.counted(unnamed, "a 京 a", short="pad")
        assert counts.unknown_tokens == 1

    def test_little_is_not_said_much_is_said_and_most_is_refused(self):
        few, many, most = (Counts(tokens=100, unknown_tokens=unknown) for unknown in (5, 6, 51))
        shares = [unknown_share(counts.tokens, counts.unknown_tokens) for counts in (few, many, most, Counts())]
        assert shares == [0.05, 0.06, 0.51, 0]
        assert unknown_notice(100, 5) is None
        assert unknown_notice(100, 6).startswith("6.0 % of the tokens (6 of 100) are unknown")
        refuse_unknown(Counts(tokens=100, unknown_tokens=50), "some model")
        with pytest.raises(HeadscopeError, match=r"51 % of the tokens \(51 of 100\) are unknown to the tokenizer of x"):
            refuse_unknown(most, "x")


def test_a_vision_model_needs_to_be_told_how_images_are_prepared(tmp_path):
    from transformers import ViTConfig, ViTImageProcessor, ViTModel

    settings = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 24, "patch_size": 8}
    torch.manual_seed(0)
    ViTModel(ViTConfig(**settings, intermediate_size=48)).save_pretrained(tmp_path)
    assert "preprocessor_config.json" in refused(tmp_path)
    ViTImageProcessor(size={"height": 24, "width": 24}).save_pretrained(tmp_path)
    assert load(tmp_path).takes_images
    path = tmp_path / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"size": {"height": 10**9, "width": 10**9}}))
    assert "asks for" in refused(tmp_path)
