"""Findings say what the numbers support, and nothing else: made-up numbers, and those of a real study."""

from __future__ import annotations

import numpy as np
import pytest
from made_up import attention_on, heads, made_up

import headscope
from headscope.corpus.windows import KINDS
from headscope.insight.chance import attention_chance, distance_chance, kind_chance
from headscope.insight.findings import about_attention, about_pairs, about_values, findings
from headscope.insight.findings.reading import around_peak
from headscope.measure.catalogue import columns


def test_a_range_of_layers_is_named_with_its_mean_and_the_last_layer_beside_it():
    found = about_attention.punctuation(made_up(attention_on([0.1, 0.4, 0.5, 0.45, 0.2])))
    assert found.sentence == (
        "Layers 1 to 3 put 45 % of their attention on punctuation (10 % of the tokens); the last layer 20 %."
    )
    assert found.value == pytest.approx(0.45)
    assert found.chance == pytest.approx(0.1)


def test_the_last_layer_is_not_named_twice():
    assert about_attention.punctuation(made_up(attention_on([0.1, 0.1, 0.5]))).sentence == (
        "Layer 2 puts 50 % of its attention on punctuation (10 % of the tokens)."
    )


def test_layers_go_by_their_own_numbers_where_only_some_were_measured():
    found = about_attention.punctuation(made_up(attention_on([0.5, 0.5, 0.1]), numbers=[3, 7, 11]))
    assert found.sentence.startswith("Layers 3 and 7 put 50 %")


def test_the_last_layer_measured_is_not_called_the_last_of_the_model():
    study = made_up(attention_on([0.5, 0.1]), depth=12)
    assert about_attention.punctuation(study).sentence.endswith("(10 % of the tokens); layer 1 10 %.")


def test_kinds_that_do_not_occur_are_not_spoken_of():
    study = made_up(attention_on([0.0, 0.0]))
    study.arrays["token_kind_count"][..., KINDS.index("sentence_end")] = 0
    assert about_attention.punctuation(study) is None
    assert about_pairs.repeats(made_up(heads=heads(repeat_probability=[0.0], repeat_chance=[0.0]))) is None


def test_attention_near_chance_is_not_called_a_preference():
    found = about_attention.punctuation(made_up(attention_on([0.09, 0.108, 0.08])))
    assert found.sentence == (
        "No layer favours punctuation: at most 11 % of attention, in layer 1, goes to what is 10 % of the tokens."
    )


def test_without_counts_of_kinds_no_chance_is_claimed():
    study = made_up(attention_on([0.1, 0.5]))
    del study.arrays["token_kind_count"]
    found = about_attention.punctuation(study)
    assert found.chance is None
    assert "of the tokens" not in found.sentence


def test_special_tokens_that_draw_nothing_are_not_spoken_of():
    assert about_attention.special_tokens(made_up({"attention_to_special": [0.0, 0.01]})) is None
    assert about_attention.special_tokens(made_up({"attention_to_special": [0.0, 0.4]})).value == pytest.approx(0.4)


def sentences(shares, chance=0.25, by_distance=None):
    known = {} if by_distance is None else {"same_sentence_chance_by_distance": by_distance}
    return made_up({"same_sentence_probability": shares, "same_sentence_chance": [chance] * len(shares), **known})


def test_same_sentence_is_held_against_what_distance_alone_gives():
    found = about_pairs.same_sentence(sentences([0.26, 0.5, 0.4], by_distance=[0.25, 0.3, 0.39]))
    assert found.sentence == (
        "High pairs stay within one sentence clearly more often than their distance explains in 1 of 3 layers: "
        "most in layer 1, 50 %, where distance alone gives 30 % and chance 25 %."
    )
    assert (found.value, found.chance) == (0.5, 0.3)


def test_same_sentence_that_distance_explains_is_said_as_that():
    found = about_pairs.same_sentence(sentences([0.26, 0.5], by_distance=[0.26, 0.49]))
    assert found.sentence.startswith(
        "High pairs stay within one sentence more often than by chance, but not surely more than their distance "
        "explains: in layer 1, 50 %, where distance alone gives 49 % and chance 25 %."
    )
    nothing = about_pairs.same_sentence(sentences([0.26, 0.24], by_distance=[0.25, 0.25]))
    assert nothing.sentence.startswith(
        "High pairs stay within one sentence no more often than by chance: in layer 0, 26 %"
    )


