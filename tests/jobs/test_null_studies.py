"""Nulls of a study: what is measured, when it is refused, and the roles that follow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from planted_models import COPY, PREVIOUS, planted
from runs import digests_of, small_study

import headscope
from headscope.corpus.null_kinds import NULLS
from headscope.errors import HeadscopeError
from headscope.insight.roles import ROLES, RULES, roles, why_no_roles
from headscope.model.loading import Model
from headscope.show.objects import Study


def test_heads_that_were_built_for_something_have_that_role(planted_study: Study) -> None:
    table = planted_study.heads[planted_study.heads.layer == 0].set_index("head")["role"]
    assert table[PREVIOUS] == "previous token"
    assert table[COPY] == "repeated token"
    shown = planted_study.roles.set_index(["layer", "head"]).loc[0, PREVIOUS]
    assert shown["value"] > 0.9 > 0.2 > shown["weights"]
    assert shown["low"] <= shown["value"] <= shown["high"]
    assert shown["tokens"] == pytest.approx(shown["value"], abs=0.05)  # a place is a place, whatever stands there
    assert shown["same_in_halves"]


@pytest.mark.parametrize("similarity", ["dot", "centred", "cosine"])
def test_of_random_weights_no_head_has_a_role(similarity, tiny, sample, tmp_path: Path) -> None:
    study = headscope.study(
        tiny,
        sample,
        out=tmp_path / "s",
        length=32,
        windows="first",
        similarity=similarity,
        nulls=True,
        progress=False,
    )
    assert why_no_roles(study) is None
    assert (study.heads["role"] == "").all()


def test_a_null_study_has_no_roles(planted_study: Study) -> None:
    for one in planted_study.nulls.values():
        assert (one.heads["role"] == "").all()
        assert (roles(one)["role"] == "").all()
        assert "null study" in why_no_roles(one)


def test_nulls_are_ordinary_studies_that_verify_finds_right(planted_study: Study) -> None:
    assert list(planted_study.nulls) == list(NULLS)
    checks = headscope.verify(planted_study.folder)
    assert {check.what for check in checks} >= {"nulls/tokens", "nulls/sentences", "nulls/weights", "roles"}
    assert not [check for check in checks if check.problem or check.note]
    for null, one in planted_study.nulls.items():
        assert not [check for check in headscope.verify(one.folder) if check.problem]
        assert one.manifest.null.kind == null
        assert one.windows == planted_study.windows
        assert "attention_sum" not in one.arrays
    assert sum(file.stat().st_size for file in planted_study.nulls["tokens"].folder.iterdir()) < sum(
        file.stat().st_size for file in planted_study.folder.iterdir() if file.is_file()
    )


def test_changed_roles_and_nulls_are_noticed(tiny: Model, sample: list[str], tmp_path: Path) -> None:
    study = headscope.study(tiny, sample[:10], out=tmp_path / "s", length=32, nulls=True, progress=False)
    (study.folder / "roles.csv").write_text("layer,head,role\n")
    (study.folder / "nulls" / "weights" / "heads.csv").unlink()
    wrong = {check.what for check in headscope.verify(study.folder) if check.problem}
    assert wrong == {"roles", "nulls/weights"}


def test_only_the_windows_asked_for_are_measured_and_evenly_spread(tiny, sample, tmp_path: Path) -> None:
    study = small_study(tiny, tmp_path / "s", texts=sample)
    found = headscope.nulls(study, tiny, sample, max_windows=40, progress=False)
    assert {one.windows for one in found.nulls.values()} == {40}
    texts = np.flatnonzero(found.nulls["tokens"].groups["windows"][0, 0])
    every = np.flatnonzero(study.groups["windows"][0, 0])
    assert len(texts) > 0.8 * len(every)
    with pytest.raises(HeadscopeError, match="max_windows, or overwrite=True"):
        headscope.nulls(study, tiny, sample, max_windows=20, progress=False)
    again = headscope.nulls(study, tiny, sample, max_windows=20, overwrite=True, progress=False)
    assert {one.windows for one in again.nulls.values()} == {20}


def test_the_bytes_do_not_depend_on_how_it_ran(tiny, sample, tmp_path: Path, small_shards) -> None:
    found = []
    for number, how in enumerate(({"threads": 1}, {"threads": 2}, {"workers": 2, "threads": 1})):
        study = small_study(tiny, tmp_path / f"{number}", texts=sample, max_windows=64)
        headscope.nulls(study, tiny, sample, progress=False, **how)
        found.append([digests_of(study.folder / "nulls" / null) for null in NULLS])
    assert found[0] == found[1] == found[2]


def test_an_interrupted_null_goes_on_and_what_is_there_is_not_measured_again(
    tiny, sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_shards
) -> None:
    study = small_study(tiny, tmp_path / "s", texts=sample, max_windows=64)
    whole = small_study(tiny, tmp_path / "w", texts=sample, max_windows=64)
    headscope.nulls(whole, tiny, sample, progress=False)
    from headscope.measure.accumulate import AllMeasures

    begun = 0
    begin = AllMeasures.begin

    def stopped(self, device):
        nonlocal begun
        begun += 1
        if begun == 6:  # in the second of four shards of the second null
            raise KeyboardInterrupt
        return begin(self, device)

    monkeypatch.setattr(AllMeasures, "begin", stopped)
    with pytest.raises(KeyboardInterrupt):
        headscope.nulls(study, tiny, sample, progress=False, threads=1)
    monkeypatch.setattr(AllMeasures, "begin", begin)
    before = (study.folder / "nulls" / "tokens" / "study.json").read_bytes()
    headscope.nulls(study, tiny, sample, progress=False)
    assert (study.folder / "nulls" / "tokens" / "study.json").read_bytes() == before
    for null in NULLS:
        assert digests_of(study.folder / "nulls" / null) == digests_of(whole.folder / "nulls" / null)


def test_other_texts_and_other_weights_are_refused(tiny, sample, tmp_path: Path) -> None:
    study = small_study(tiny, tmp_path / "s", texts=sample, max_windows=20)
    with pytest.raises(HeadscopeError, match="holds other texts than"):
        headscope.nulls(study, tiny, sample[::-1], progress=False)
    with pytest.raises(HeadscopeError, match="has other weights than"):
        headscope.nulls(study, planted(tiny.tokenizer), sample, progress=False)
    with pytest.raises(HeadscopeError, match="does not say where its texts are"):
        headscope.nulls(study, tiny, progress=False)
    with pytest.raises(HeadscopeError, match="several times"):
        headscope.nulls(study, tiny, (text for text in sample), progress=False)
    with pytest.raises(HeadscopeError, match="There is no null 'words'"):
        headscope.nulls(study, tiny, sample, only=["words"], progress=False)
    assert not (study.folder / "nulls").exists()


def test_texts_and_model_are_found_where_the_study_read_them(tiny_folder: Path, tmp_path: Path) -> None:
    texts = tmp_path / "notes.txt"
    texts.write_text("\n".join(f"Note {number}. The tide of day {number} was low. Gulls came." for number in range(40)))
    model = headscope.load(str(tiny_folder))
    out = tmp_path / "s"
    headscope.study(model, headscope.read_texts(texts, lines=True), out=out, length=16, short="pad", progress=False)
    found = headscope.nulls(out, progress=False, only=["tokens"])
    assert list(found.nulls) == ["tokens"]
    assert found.roles is None
    assert "takes nulls" in why_no_roles(found)
    texts.unlink()
    with pytest.raises(HeadscopeError, match="are not where it read them"):
        headscope.nulls(out, progress=False)


def test_nulls_of_another_study_are_not_this_ones(tiny, sample, tmp_path: Path) -> None:
    study = small_study(tiny, tmp_path / "s", texts=sample, max_windows=20)
    headscope.nulls(study, tiny, sample, progress=False)
    other = small_study(tiny, tmp_path / "s", texts=sample[5:], max_windows=20, overwrite=True)
    assert other.nulls == {}
    assert other.roles is None
    note = {check.what: check.note for check in headscope.verify(other.folder)}
    assert "not of this study" in note["nulls/tokens"]


def test_a_part_and_a_null_have_no_nulls(tiny, sample, tmp_path: Path, small_shards) -> None:
    part = small_study(tiny, tmp_path / "p", texts=sample, max_windows=64, shard="1/2")
    with pytest.raises(HeadscopeError, match="merge the parts first"):
        headscope.nulls(part, tiny, sample, progress=False)
    with pytest.raises(HeadscopeError, match="nulls can't be had of a part"):
        small_study(tiny, tmp_path / "q", texts=sample, shard="1/2", nulls=True)
    study = small_study(tiny, tmp_path / "s", texts=sample, max_windows=20)
    found = headscope.nulls(study, tiny, sample, only=["weights"], progress=False)
    with pytest.raises(HeadscopeError, match="is a null study itself"):
        headscope.nulls(found.nulls["weights"].folder, tiny, sample, progress=False)


def test_a_study_of_few_texts_has_no_roles_and_says_so(tiny, sample, tmp_path: Path) -> None:
    study = headscope.study(tiny, sample[:3], out=tmp_path / "s", length=32, nulls=True, progress=False)
    assert (study.heads["role"] == "").all()
    assert "too few" in why_no_roles(study)


def test_every_rule_says_its_bounds(planted_study: Study) -> None:
    assert len(set(ROLES)) == len(ROLES)
    for rule in RULES:
        for condition in rule.conditions:
            assert f"{condition.bound:g}" in str(rule)


def test_a_rule_with_a_bound_out_of_reach_gives_no_role(planted_study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    from headscope.insight import roles as module

    strict = [replace(rule, conditions=tuple(replace(c, bound=2.0) for c in rule.conditions)) for rule in RULES[:1]]
    monkeypatch.setattr(module, "RULES", strict)
    assert (roles(planted_study)["role"] == "").all()
