"""Sentences end where readers of a language see them end, in memory and time that grow no faster than the text."""

from __future__ import annotations

import time
import tracemalloc

import nupunkt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.corpus import sentences
from headscope.corpus.kinds import KINDS, kind_of
from headscope.corpus.sentences import SentencesOf, few_sentences, sentence_starts
from headscope.errors import HeadscopeError
from headscope.options import Options, Sentences

SAMPLES = {
    "Japanese": ["今日は晴れです。", "どこへ行きますか？", "「はい。」と彼は言った。", "「本当！」",
                 "円周率は3.14です。"],
    "Chinese": ["猫坐在垫子上。", "“你好吗？”", "他问：“狗呢！”", "她用 PyTorch 2.1 训练模型。", "好吗?", "好！"],
    "Hindi": ["बिल्ली चटाई पर बैठी। ", "क्या कुत्ता आया? ", "डॉ. शर्मा ने देखा। ", "हाँ!"],
    "Bengali": ["বিড়ালটি বসে আছে। ", "কুকুর কোথায়? ", "সে চলে গেছে।"],
    "Arabic": ["جلست القطة على السجادة. ", "هل رأيت الكلب؟ ", "وصل د. أحمد أمس! ", "كلفه ذلك 3.5 دنانير."],
    "Urdu": ["بلی چٹائی پر بیٹھی ہے۔ ", "کیا کتا آیا؟ ", "نہیں، وہ سو رہا ہے۔"],
    "Hebrew": ["החתול ישב על המחצלת. ", "איפה הכלב?\u200f ", "„הוא ישן!” ", "טוב."],
    "Russian": ["А. С. Попов жил на ул. мира, т. е. рядом. ", "«Кто там?» — спросил он. ", "Это я. ", "Он ушёл… ",
                "Вот 3.5 кг!"],
    "Greek": ["Πού πας; ", "«Τι κάνεις;» ρώτησε ο κ. Νίκου. ", "Πάω στο σπίτι· είναι αργά. ", "Καλά!"],
    "Korean": ["고양이가 앉았다. ", "개는 어디 있니? ", "무게는 3.5kg이다!"],
    "Georgian": ["კატა ზის. ", "სად არის ძაღლი? ", "აქ არის!"],
    "Armenian": ["Կատուն նստեց։ ", "Շունը տեսավ նրան: ", "Ո՞ւր է կատուն։"],
    "Amharic": ["ድመቷ ተቀመጠች። ", "ውሻው የት ነው፧ ", "እዚህ ነው፣ ተኝቷል።"],
    "Burmese": ["ကြောင်က ထိုင်ပြီး၊ ခွေးက ကြည့်သည်။ ", "သူ အိပ်နေသည်။"],
    "Khmer": ["ឆ្មាអង្គុយលើកន្ទេល។ ", "ឆ្កែឃើញវា។"],
    "Tibetan": ["བྱི་ལ་བསྡད་སོང་། ", "ཁྱིས་མཐོང་སོང་། །"],
    "Tamil": ["பூனை அமர்ந்தது. ", "நாய் எங்கே? ", "இங்கே!"],
    "Thai": ["แมวนั่งบนเสื่อ สุนัขมองแมว\n\n", "วันนี้อากาศดี"],
    "Vietnamese": ["Con mèo ngồi trên chiếu. ", "Con chó ở đâu? ", "Nó đang ngủ!"],
}  # fmt: skip


def split(text: str, how: Sentences = "auto") -> list[str]:
    starts = sentence_starts(text, how)
    return [text[begin:end] for begin, end in zip(starts, [*starts[1:], len(text)], strict=True)]


@pytest.mark.parametrize("language", SAMPLES)
def test_each_script_has_its_own_ends(language):
    assert split("".join(SAMPLES[language])) == SAMPLES[language]


@pytest.mark.parametrize("language", [language for language in SAMPLES if language not in ("Thai", "Tibetan")])
def test_a_sentence_ends_in_a_mark_of_the_kind_that_ends_sentences(language):
    ends = [sentence.rstrip(' ”»」"\u200f')[-1] for sentence in SAMPLES[language]]
    assert {KINDS[kind_of(end)] for end in ends if end not in ";:…"} == {"sentence_end"}


@pytest.mark.parametrize(
    ("kind", "marks"),
    [
        ("sentence_end", ". ! ? 。 ！ ？ ｡ ． । ॥ ؟ ۔ ։ ። ፧ ။ ។ ៕ ᠃ ‼ ⁇"),
        ("comma", ", ، 、 ， ､ ՝ ፣ ߸ ᠂ ᠈ ꓾ ꘍ ꛵ ︐ ︑ ﹐ ﹑"),
        ("punctuation", "; : ； ： · « » 「 」 “ 〜 ؛ ་ ། ๏ € + …"),
        ("word", "猫 ー 々 ы ३ ة"),
    ],
)
def test_marks_of_all_scripts_have_their_kind(kind, marks):
    assert {mark: KINDS[kind_of(mark)] for mark in marks.split()} == dict.fromkeys(marks.split(), kind)


