"""Texts and options as they are typed: tables with --field, samples, short texts, and typos."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

TEXTS = [f"Note {day}. The tide of day {day} was low, and the gulls came. Who fed the gulls?" for day in range(20)]


def test_the_command_reads_a_column_of_a_table(call, tiny_folder: Path, tmp_path: Path) -> None:
    pd.DataFrame({"day": range(20), "note": TEXTS}).to_csv(tmp_path / "notes.csv", index=False)
    asked = ("study", tmp_path / "notes.csv", "-m", tiny_folder, "--length", 16, "-o", tmp_path / "s", "--no-figures")
    code, _, err = call(*asked)
    assert code == 2
    assert "no column 'text', only day, note; name the right one with --field." in err
    assert err.count("\n") == 1
    code, out, _ = call(*asked, "--field", "note")
    assert code == 0
    assert "from 20 texts" in out


def test_a_mistyped_option_names_the_nearest_in_one_sentence(call):
    for typed, meant in (("--treshold", "--threshold"), ("--lenght", "--length"), ("--max-window", "--max-windows")):
        code, out, err = call("study", typed, "0.2")
        assert code == 2
        assert err == f"headscope: {typed} is no option of headscope study; the nearest is {meant}.\n"
        assert out == ""


def test_other_misuse_is_one_sentence_too(call):
    for arguments, said in (
        (("study", "--qqqq"), "--qqqq is no option of headscope study; headscope study --help shows"),
        (("study", "--length", "many"), "Invalid value for '--length'"),
        (("study", "--length"), "requires an argument"),
        (("stduy",), "No such command 'stduy'. Did you mean 'study'?"),
        (("compare",), "Missing argument"),
    ):
        code, out, err = call(*arguments)
        assert code == 2, arguments
        assert err.startswith("headscope: ")
        assert said in err
        assert err.count("\n") == 1
        assert out == ""


def test_without_a_verb_the_help_is_shown(call):
    code, out, err = call()
    assert code == 2
    assert out.count("Usage:") == 1
    assert err == ""
    assert call("--version")[0] == 0


def test_two_fields_are_pairs_and_what_was_cut_is_said(call, tiny_folder: Path, tmp_path: Path) -> None:
    pd.DataFrame({"premise": TEXTS, "hypothesis": TEXTS[::-1]}).to_csv(tmp_path / "nli.tsv", index=False, sep="\t")
    asked = ("study", tmp_path / "nli.tsv", "-m", tiny_folder, "--length", 40, "-o", tmp_path / "s", "--no-figures")
    code, out, _ = call(*asked, "--field", "premise, hypothesis")
    assert code == 0
    assert "over 20 windows of 40 tokens from 20 texts" in out
    assert "20 pairs of 20 did not fit into a window" in out
    code, _, err = call(*asked, "--field", "a,b,c", "--overwrite")
    assert code == 2
    assert "the name of one field, or of two" in err


def test_a_second_study_is_there_at_once_or_says_how(call, tiny_folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("\n".join(TEXTS))
    asked = ("study", "notes.txt", "--lines", "-m", tiny_folder, "--length", 16, "--no-figures")
    assert call(*asked)[0] == 0
    code, out, _ = call(*asked)
    assert code == 0
    assert "headscope-study holds this study already: the same model, texts and options." in out
    code, _, err = call(*asked, "--line-threshold", "0.2")
    assert code == 2
    assert err == (
        "headscope: headscope-study holds a finished study that differs in --line-threshold; read it with "
        "headscope report headscope-study, or give another --out, or --overwrite.\n"
    )


def test_the_help_names_no_type_after_a_flag(call):
    for verb in ("study", "compare", "segment"):
        told = [line for line in call(verb, "--help")[1].splitlines() if "<bool>" in line]
        assert [line for line in told if "--help" not in line] == []
