"""headscope reproduce: one study or several, in the terminal and as files."""

from __future__ import annotations

import io
import json
import shutil
from importlib import metadata
from pathlib import Path

import pandas as pd
import pytest

import headscope
from headscope.insight.claims import claims as judged_claims
from headscope.insight.claims import claims_facts, claims_table
from headscope.insight.verdicts import VERDICTS

OLD = Path(__file__).parents[1] / "data" / "version-0.1.0"


@pytest.fixture(scope="module")
def place(tmp_path_factory, tiny, tiny_folder, sample) -> Path:
    """Two studies that can stand side by side, and one with other windows."""
    folder = tmp_path_factory.mktemp("reproduced")
    drawn = headscope.load(f"random:{tiny_folder}", seed=7, device="cpu")
    for name, model, length in (("tiny", tiny, 48), ("drawn", drawn, 48), ("short", tiny, 24)):
        headscope.study(model, sample[:10], out=folder / name, length=length, max_windows=12, progress=False)
    return folder


@pytest.fixture
def here(place, tmp_path, monkeypatch) -> Path:
    """Fresh copies, where the command is given, in a terminal of 80 columns."""
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def in_80_columns(out: str) -> bool:
    return all(len(line) <= 80 for line in out.splitlines())


class TestOneStudy:
    def test_the_table_says_the_verdict_first(self, call, here):
        code, out, err = call("reproduce", "tiny")
        assert (code, err) == (0, "")
        assert in_80_columns(out)
        assert "which is not the paper's model" in out
        assert "Of 12 claims: " in out
        assert sum(line[:1] in {mark.symbol for mark in VERDICTS.values()} for line in out.splitlines()) == 12
        assert "Agreement with Fig. 9 is left out: Fig. 9 lists pairs of bert-base-uncased" in out

    def test_the_full_wording_is_there_for_the_asking(self, call, here):
        criterion = "the largest weight of more than half of all rows"
        short, full = (" ".join(call("reproduce", "tiny", *asked)[1].split()) for asked in ([], ["--full"]))
        assert (criterion in short, criterion in full) == (False, True)
        assert "--full adds the paper's sentences" in short
        assert in_80_columns(call("reproduce", "tiny", "--full")[1])

    def test_the_claims_are_kept_in_the_folder_which_is_still_right(self, call, here):
        assert "Written: tiny/claims.json" in call("reproduce", "tiny")[1]
        kept = json.loads((here / "tiny" / "claims.json").read_text("utf-8"))
        manifest = headscope.read("tiny").manifest
        assert kept["format"] == 1
        assert kept["headscope"] == metadata.version("headscope")
        assert kept["weights_sha256"] == manifest.model.weights_sha256
        assert kept["texts_sha256"] == manifest.source.sha256
        assert kept["options"] == manifest["options"]
        assert len(kept["claims"]) == 12
        assert {"paper", "criterion", "needed", "measured", "verdict", "thresholds"} <= kept["claims"][0].keys()
        code, out, _ = call("verify", "tiny")
        assert code == 0
        assert "wrong" not in out

    def test_a_folder_that_can_not_be_written_to_is_told_and_stops_nothing(self, call, here):
        (here / "tiny" / "claims.json").mkdir()
        code, out, err = call("reproduce", "tiny")
        assert (code, err) == (0, "")
        assert out.splitlines()[-1] == "tiny/claims.json can't be written; the claims are not kept there."
        assert not (here / "tiny" / "claims.json.part").exists()

    def test_json_on_standard_output_is_what_would_be_kept_and_nothing_else(self, call, here):
        code, out, err = call("reproduce", "tiny", "--json", "-")
        assert (code, err) == (0, "")
        assert not (here / "tiny" / "claims.json").exists()
        call("reproduce", "tiny", "--json", "elsewhere.json")
        assert out == Path("tiny/claims.json").read_text("utf-8") == Path("elsewhere.json").read_text("utf-8")
        assert json.loads(out)["fig9"] is None

    def test_csv_has_a_row_a_claim(self, call, here):
        _, out, _ = call("reproduce", "tiny", "--csv", "-")
        assert not (here / "tiny" / "claims.json").exists()
        study = headscope.read("tiny")
        assert out == claims_table({"tiny": judged_claims(study)}).to_csv(index=False)
        assert "Written: claims.csv" in call("reproduce", "tiny", "--csv", "claims.csv")[1]
        assert Path("claims.csv").read_text("utf-8") == out

    def test_in_python_the_claims_are_a_dataframe(self, here):
        table = headscope.claims("tiny")
        pd.testing.assert_frame_equal(table, headscope.claims(headscope.read("tiny")))
        facts = claims_facts(headscope.read("tiny"), judged_claims(headscope.read("tiny")))
        assert table["verdict"].tolist() == [claim["verdict"] for claim in facts["claims"]]
        assert set(table["model"]) == {"tiny"}

    @pytest.mark.model
    def test_a_model_is_measured_first_where_one_is_named(self, call, tmp_path):
        arguments = ["reproduce", "--model", "minilm", "--max-windows", "2", "--out", tmp_path / "m", "--json", "-"]
        code, out, _ = call(*arguments)
        assert code == 0
        assert json.loads(out)["windows"] == headscope.read(tmp_path / "m").windows == 2
        code, _, err = call(*arguments)
        assert code == 2
        assert "holds a finished study" in err


