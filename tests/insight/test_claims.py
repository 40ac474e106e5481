"""The paper's claims: each is judged by its criterion, on numbers made up to hold or not; and Fig. 9's pairs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from huggingface_hub import try_to_load_from_cache
from made_up import made_up_study

import headscope
from headscope.corpus.windows import COMMA, KINDS, SENTENCE_END, WORD
from headscope.insight.claims import PAPER_MODEL, claims, heading, is_paper_model
from headscope.insight.judges import near_diagonal
from headscope.insight.paper import agreement, fig9_agreement, paper_example, token_ids

S = 128


def paper_like(depth=12, heads=12, name=PAPER_MODEL, measured=None, length=S):
    """A study whose numbers are what the paper reports, at any depth."""
    numbers = list(range(depth)) if measured is None else measured
    count = len(numbers)
    early, middle, last = 0 if depth < 12 else 1, (depth - 1) // 2 if depth < 12 else 6, depth - 1
    layers = pd.DataFrame(
        {
            "layer": numbers,
            "mean_distance": [{early: 40.0, middle: 10.0, last: 20.0}.get(n, 30.0) for n in numbers],
            "attention_self": [{middle: 0.2}.get(n, 0.05) for n in numbers],
            "attention_previous": 0.05,
            "attention_next": 0.05,
            "attention_to_first": 0.3,
            "unique_focal_tokens": 9.5 * heads / 12,
        }
    )
    table = pd.DataFrame(
        {
            "layer": np.repeat(numbers, heads),
            "head": np.tile(np.arange(heads), count),
            "mean_distance": np.tile([60.0 if head == 8 % heads else 20.0 for head in range(heads)], count),
            "repeat_probability": np.tile([0.6 if head == 8 % heads else 0.1 for head in range(heads)], count),
            "repeat_chance": 0.01,
            "same_sentence_probability": 0.5,
            "same_sentence_chance": 0.3,
            "focal_share": 0.7,
        }
    )
    attention = np.full((count, heads, length, length), 0.001)
    attention[..., np.arange(length), np.arange(length)] = 0.02
    attention[..., 0] = 0.05
    spectrum = np.zeros((count, heads, 200), dtype=np.int64)
    spectrum[..., 102], spectrum[..., 130], spectrum[..., 180] = 95, 3, 2
    lines, kinds = (np.zeros((count, heads, len(KINDS)), dtype=np.int64) for _ in range(2))
    lines[..., SENTENCE_END], lines[..., COMMA], lines[..., WORD] = 6, 3, 1
    kinds[..., SENTENCE_END], kinds[..., WORD] = 1, 9
    one_text = np.full((count, heads, length, length), 0.001)
    one_text[..., 20] = 0.4
    return made_up_study(
        layers=layers,
        heads=table,
        windows=500,
        example=SimpleNamespace(attention=one_text),
        arrays={
            "attention_sum": attention,
            "similarity_histogram": spectrum,
            "line_kind_count": lines,
            "token_kind_count": kinds,
            "windows": np.full((count, heads), 500),
            "tokens": np.full((count, heads), 500 * length),
        },
        numbers=numbers,
        model={"name": name, "layers": depth, "heads": heads, "head_width": 64},
        length=length,
    )


def verdicts(study):
    return {claim.topic: claim.verdict for claim in claims(study)}


def test_all_claims_hold_on_numbers_like_the_papers():
    assert set(verdicts(paper_like()).values()) == {"holds"}
    assert len(claims(paper_like())) == 12


def test_layers_are_taken_at_the_same_depth_of_other_models():
    told = " ".join(claim.criterion for claim in claims(paper_like()))
    for layer in (1, 6, 11):
        assert f"layer {layer}" in told
    assert "layers 10 and 11" in told
    shallow = " ".join(claim.criterion for claim in claims(paper_like(depth=6)))
    assert "layer 5" in shallow
    assert "layer 11" not in shallow
    assert verdicts(paper_like(depth=6))["Distance by depth"] == "holds"


def test_what_is_needed_is_told_in_a_few_words_for_this_model():
    told = {claim.topic: claim.needed for claim in claims(paper_like(depth=6, length=64))}
    assert told["One head looks far"] == "exactly 1 head of layer 5 with a mean distance of 25 tokens or more"
    assert told["Last layers"] == "over 50 % on sentence ends and commas in layers 4 and 5"
    assert not any("{" in needed for needed in told.values())
    assert max(map(len, told.values())) < 100


def test_claims_are_about_texts():
    study = paper_like()
    study.manifest = replace(study.manifest, kind="images")
    with pytest.raises(headscope.HeadscopeError, match="is a study of images; the paper's claims are about texts"):
        claims(study)


def test_distances_are_scaled_to_the_window():
    study = paper_like(length=64)
    far = next(claim for claim in claims(study) if claim.topic == "One head looks far")
    assert "25 tokens or more" in far.criterion


def last(study, column, value):
    """The same study with another number in the last layer."""
    for table in (study.layers, study.heads):
        if column in table:
            table.loc[table.layer == study.manifest.layers[-1], column] = value
    return study


@pytest.mark.parametrize(
    ("topic", "column", "value"),
    [
        ("One head looks far", "mean_distance", 20.0),
        ("It finds equal tokens", "repeat_probability", 0.011),
        ("Same sentence", "same_sentence_probability", 0.32),
        ("Same sentence", "same_sentence_chance", 0.49),
        ("Focal token", "focal_share", 0.5),
        ("Different focal tokens", "unique_focal_tokens", 7.2),
        ("Different focal tokens", "unique_focal_tokens", 11.5),
        ("Distance by depth", "mean_distance", 9.5),
        ("Distance by depth", "mean_distance", 39.0),
        ("Middle layers", "attention_self", 0.3),
    ],
)
def test_a_claim_falls_with_the_number_it_rests_on(topic, column, value):
    assert verdicts(paper_like())[topic] == "holds"
    assert verdicts(last(paper_like(), column, value))[topic] == "does not hold"


def test_claims_about_arrays_fall_with_them():
    study = paper_like()
    study.arrays["attention_sum"][..., 40] = 1
    study.arrays["similarity_histogram"][..., 130] = 20
    study.arrays["line_kind_count"][..., WORD] = 10
    told = verdicts(study)
    for topic in ("Diagonal, many texts", "First layers", "Last layers", "Values of N"):
        assert told[topic] == "does not hold", topic
    assert told["Diagonal, one text"] == "can't be said"


def test_one_text_is_held_against_many_where_those_lie_on_the_diagonal():
    study = paper_like()
    study.example.attention[..., np.arange(S), np.arange(S)] = 1
    assert verdicts(study)["Diagonal, one text"] == "does not hold"


def test_what_was_not_measured_can_not_be_said():
    told = {claim.topic: claim for claim in claims(paper_like(measured=[0, 1, 2]))}
    assert told["Distance by depth"].verdict == "can't be said"
    assert told["Distance by depth"].measured == "Layer 6 was not measured."
    assert told["First layers"].verdict == "holds"


def test_without_high_pairs_claims_about_them_can_not_be_said():
    told = {claim.topic: claim for claim in claims(last(paper_like(), "mean_distance", np.nan))}
    assert told["One head looks far"].measured == "Layer 11 has no high pairs."
    assert told["One head looks far"].verdict == "can't be said"


def test_a_model_too_shallow_for_early_middle_and_last_says_so():
    assert verdicts(paper_like(depth=1))["Distance by depth"] == "can't be said"


def test_without_an_example_the_claim_about_one_text_can_not_be_said():
    study = paper_like()
    del study.example
    assert verdicts(study)["Diagonal, one text"] == "can't be said"


@pytest.mark.parametrize(
    ("name", "own"),
    [
        (PAPER_MODEL, True),
        ("google-bert/bert-base-uncased", True),
        ("./copies/bert-base-uncased", True),
        ("minilm", False),
        ("bert-base-uncased-finetuned", False),
    ],
)
def test_the_heading_says_plainly_whose_model_it_is(name, own):
    study = paper_like(name=name)
    assert is_paper_model(study) is own
    assert ("which is not the paper's model (bert-base-uncased)" in heading(study)) is not own


def test_a_small_model_of_that_name_is_not_the_papers():
    assert not is_paper_model(paper_like(depth=6))


def test_near_the_diagonal_is_one_step():
    attention = np.zeros((1, 6, 6))
    for i, j in enumerate([1, 2, 2, 1, 4, 4]):
        attention[0, i, j] = 1
    attention[0, :, 0] = attention[0, :, -1] = 9  # first and last column do not count
    assert near_diagonal(attention) == pytest.approx(5 / 6)


class TestAgreement:
    def test_precision_and_recall_of_made_up_pairs(self):
        assert agreement([(0, 1), (2, 3), (4, 5)], [(0, 1), (2, 3), (6, 7), (8, 9)]) == {
            "listed": 4,
            "found": 3,
            "common": 2,
            "precision": pytest.approx(2 / 3),
            "recall": 0.5,
        }

    def test_nothing_found_has_no_precision(self):
        nothing = agreement([], [(0, 1)])
        assert np.isnan(nothing["precision"])
        assert nothing["recall"] == 0

    def test_the_example_is_whole(self):
        example = paper_example(9)
        assert len(example["tokens"]) == len(paper_example(4)["tokens"]) == 128
        assert {head: len(pairs) for head, pairs in example["high_pairs"].items()} == {"7": 18, "5": 9, "8": 8}
        for pairs in example["high_pairs"].values():
            assert all(0 < i < j < 127 for i, j in pairs)
        equal = [example["tokens"][i] == example["tokens"][j] for i, j in example["high_pairs"]["8"]]
        assert sum(equal) == 4

    def test_a_model_of_the_same_vocabulary_is_fed_the_very_tokens(self, gte_small):
        """gte-small shares BERT's vocabulary and shape, so all but the pairs themselves can be checked with it."""
        example = paper_example(9)
        ids = token_ids(gte_small.tokenizer, example["tokens"])
        assert gte_small.tokenizer.convert_ids_to_tokens(ids.tolist()) == example["tokens"]
        table = fig9_agreement(gte_small).set_index("head")
        text = gte_small.tokenizer.convert_tokens_to_string(example["tokens"][1:-1])
        view = headscope.inspect(gte_small, text, layers=(11,), length=128)
        assert view.tokens == example["tokens"]
        for head in (7, 5, 8):
            pairs = view.pairs(11, head)
            listed = {tuple(pair) for pair in example["high_pairs"][str(head)]}
            assert table.found[head] == len(pairs)
            assert table.common[head] == len(listed & set(zip(pairs.i, pairs.j, strict=True)))
        assert table.listed.to_dict() == {7: 18, 5: 9, 8: 8}

    def test_another_vocabulary_is_refused(self, tiny):
        with pytest.raises(headscope.HeadscopeError, match="another vocabulary than bert-base-uncased"):
            fig9_agreement(tiny)

    def test_a_model_without_layer_11_is_refused(self, minilm):
        with pytest.raises(
            headscope.HeadscopeError, match=r"has 6 layers of 12 heads; Fig\. 9 needs head 8 of layer 11"
        ):
            fig9_agreement(minilm)

    def test_bert_base_uncased_agrees_with_the_paper(self):
        named = os.environ.get("HEADSCOPE_BERT", PAPER_MODEL)
        cached = isinstance(try_to_load_from_cache(PAPER_MODEL, "model.safetensors"), str)
        if not Path(named).is_dir() and not cached:
            pytest.skip("bert-base-uncased is neither in the hub's cache nor in a folder named by HEADSCOPE_BERT")
        model = headscope.load(named, device="cpu")
        table = fig9_agreement(model)
        assert (table.precision > 0.9).all(), table
        assert (table.recall > 0.9).all(), table


def test_rows_that_no_window_reaches_are_no_rows():
    attention = np.zeros((2, 8, 8))
    attention[:, range(5), range(5)] = 1
    assert near_diagonal(attention) == 1
