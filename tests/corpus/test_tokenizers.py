"""Windows and token strings with other tokenizers than BERT's, trained on the sample texts."""

from dataclasses import replace
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

import headscope
from headscope import HeadscopeError
from headscope.corpus import tokenizing as passages
from headscope.corpus.sentences import sentence_starts
from headscope.corpus.texts import Text
from headscope.corpus.token_names import readable_tokens
from headscope.corpus.windows import KINDS, Counts, Cutter
from headscope.model.families.small import FAMILIES, small_network
from headscope.model.loading import Model
from headscope.options import Options

TEXT = "Is a café open, in Kyoto? The naïve asked: “50 €”. Nobody knew it.\n\nThe cat slept; the cat ate 京都!"
SAMPLE = [text.text for text in headscope.sample_texts()]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=700, initial_alphabet=alphabet, special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator(SAMPLE, trainer)
    return tokenizer


def gpt2() -> PreTrainedTokenizerFast:
    """Byte-level BPE that adds no special tokens and has no padding."""
    tokenizer = byte_level()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="<s>")


def roberta() -> PreTrainedTokenizerFast:
    """Byte-level BPE between <s> and </s>."""
    tokenizer = byte_level()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    marks = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks)


def t5() -> PreTrainedTokenizerFast:
    """SentencePiece's Unigram, with </s> at the end."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=700, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(SAMPLE, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    marks = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks)


def llama() -> PreTrainedTokenizerFast:
    """SentencePiece's BPE that falls back on bytes, with <s> at the beginning."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    special = ["<unk>", "<s>", "</s>", *BYTES]
    tokenizer.train_from_iterator(
        SAMPLE, trainers.BpeTrainer(vocab_size=1000, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def bert() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(vocab_size=700, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(SAMPLE, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    marks = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks)


def llama2() -> PreTrainedTokenizerFast:
    """As llama, but pairs are merged in the whole text at once, not word by word."""
    tokenizer = Tokenizer.from_str(tokenizer_of("llama").backend_tokenizer.to_str())
    tokenizer.pre_tokenizer = None
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


MAKERS = {"gpt2": gpt2, "roberta": roberta, "t5": t5, "llama": llama, "llama2": llama2, "bert": bert}


@cache
def tokenizer_of(name: str) -> PreTrainedTokenizerFast:
    return MAKERS[name]()


@pytest.fixture(params=MAKERS)
def tokenizer(request, tmp_path):
    """As it comes back from a file."""
    tokenizer_of(request.param).save_pretrained(tmp_path)
    return PreTrainedTokenizerFast.from_pretrained(tmp_path)


def window_of(tokenizer, text=TEXT, length=120):
    return next(Cutter(tokenizer, Options(length=length, short="pad")).cut(Text("t", text), Counts()))


def rows_of(window, text=TEXT):
    """Of every token: the characters it covers, its kind, its sentence."""
    size = window.size
    pieces = [text[a:b] for a, b in zip(window.start[:size], window.end[:size], strict=True)]
    return list(zip(pieces, [KINDS[kind] for kind in window.kind[:size]], window.sentence[:size].tolist(), strict=True))


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("gpt2", [], []),
        ("roberta", ["<s>"], ["</s>"]),
        ("t5", [], ["</s>"]),
        ("llama", ["<s>"], []),
        ("bert", ["[CLS]"], ["[SEP]"]),
    ],
)
def test_windows_have_the_special_tokens_of_the_model_and_no_others(name, before, after):
    tokenizer = tokenizer_of(name)
    cutter = Cutter(tokenizer, Options(length=40))
    assert tokenizer.convert_ids_to_tokens(cutter.prefix) == before
    assert tokenizer.convert_ids_to_tokens(cutter.suffix) == after
    windows = list(cutter.cut(Text("t", SAMPLE[0]), Counts()))
    assert len(windows) > 3
    content = [token for window in windows for token in window.ids[len(before) : 40 - len(after)].tolist()]
    assert content == tokenizer(SAMPLE[0], add_special_tokens=False)["input_ids"][: len(content)]
    assert all(window.special.sum() == len(before) + len(after) for window in windows)
    assert all(KINDS[window.kind[0]] == "first" for window in windows)


def test_tokens_cover_the_whole_text_in_order(tokenizer):
    window = window_of(tokenizer)
    covered = {place for a, b in zip(window.start, window.end, strict=True) for place in range(a, b)}
    assert {place for place, character in enumerate(TEXT) if not character.isspace()} <= covered
    content = ~window.special[: window.size]
    assert (np.diff(window.start[: window.size][content]) >= 0).all()


def test_every_token_is_in_the_sentence_of_its_first_letter(tokenizer):
    window = window_of(tokenizer)
    starts = sentence_starts(TEXT)
    assert [TEXT[start:].split()[0] for start in starts] == ["Is", "The", "Nobody", "The"]
    for (piece, _, sentence), start, special in zip(rows_of(window), window.start, window.special, strict=False):
        if special:
            assert sentence == -1
        else:
            letter = next((p for p in range(start, len(TEXT)) if not TEXT[p].isspace()), len(TEXT))
            assert sentence == sum(begin <= letter for begin in starts) - 1, piece


def test_kinds_do_not_depend_on_spaces_around_a_token(tokenizer):
    kinds = {piece.strip(): kind for piece, kind, _ in rows_of(window_of(tokenizer))[1:]}
    assert kinds["."] == kinds["?"] == kinds["!"] == "sentence_end"
    assert kinds[","] == "comma"
    assert kinds[";"] == kinds[":"] == "punctuation"
    assert {kind for piece, kind in kinds.items() if piece.isalpha()} == {"word"}


def test_tokens_shown_to_people_have_no_marks_of_the_tokenizer(tokenizer):
    window = window_of(tokenizer)
    shown = readable_tokens(tokenizer, window.ids[: window.size])
    assert len(shown) == window.size
    for token, (piece, _, _) in zip(shown, rows_of(window), strict=True):
        assert token
        assert not set(token) & set("ĠĊ▁\ufffd ")
        if piece.strip().isascii() and len(piece.strip()) > 1:
            assert token.removeprefix("##") == (piece.strip().lower() if "##" in "".join(shown) else piece.strip())


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("gpt2", " the\n\n€ ", ["the", "⏎", "⏎", "<0xE2>", "<0x82>", "<0xAC>", "␣"]),
        ("llama", "京", ["␣", "<0xE4>", "<0xBA>", "<0xAC>"]),
        ("t5", "the", ["the"]),
        ("bert", "the", ["the"]),
    ],
)
def test_spaces_and_parts_of_characters_are_shown_by_signs(name, text, shown):
    tokenizer = tokenizer_of(name)
    assert readable_tokens(tokenizer, tokenizer(text, add_special_tokens=False)["input_ids"]) == shown