def test_english_is_split_as_nupunkt_splits_it(sample):
    for text in sample:
        by_nupunkt = [0, *(begin for begin, _ in nupunkt.sent_spans(text) if begin > 0)]
        assert sentence_starts(text) == sentence_starts(text, "english") == by_nupunkt


def test_a_few_foreign_words_change_nothing_in_an_english_text(sample):
    text = sample[0] + "\n東京。京都。\n" + sample[1]
    assert sentence_starts(text) == sentence_starts(text, "english")


def test_in_a_text_of_two_languages_each_line_is_split_in_its_own_way():
    english, japanese = "Dr. Ada met him in Fig. 3. He left.", "猫が座った。犬がそれを見た。鳥が鳴いていた。"
    text = f"{english}\n{japanese}\n12\n{english}\n"
    assert [sentence.strip() for sentence in split(text)] == [
        "Dr. Ada met him in Fig. 3.", "He left.", "猫が座った。", "犬がそれを見た。", "鳥が鳴いていた。", "12",
        "Dr. Ada met him in Fig. 3.", "He left.",
    ]  # fmt: skip


def test_lines_are_sentences_where_asked():
    assert split("\n one. Two\n\n  three\nfour \n", "lines") == ["\n one. Two\n\n  ", "three\n", "four \n"]


def test_a_heading_is_a_sentence_of_its_own_and_a_wrapped_line_is_not():
    assert split("Глава первая\n\nОн пришёл\nдомой. Было\nтемно.") == [
        "Глава первая\n\n", "Он пришёл\nдомой. ", "Было\nтемно.",
    ]  # fmt: skip


def test_an_unknown_way_is_refused_and_an_older_study_was_english():
    with pytest.raises(HeadscopeError, match="sentences is 'german'; it must be auto or english or unicode or lines"):
        Options(sentences="german")  # type: ignore[arg-type]
    older = {name: value for name, value in Options().as_dict().items() if name != "sentences"}
    assert Options.read(older).sentences == "english"
    assert Options.read(Options().as_dict()).sentences == "auto"


@pytest.mark.parametrize("how", ["auto", "english", "unicode", "lines"])
def test_a_long_text_has_the_sentences_of_its_blocks(how, sample, monkeypatch):
    text = "\n\n".join([sample[0], "".join(SAMPLES["Japanese"]) * 40, sample[1], "".join(SAMPLES["Russian"]) * 20])
    whole = sentence_starts(text, how)
    monkeypatch.setattr(sentences, "BLOCK", 4096)
    found = sentence_starts(text, how)
    assert len(set(whole) ^ set(found)) <= 2  # A paragraph may have few foreign letters in one block, many in another.
    asked = SentencesOf(text, how)
    places = range(0, len(text), 7)
    assert [asked.number(place) for place in places] == [sum(s <= place for s in found) - 1 for place in places]


@settings(max_examples=200, deadline=None)
@given(
    st.text(st.sampled_from("aZя猫\n .!?。」“\"'…;:π1\u200f\u2029ก།"), max_size=60), st.sampled_from(sorted(SAMPLES))
)
def test_starts_rise_and_no_sentence_begins_with_space(text, language):
    text = text + SAMPLES[language][0]
    for how in ("auto", "unicode", "lines"):
        starts = sentence_starts(text, how)
        assert starts == sorted(set(starts))
        assert not any(text[start].isspace() for start in starts[1:])


@pytest.mark.parametrize("unit", ["a", ".", "?!", "字", "。", " ", "a.)", "\n"])
def test_a_text_without_sentences_takes_bounded_time_and_memory(unit):
    text = unit * (2**21 // len(unit))
    began = time.perf_counter()
    tracemalloc.start()
    asked = SentencesOf(text, "auto")
    asked.number(len(text) - 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120 * 2**20
    assert time.perf_counter() - began < 60


def test_it_is_said_where_most_windows_lie_in_one_sentence():
    assert few_sentences(5, 10) is None
    assert few_sentences(None, 10) is None
    told = few_sentences(1100, 1200)
    assert told is not None
    assert told.startswith("In 1,100 of 1,200 windows no sentence ends")


def test_words_of_many_texts_are_not_remembered_for_ever(monkeypatch):
    from nupunkt.core import tokens

    monkeypatch.setattr(sentences, "WORDS", 50)
    for number in range(40):
        starts = sentence_starts(" ".join(f"word{number}x{place}." for place in range(20)) + " Dr. Hill came. He sat.")
        assert len(starts) > 1
        assert len(tokens._derived_cache) <= 50 + 30