def test_a_study_that_does_not_know_chance_given_distance_gives_no_verdict():
    told = about_pairs.same_sentence(sentences([0.26, 0.5])).sentence
    assert told.endswith("how much of that is their short distance, this study can't tell.")


def test_a_model_without_high_pairs_has_no_findings_about_them():
    nothing = made_up(
        {name: [np.nan, np.nan] for name in ("same_sentence_probability", "same_sentence_chance", "focal_share")}
        | {"mean_distance": [np.nan, np.nan], "unique_focal_tokens": [0.0, 0.0]},
        {"layer": [0, 1], "head": [0, 0], "pairs": [0, 0], "pairs_per_window": [0.0, 0.0]}
        | {
            name: [np.nan, np.nan]
            for name in ("repeat_probability", "repeat_chance", "mean_distance", "block_contrast", "lines_per_window")
        },
        {"similarity_histogram": np.zeros((2, 1, 200), dtype=np.int64)},
    )
    names = ("same_sentence", "repeats", "distant_repeats", "distance_by_depth", "distance_of_heads", "focal")
    finders = [getattr(about_pairs, name) for name in (*names, "unique_focal")]
    for find in (*finders, about_values.blocks, about_values.spectrum):
        assert find(nothing) is None, find.__name__
    assert about_pairs.silent(nothing).sentence.startswith("2 of 2 heads have no high pair")


def test_the_head_that_repeats_most_is_named_with_its_factor():
    found = about_pairs.repeats(made_up(heads=heads(repeat_probability=[0.02, np.nan, 0.3])))
    assert found.sentence.startswith(
        "Layer 0, head 2 pairs equal tokens most: 30 % of its high pairs, 30 times what chance gives (1.0 %). "
        "How much of that is built in, not learned, nulls tell"
    )


def test_repeats_near_chance_are_not_a_finding_about_a_head():
    assert about_pairs.repeats(made_up(heads=heads(repeat_probability=[0.011]))).sentence.startswith(
        "No head pairs equal tokens much"
    )


def test_repeats_across_the_text_need_both_repeats_and_distance():
    near = made_up(heads=heads(repeat_probability=[0.6], mean_distance=[20.0]))
    few = made_up(heads=heads(repeat_probability=[0.1], mean_distance=[60.0]))
    both = made_up(heads=heads(repeat_probability=[0.6, 0.6], mean_distance=[20.0, 60.0]))
    assert about_pairs.distant_repeats(near) is None
    assert about_pairs.distant_repeats(few) is None
    assert "head 1 finds equal tokens across the whole text" in about_pairs.distant_repeats(both).sentence


@pytest.mark.parametrize(
    ("distances", "told"),
    [
        ([42.0, 37.0, 41.0], "42 tokens in layer 0, 37 in layer 1 (the least) and 41 in the last layer"),
        ([30.0, 40.0], "30 tokens in layer 0 and 40 in the last layer"),
        ([30.0], "30 tokens in the last layer"),
    ],
)
def test_distance_is_told_by_depth(distances, told):
    found = about_pairs.distance_by_depth(made_up({"mean_distance": distances}))
    assert found.sentence == f"High pairs span on average {told}; pairs at random span 43."
    assert found.value == min(distances)


@pytest.mark.parametrize(
    ("below", "between", "told"),
    [(95, 2, "cuts in a gap"), (70, 25, "no gap"), (20, 75, "so many that"), (1, 1, "nearly all lie above")],
)
def test_the_threshold_is_judged_by_the_spectrum(below, between, told):
    histogram = np.zeros((1, 1, 200), dtype=np.int64)
    histogram[..., 105], histogram[..., 110], histogram[..., 170] = below, between, 100 - below - between
    found = about_values.spectrum(made_up(arrays={"similarity_histogram": histogram}))
    assert told in found.sentence
    assert found.value == pytest.approx(between / 100)


def test_values_at_the_bounds_of_the_gap_are_counted_on_the_right_side():
    histogram = np.zeros(200, dtype=np.int64)
    histogram[[109, 110, 159, 160]] = 1  # N of 0.095, 0.105, 0.595, 0.605
    assert about_values.value_shares(histogram) == (0.25, 0.5)


def test_block_contrast_near_nothing_is_not_called_a_contrast():
    few = made_up(heads=heads(block_contrast=[0.01, -0.1], lines_per_window=[8.0, 8.0]))
    assert about_values.blocks(few).sentence.startswith("Lines do not part what is alike")
    some = made_up(heads=heads(block_contrast=[0.2, np.nan], lines_per_window=[8.0, 8.0]))
    assert "in layer 0, head 0, with 8 lines a window, N is 0.20 higher" in about_values.blocks(some).sentence