def test_pieces_of_words_keep_the_sign_of_wordpiece():
    tokenizer = tokenizer_of("bert")
    ids = tokenizer("xylophonists", add_special_tokens=False)["input_ids"]
    assert len(ids) > 2
    assert all(token.startswith("##") for token in readable_tokens(tokenizer, ids)[1:])


def model_of(name: str, tokenizer: str) -> Model:
    """A small network of a family with a tokenizer of its kind."""
    [family] = [family for family in FAMILIES if family.name == name]
    whole = replace(family, settings={**family.settings, "vocab_size": 1000})
    return Model(small_network(whole), tokenizer_of(tokenizer), name)


@pytest.fixture
def one_thread():
    """Networks this small only lose by sharing work among threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.model
@pytest.mark.usefixtures("one_thread")
def test_a_study_of_a_causal_model_without_special_tokens(tmp_path):
    """With padding, though the tokenizer has no padding token: token 0 stands in and takes part in nothing."""
    options = {"length": 24, "max_windows": 12, "short": "pad", "progress": False}
    study = headscope.study(model_of("GPT-2", "gpt2"), [*SAMPLE[:2], "Two words."], out=tmp_path / "gpt2", **options)
    attention = study.arrays["attention_sum"]
    assert (np.triu(attention, 1) == 0).all()
    assert (study.heads["attention_next"] == 0).all()
    assert (study.heads["attention_to_special"] == 0).all()
    assert np.allclose(attention.sum((2, 3)), study.arrays["tokens"])


@pytest.mark.model
@pytest.mark.usefixtures("one_thread")
def test_attention_shares_add_up_to_one_where_rows_do_not(tmp_path):
    study = headscope.study(
        model_of("GPT-OSS", "llama"), SAMPLE[:2], out=tmp_path / "sinks", length=24, max_windows=6, progress=False
    )
    shares = study.heads[[f"attention_to_{kind}" for kind in KINDS]].sum(axis=1)
    assert np.allclose(shares, 1)
    assert (study.arrays["attention_sum"].sum((2, 3)) < 0.99 * study.arrays["tokens"]).any()


@pytest.mark.model
@pytest.mark.usefixtures("one_thread")
def test_the_stacks_of_an_encoder_decoder_are_studies_of_their_own(tmp_path):
    model = model_of("T5", "t5")
    options = {"length": 24, "max_windows": 6, "progress": False}
    studies = {
        stack: headscope.study(model, SAMPLE[:2], out=tmp_path / str(stack), stack=stack, **options)
        for stack in (None, "encoder", "decoder", "cross")
    }
    assert [study.manifest.model.stack for study in studies.values()] == [
        "encoder",
        "encoder",
        "decoder",
        "cross",
    ]
    assert [len(study.layers) for study in studies.values()] == [3, 3, 2, 2]
    assert studies[None].heads.equals(studies["encoder"].heads)
    future = {stack: np.triu(study.arrays["attention_sum"], 1).sum() for stack, study in studies.items()}
    assert future["decoder"] == 0
    assert future["encoder"] > 0
    assert future["cross"] > 0
    for study in studies.values():
        assert np.allclose(study.arrays["attention_sum"].sum((2, 3)), study.arrays["tokens"])
    assert not np.allclose(studies["decoder"].heads["attention_self"], studies["cross"].heads["attention_self"])


@pytest.mark.model
def test_a_stack_is_refused_where_there_is_only_one(tmp_path):
    with pytest.raises(HeadscopeError, match="stack='cross' is for encoder-decoders"):
        headscope.study(model_of("BERT", "bert"), SAMPLE[:1], out=tmp_path / "no", stack="cross", length=24)
    with pytest.raises(HeadscopeError, match="stack is 'middle'; it must be"):
        headscope.Options(stack="middle")


class Spy:
    """A tokenizer that remembers how long the strings were that it was given."""

    def __init__(self, tokenizer) -> None:
        self._tokenizer = tokenizer
        self.lengths: list[int] = []

    def __call__(self, text, **options):
        self.lengths.append(len(text))
        return self._tokenizer(text, **options)


def at_once(tokenizer, text: str) -> list[tuple[int, int, int]]:
    whole = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    return [(token, *place) for token, place in zip(whole["input_ids"], whole["offset_mapping"], strict=True)]


WORDS = st.text(st.sampled_from("aeé e\u0301ΣΟς京都。👩\u200d,.-9 \n\t") | st.characters(exclude_categories=["Cs"]))
STRETCHES = st.builds(lambda word, times: word * times, WORDS, st.integers(1, 600))
LONG = st.lists(STRETCHES | st.sampled_from(SAMPLE), min_size=1, max_size=12).map("".join)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
@given(text=LONG)
@settings(max_examples=30, deadline=None)
def test_a_long_text_has_the_tokens_that_it_would_have_at_once(name, text):
    with patch.object(passages, "PASSAGE", 2 * passages.OVERLAP):
        assert list(passages.tokens_of(tokenizer_of(name), text)) == at_once(tokenizer_of(name), text)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_the_tokenizer_is_never_given_more_than_a_passage_of_a_book(name):
    book = "\n\n".join(SAMPLE * 3)
    assert len(book) > 5 * passages.PASSAGE
    spy = Spy(tokenizer_of(name))
    assert list(passages.tokens_of(spy, book)) == at_once(tokenizer_of(name), book)
    assert max(spy.lengths) == passages.PASSAGE


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
@given(text=LONG, most=st.integers(1, 126))
@settings(max_examples=30, deadline=None)
def test_tokens_are_counted_up_to_a_number(name, text, most):
    assert passages.count_up_to(tokenizer_of(name), text, most) == min(most, len(at_once(tokenizer_of(name), text)))


def test_the_first_characters_tell_whether_a_book_fills_a_window():
    spy = Spy(tokenizer_of("bert"))
    assert passages.count_up_to(spy, "\n\n".join(SAMPLE * 3), 126) == 126
    assert sum(spy.lengths) < passages.PASSAGE / 2


def test_of_a_book_only_what_is_asked_for_is_tokenized():
    book = "\n\n".join(SAMPLE * 3)
    spy = Spy(tokenizer_of("bert"))
    tokens = passages.tokens_of(spy, book)
    for _ in range(100):
        next(tokens)
    assert sum(spy.lengths) <= 2 * passages.PASSAGE


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("run", ["a" * 20_000, " " * 20_000, "京都" * 10_000, "=-" * 10_000])
def test_where_passages_find_nothing_to_agree_on_they_grow(name, run):
    text = SAMPLE[0] + run + SAMPLE[1]
    assert list(passages.tokens_of(tokenizer_of(name), text)) == at_once(tokenizer_of(name), text)


@pytest.mark.slow
@pytest.mark.parametrize("run", ["a", "?!", " ", "字"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_an_endless_word_is_cut_before_it_fills_the_memory(name, run):
    text = "Before it. " + run * (200_000 // len(run)) + " After it."
    spy = Spy(tokenizer_of(name))
    with patch.object(passages, "LONGEST_PASSAGE", 2**14):
        found = list(passages.tokens_of(spy, text))
    assert max(spy.lengths) <= 2**15
    whole = at_once(tokenizer_of(name), text)
    assert [token.id for token in found[:3]] == [token[0] for token in whole[:3]]
    assert found[-2:] == whole[-2:]
    assert [token.start for token in found] == sorted(token.start for token in found)
