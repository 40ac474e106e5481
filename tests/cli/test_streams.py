"""Names and streams: whatever a file is called and wherever output goes, a sentence and an exit code, no traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headscope.console import console, say
from headscope.wording import named, visible

UNDECODED = os.fsdecode(b"caf\xe9")
ESC = "m\x1b[31mx"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="names of bytes and /dev/full are Linux's")


def shell(line: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`line` as a shell runs it, with `H` for headscope and "$1" ... for arguments."""
    script = f'H() {{ "{sys.executable}" -m headscope "$@"; }}\n{line}'
    command = ["bash", "-c", script, "bash", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, errors="replace")


@pytest.fixture(scope="module")
def place(tmp_path_factory, tiny_folder, sample) -> Path:
    """A folder with a model, a text and a study."""
    folder = tmp_path_factory.mktemp("place")
    shutil.copytree(tiny_folder, folder / "tiny")
    (folder / "text.txt").write_text(sample[0], "utf-8")
    done = shell("H study text.txt -m tiny --length 48 -o study --no-figures -q", folder)
    assert done.returncode == 0, done.stderr
    return folder


def told_once(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.stderr.count("headscope: ") == done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("stream", ["/dev/full", "&-"])
@pytest.mark.parametrize("verb", ["verify study", "--help", "inspect text.txt -m tiny"])
def test_output_that_cannot_be_written_has_an_exit_code_of_its_own(place, verb, stream):
    done = shell(f"H {verb} >{stream}", place)
    assert done.returncode == 74
    told_once(done, "standard output can't be written to")


def test_a_study_is_whole_although_its_summary_is_lost(place):
    done = shell("H study text.txt -m tiny --length 48 -o lost --no-figures >/dev/full", place)
    assert done.returncode == 74
    assert shell("H verify lost", place).returncode == 0


@pytest.mark.parametrize("stream", ["/dev/full", "&-"])
def test_a_lost_error_stream_stops_nothing(place, stream):
    out = f"quiet{stream[-1]}"
    done = shell(f"H study text.txt -m tiny --length 48 -o {out} --no-figures 2>{stream}", place)
    assert done.returncode == 0
    assert "Tables:" in done.stdout
    assert shell(f"H verify nowhere 2>{stream}", place).returncode == 2


def test_files_are_written_before_anything_is_printed(place):
    line = "set -o pipefail; H inspect text.txt -m tiny --length 90 --top 0 --html p.html --csv p.csv --png p.png"
    done = shell(f"{line} | head -1", place)
    assert (done.returncode, done.stderr) == (141, "")
    assert "</html>" in (place / "p.html").read_text("utf-8")
    assert (place / "p.csv").stat().st_size
    assert (place / "p.png").stat().st_size
    done = shell("H reproduce study --json claims.json --csv claims.csv >/dev/full", place)
    assert done.returncode == 74
    assert (place / "claims.json").is_file()
    assert (place / "claims.csv").is_file()


def test_standard_input_that_is_closed_is_told(place):
    done = shell("H study - -m tiny --length 48 -o closed <&-", place)
    assert done.returncode == 2
    told_once(done, "Standard input is closed")


def test_a_text_whose_name_is_not_utf8_is_measured_and_its_name_escaped(place, call, monkeypatch):
    monkeypatch.chdir(place)
    shutil.copy("text.txt", f"{UNDECODED}.txt")
    code, out, _ = call("study", f"{UNDECODED}.txt", "-m", "tiny", "--length", 48, "-o", "escaped")
    assert code == 0
    assert '"name": "caf\\\\xe9.txt"' in Path("escaped/study.json").read_text("utf-8")
    assert "caf\\xe9.txt" in Path("escaped/report.html").read_text("utf-8")
    files = [item for kind in ("html", "csv", "png") for item in (f"--{kind}", f"{UNDECODED}.{kind}")]
    code, out, _ = call("inspect", f"{UNDECODED}.txt", "-m", "tiny", *files)
    assert code == 0
    assert "Page: caf\\xe9.html" in out
    assert Path(f"{UNDECODED}.html").is_file()


@pytest.mark.parametrize(
    "arguments",
    [
        ["study", "text.txt", "-m", "tiny", "--length", 48, "-o", UNDECODED],
        ["study", "text.txt", "-m", UNDECODED, "--length", 48, "-o", "new"],
        ["report", UNDECODED],
        ["verify", UNDECODED],
        ["inspect", f"{UNDECODED} au lait", "-m", "tiny"],
    ],
)
def test_what_cannot_have_such_a_name_is_refused_before_anything_is_done(place, call, monkeypatch, arguments):
    monkeypatch.chdir(place)
    code, out, err = call(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "not UTF-8" in err
    assert not Path("new").exists()


def test_names_do_not_steer_the_terminal(place, call, monkeypatch):
    monkeypatch.chdir(place)
    shutil.copytree("tiny", ESC)
    shutil.copy("text.txt", f"{ESC}.txt")
    printed = [
        call(*arguments)
        for arguments in (
            ["study", f"{ESC}.txt", "-m", ESC, "--length", 48, "-o", f"{ESC}.study", "--no-figures"],
            ["compare", "study", f"{ESC}.study", "--out", f"{ESC}.html"],
            ["report", f"{ESC}.study", "-o", f"{ESC}.report"],
            ["figures", f"{ESC}.study", "--only", "7", "-o", f"{ESC}.figures"],
            ["verify", f"{ESC}.study"],
            ["reproduce", f"{ESC}.study"],
            ["doctor", ESC],
            ["inspect", f"{ESC}.txt", "-m", ESC, "--csv", f"{ESC}.csv"],
            ["study", f"{ESC}.nowhere"],
            [ESC],
            ["study", f"--{ESC}"],
        )
    ]
    assert [code for code, _, _ in printed] == [0] * 8 + [2] * 3
    assert not any("\x1b" in out + err for _, out, err in printed)
    assert "m·[31mx" in printed[1][1]


def test_the_door_lets_colours_and_letters_pass_and_no_controls(capsys):
    door = console(force_terminal=True, color_system="standard", width=60)
    door.print(f"[red]{ESC}[/red] 👩‍👧 می‌خواهم \udce9")
    say(f"{ESC}\u202e\x07\x9b")
    coloured, plain = capsys.readouterr().out.splitlines()
    assert coloured == "\x1b[31mm·[31mx\x1b[0m 👩‍👧 می‌خواهم \\xe9"
    assert plain == "m·[31mx···"
    assert (named("\udce9a"), visible("a\ud800\n\tb")) == ("\\xe9a", "a·\n\tb")


def test_a_full_disk_is_told_in_one_sentence_that_names_the_file(place):
    limited = "ulimit -f 8; "
    shutil.copytree(place / "study", place / "twin")
    for line, name in (
        ("H inspect text.txt -m tiny --html big.html >/dev/null", "big.html"),
        ("H compare study twin --out big2.html >/dev/null", "big2.html"),
        ("H figures study --only 7 -o drawn -q", "drawn"),
    ):
        done = shell(limited + line, place)
        assert done.returncode == 2, line
        told_once(done, name, "can't be written")


def test_too_little_memory_is_told_in_one_sentence(place, monkeypatch, capsys):
    from headscope import cli

    def hungry(*_):
        raise MemoryError

    monkeypatch.setattr("headscope.folder.verifying.verify", hungry)
    monkeypatch.setattr(sys, "argv", ["headscope", "verify", str(place / "study")])
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("headscope: there is not enough memory")


@pytest.mark.parametrize("module", ["headscope.cli.study", "rich.table", "torch", "transformers.modeling_utils"])
def test_ctrl_c_while_python_imports_leaves_no_traceback(place, module):
    code = f"""
import sys
class Stop:
    def find_spec(name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Stop)
sys.argv = "headscope study text.txt -m tiny --length 48 -o stopped".split()
from headscope.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=place, capture_output=True, text=True)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


def test_ctrl_c_while_python_clears_away_is_not_lost(place):
    """In a finalizer nothing can be raised: Python prints a traceback and goes on as if nothing had been pressed."""
    code = """
import signal, sys, time
import headscope.folder.verifying
class Cleared:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def verify(*_):
    Cleared()
    time.sleep(30)
headscope.folder.verifying.verify = verify
sys.argv = "headscope verify study".split()
from headscope.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=place, capture_output=True, text=True, timeout=25)
    assert (done.returncode, "Traceback" in done.stderr, "stopped" in done.stderr) == (130, False, True)