def test_a_line_or_two_cut_no_blocks():
    columns = {"block_contrast": [0.8, 0.1, 0.9], "lines_per_window": [1.0, 5.0, 100.0]}
    assert about_values.blocks(made_up(heads=heads(**columns))).heads == ((0, 1),)
    assert about_values.blocks(made_up(heads=heads(block_contrast=[0.8], lines_per_window=[1.0]))) is None


def test_a_head_on_its_neighbour_is_found():
    columns = {"attention_self": [0.1, 0.0], "attention_previous": [0.2, 0.9], "attention_next": [0.3, 0.0]}
    found = about_attention.neighbours(made_up(heads=heads(**columns)))
    assert found.sentence == (
        "In layer 0, head 1, a token gives 90 % of its attention to the token before it, where evenly spread it would "
        "be 0.8 %. It is the only head that gives half or more to one such place."
    )


def test_without_such_a_head_nothing_is_said_of_neighbours():
    columns = {"attention_self": [0.008], "attention_previous": [0.008], "attention_next": [0.009]}
    assert about_attention.neighbours(made_up(heads=heads(**columns))).sentence.startswith(
        "No head looks at neighbours"
    )


def test_lines_that_fall_anywhere_do_not_favour_separators():
    assert about_attention.lines(made_up({"line_separator_share": [0.11]})).sentence == (
        "Attention lines do not favour separators: 11 % stand on them in layer 0, and they are 12 % of the tokens."
    )
    assert about_attention.lines(made_up({"line_separator_share": [0.2, 0.9]})).sentence == (
        "In layer 1, 90 % of the attention lines stand on separators (12 % of the tokens); in layer 0, 20 %."
    )


def test_a_layer_in_which_most_pairs_are_high_is_a_warning():
    histogram = np.zeros((2, 1, 200), dtype=np.int64)
    histogram[..., 0] = 1000
    found = about_values.crowded(made_up({"pairs": [100, 760]}, arrays={"similarity_histogram": histogram}))
    assert found.sentence.startswith("In layer 1, 76 % of all pairs are high:")
    both = about_values.crowded(made_up({"pairs": [600, 760]}, arrays={"similarity_histogram": histogram}))
    assert both.sentence.startswith("In layers 0 and 1, more than half of all pairs are high, 76 % in layer 1:")
    assert about_values.crowded(made_up({"pairs": [100, 400]}, arrays={"similarity_histogram": histogram})) is None


def test_an_unbroken_range_is_taken_about_the_peak():
    assert around_peak(np.array([0.9, 0.1, 0.8, 1.0])).tolist() == [2, 3]
    assert around_peak(np.array([np.nan, 1.0, np.nan])).tolist() == [1]


def test_chance_is_known_only_where_it_can_be():
    study = made_up()
    assert kind_chance(study, ("sentence_end",)) == pytest.approx(0.1)
    assert distance_chance(study) == 43
    assert distance_chance(made_up(special="drop")) is None
    assert distance_chance(made_up(arrays={"tokens": np.full((1, 1), 12000)})) is None


@pytest.fixture(scope="module")
def study(tmp_path_factory, tiny, sample):
    out = tmp_path_factory.mktemp("findings") / "study"
    return headscope.study(tiny, sample[:3], out=out, length=48, max_windows=12, progress=False)


def test_a_real_study_has_findings_whose_numbers_are_its_own(study):
    found = {finding.topic: finding for finding in findings(study)}
    assert {"Punctuation", "Same sentence", "Repeated tokens", "Distance", "Threshold"} <= set(found)
    assert found["Repeated tokens"].value == study.heads.repeat_probability.max()
    assert found["Focal token"].value == study.layers.focal_share.max()
    assert found["Distance"].value == study.layers.mean_distance.min()
    for finding in found.values():
        assert finding.sentence[0].isupper()
        assert finding.sentence.endswith(".")
        assert "nan" not in finding.sentence
        assert finding.unit == "difference" or 0 <= finding.value <= finding.full