class TestSeveralStudies:
    def test_a_matrix_of_claims_by_models_ends_in_sentences(self, call, here):
        code, out, err = call("reproduce", "tiny", "drawn")
        assert (code, err) == (0, "")
        assert in_80_columns(out)
        lines = out.splitlines()
        for topic in headscope.claims("tiny")["topic"]:
            assert sum(line.startswith(topic) for line in lines) == 1
        for opening in ("Of the paper's 12 claims", "Claims that hold in every", "Claims that hold in no model"):
            assert any(line.startswith(f"• {opening}") for line in lines)
        assert "random tiny: The weights are random" in out
        assert not (here / "tiny" / "claims.json").exists()

    def test_what_decides_each_claim_is_there_for_the_asking(self, call, here):
        _, out, _ = call("reproduce", "tiny", "drawn", "--full")
        assert in_80_columns(out)
        assert out.count("It holds here if:") == 24

    def test_json_has_the_matrix_and_every_fact(self, call, here):
        _, out, _ = call("reproduce", "tiny", "drawn", "--json", "-")
        whole = json.loads(out)
        table = headscope.claims("tiny", "drawn")
        assert [study["label"] for study in whole["studies"]] == ["tiny", "random tiny"]
        for study in whole["studies"]:
            mine = table[table.model == study["label"]].drop(columns="model").reset_index(drop=True)
            told = pd.DataFrame(study["claims"]).drop(columns="nulls")
            pd.testing.assert_frame_equal(told, mine, check_dtype=False)
        hashes = [headscope.read(name).manifest.model.weights_sha256 for name in ("tiny", "drawn")]
        assert [study["weights_sha256"] for study in whole["studies"]] == hashes
        for row in whole["matrix"]:
            verdicts = table[table.topic == row["topic"]].set_index("model")["verdict"]
            assert row["verdicts"] == verdicts.to_dict()
            assert row["holds_in"] == (verdicts == "holds").sum()
        assert whole["sentences"] == headscope.compare(["tiny", "drawn"]).claims_in_words

    def test_csv_has_a_row_per_model_and_claim(self, call, here):
        _, out, _ = call("reproduce", "tiny", "drawn", "--csv", "-")
        table = pd.read_csv(io.StringIO(out))
        assert table.groupby("model", sort=False).size().to_dict() == {"tiny": 12, "random tiny": 12}
        assert out == headscope.claims("tiny", "drawn").to_csv(index=False)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "Name a study folder, or several, or a model to measure with --model NAME."),
        (["nowhere"], "There is no study folder nowhere; check the path."),
        (["tiny", "nowhere"], "There is no study folder nowhere; check the path."),
        (["tiny", "text.txt"], "text.txt is no study folder; to measure texts, name a model with --model NAME."),
        (["tiny", "short"], "tiny was measured with --length 48, short with 24; only studies with the same"),
        (["tiny", "tiny"], "The same study folder was given twice."),
        (["images"], "images is a study of images; the paper's claims are about texts."),
        (["images", "pictures"], "images is a study of images; the paper's claims are about texts."),
        (["tiny", "images"], "only studies of the same can be compared."),
    ],
)
def test_what_can_not_be_held_against_the_paper_is_refused_in_one_sentence(call, here, arguments, expected):
    (here / "text.txt").write_text("Some text.")
    for name in ("images", "pictures"):
        shutil.copytree(OLD / "images", here / name)
    code, out, err = call("reproduce", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert expected in err


def test_without_a_study_python_is_told_so():
    with pytest.raises(headscope.HeadscopeError, match="none was given"):
        headscope.claims()


def test_comparing_marks_every_verdict(call, here, monkeypatch):
    """A claim that held only by distance once ended `compare` in a traceback."""
    words = list(VERDICTS)
    from headscope.insight import comparing

    def judged(study):
        found = judged_claims(study)
        return [type(claim)(**{**vars(claim), "verdict": words[i % len(words)]}) for i, claim in enumerate(found)]

    monkeypatch.setattr(comparing, "claims", judged)
    code, out, _ = call("compare", "tiny", "drawn", "--out", "c.html")
    assert code == 0
    for verdict, mark in VERDICTS.items():
        assert f"{mark.symbol} {verdict}" in out
    assert "Claims that hold without learning: " in out