def test_the_share_of_tokens_of_each_kind_is_that_of_the_windows(study, tiny, sample):
    from headscope.corpus.texts import as_texts
    from headscope.corpus.windows import Counts, Cutter, cut_all
    from headscope.options import Options

    cutter = Cutter(tiny.tokenizer, Options(length=48))
    kinds = np.concatenate([window.kind for window in cut_all(as_texts(sample[:3]), cutter, Counts(), 12)])
    for number, kind in enumerate(KINDS):
        assert kind_chance(study, (kind,)) == pytest.approx((kinds == number).mean())


def test_every_column_of_the_tables_is_defined(study):
    assert set(study.heads.columns) | set(study.layers.columns) == {*columns(), "role"}
    for term in columns().values():
        assert term.definition.endswith(".")
        assert term.chance is None or term.chance in columns()


def test_even_attention_of_a_decoder_goes_to_what_came_before():
    causal = np.tril(np.ones((128, 128))) / np.arange(1, 129)[:, None]
    of_decoder = heads(attention_next=[0.0])
    even = made_up(heads=of_decoder, arrays={"layer_attention": 100 * causal[None]})
    assert attention_chance(even) == pytest.approx(np.diagonal(causal).mean()) == pytest.approx(0.0424, abs=1e-4)
    assert attention_chance(even, back=1) == pytest.approx(np.diagonal(causal, -1).mean())
    assert attention_chance(made_up(heads=heads(attention_next=[0.1]))) == 1 / 128
    shorter = causal.copy()
    shorter[40:] = 0  # half of the windows have 40 tokens
    mixed = made_up(heads=of_decoder, arrays={"layer_attention": (50 * causal + 50 * shorter)[None]})
    weights = np.array([100] * 40 + [50] * 88)
    assert attention_chance(mixed) == pytest.approx((weights / np.arange(1, 129)).sum() / weights.sum())


def test_the_largest_lift_is_told_where_all_are_small(monkeypatch):
    monkeypatch.setattr(about_pairs, "_surely_above", lambda *_: [0, 1])
    shares, by_distance = [0.50, 0.10], [0.48, 0.092]
    found = about_pairs.same_sentence(sentences(shares, chance=0.05, by_distance=by_distance))
    assert "1.09 times at most: in layer 1, 10 %" in found.sentence


def test_a_layer_below_chance_is_not_said_to_lie_above_it():
    found = about_pairs.same_sentence(sentences([0.20, 0.40], chance=0.30, by_distance=[0.199, 0.41]))
    assert found.sentence.startswith("High pairs stay within one sentence more often than by chance")
    assert "in layer 1, 40 %" in found.sentence


def test_no_head_pairs_equal_tokens_means_no_head():
    of_two = heads(repeat_probability=[0.20, 0.10]) | {"repeat_chance_by_distance": [0.15, 0.01]}
    found = about_pairs.repeats(made_up(heads=of_two))
    assert found.sentence.startswith("Of the heads with twice what distance alone gives or more, layer 0, head 1 pairs")
    assert "10 % of its high pairs, 10 times" in found.sentence


def test_repeats_farther_apart_than_chance_are_told_as_that():
    far = made_up(heads=heads(repeat_probability=[0.6], mean_distance=[95.0]))
    assert "95 tokens apart on average, farther than pairs at random (43)" in about_pairs.distant_repeats(far).sentence


@pytest.mark.parametrize(
    ("threshold", "told"),
    [
        (0.3, "few, so the threshold 0.3 cuts in a gap"),
        (0.9, "few, a gap, but the threshold 0.9 lies outside of it"),
    ],
)
def test_a_threshold_cuts_only_in_a_gap_in_which_it_lies(threshold, told):
    histogram = np.zeros((1, 1, 200), dtype=np.int64)
    histogram[..., 105], histogram[..., 110], histogram[..., 170] = 92, 3, 5
    found = about_values.spectrum(made_up(arrays={"similarity_histogram": histogram}, threshold=threshold))
    assert told in found.sentence


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (0.4, "Layer 0 puts 40 % of its attention on the first token (4.2 % if it were spread evenly over what"),
        (0.04, "in layer 0, goes there, and would be 4.2 % if it were spread evenly over what a token sees."),
    ],
)
def test_a_decoder_that_spreads_its_attention_evenly_does_not_favour_the_first_token(share, told):
    causal = np.tril(np.ones((128, 128))) / np.arange(1, 129)[:, None]
    columns = {"attention_to_first": [share]}
    study = made_up(columns, heads(attention_next=[0.0]), {"layer_attention": 100 * causal[None]})
    found = about_attention.first_token(study)
    assert told in found.sentence
    assert found.nothing_there is (share < 0.1)
