"""Hostile input ends in a result or in one clear sentence, never in anything else; and touches no file outside.

`make fuzz` tries some thousands of files; here are a few of each kind.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs import digests, small_study

import headscope
from headscope.corpus import tables, text_files
from headscope.errors import HeadscopeError
from headscope.insight.findings import findings
from headscope.model.loading import Model

EXAMPLES = int(os.environ.get("HEADSCOPE_EXAMPLES", "8"))
pytestmark = pytest.mark.usefixtures("unsynced")
hostile = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=EXAMPLES < 100,
    suppress_health_check=list(HealthCheck),
)


@contextmanager
def one_sentence() -> Iterator[None]:
    """What is inside may fail, but only with a sentence that fits on a few lines of a terminal."""
    try:
        yield
    except HeadscopeError as problem:
        sentence = str(problem)
        assert 10 < len(sentence) < 1000
        assert sentence.isprintable(), repr(sentence)
        assert "Traceback" not in sentence


def measured(model: Model, path: Path, **how: Any) -> None:
    """Read a file and measure it, as a study does."""
    out = path.parent / "study"
    shutil.rmtree(out, ignore_errors=True)
    with one_sentence():
        texts = headscope.read_texts([path], **how)
        study = small_study(model, out, texts=texts, short="pad", length=16, max_windows=8)
        assert 1 <= study.windows <= 8
        assert np.isfinite(study.arrays["attention_sum"]).all()


PIECES = [
    *(
        "word",
        "The cat sat.",
        " ",
        "\n",
        "\r\n",
        "\t",
        "\0",
        "\x01\x1b[31m",
        "\x7f",
        "\x85",
        "\u2028",
        "\ufeff",
        "\ufffe",
    ),
    *(
        "\u202e",
        "\u2066\u2069",
        "\u200f",
        "\u200d",
        "👩‍👩‍👧‍👦",
        "🇯🇵",
        "e\u0301\u0302\u0303",
        "ﷺ",
        "\U0010ffff",
        "\ud800",
    ),
    *(
        "文字。",
        "العربية",
        "[CLS]",
        "[SEP]",
        "[PAD]",
        "[MASK]",
        "a" * 200,
        "." * 50,
        '"}',
        "<script>",
        "{{ 7*7 }}",
        "%s%n",
    ),
]
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=20)), max_size=30).map("".join)
contents = st.one_of(texts.map(lambda text: text.encode("utf-8", "surrogatepass")), st.binary(max_size=300))
jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "a", "../x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@hostile
@given(content=contents, suffix=st.sampled_from([".txt", ".txt.gz", ".md", ".jsonl", ".jsonl.gz"]), lines=st.booleans())
def test_any_text_file(tiny: Model, tmp_path_factory: Any, content: bytes, suffix: str, lines: bool) -> None:
    path = tmp_path_factory.mktemp("fuzz") / f"x{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    measured(tiny, path, lines=lines)
    measured(tiny, path, lines=lines, skip_bad=True)


@hostile
@given(texts)
def test_any_string_from_python(tiny: Model, tmp_path_factory: Any, text: str) -> None:
    with one_sentence():
        small_study(tiny, tmp_path_factory.mktemp("fuzz") / "s", texts=[text], short="pad", length=16, max_windows=4)


@hostile
@given(
    rows=st.lists(st.one_of(jsons.map(lambda value: json.dumps(value).encode()), st.binary(max_size=40)), max_size=6)
)
def test_any_json_lines(tiny: Model, tmp_path_factory: Any, rows: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "x.jsonl"
    path.write_bytes(b"\n".join(rows))
    measured(tiny, path)
    measured(tiny, path, skip_bad=True)


cells = st.one_of(texts, st.sampled_from(['"', '"a', 'a"b', '"a""b"', '"x"y', "a,b", "text", "\r"])).map(
    lambda cell: cell.encode("utf-8", "surrogatepass")
)


@hostile
@given(
    rows=st.lists(st.lists(st.one_of(cells, st.binary(max_size=20)), max_size=3), max_size=6),
    suffix=st.sampled_from([".csv", ".tsv", ".csv.gz"]),
)
def test_any_table_of_cells(tiny: Model, tmp_path_factory: Any, rows: list[list[bytes]], suffix: str) -> None:
    path = tmp_path_factory.mktemp("fuzz") / f"x{suffix}"
    between = b"\t" if suffix == ".tsv" else b","
    content = b"\n".join([between.join([b"id", b"text"]), *(between.join(row) for row in rows)])
    path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    measured(tiny, path)
    measured(tiny, path, skip_bad=True)


@hostile
@given(value=jsons)
def test_any_json_file(tiny: Model, tmp_path_factory: Any, value: Any) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "x.json"
    path.write_text(json.dumps(value))
    measured(tiny, path)
    measured(tiny, path, skip_bad=True)


columns = st.one_of(
    st.lists(texts.map(lambda text: text.encode("utf-8", "replace").decode()) | st.none(), max_size=5).map(
        lambda values: pa.array(values, pa.string())
    ),
    st.lists(st.binary(max_size=20), max_size=5).map(lambda values: pa.array(values, pa.binary())),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5).map(lambda values: pa.array(values, pa.int64())),
    st.lists(st.lists(st.text("ab "), max_size=2), max_size=4).map(
        lambda values: pa.array(values, pa.list_(pa.string()))
    ),
    st.lists(st.text("ab "), max_size=4).map(lambda values: pa.array(values, pa.large_string())),
    st.lists(st.text("ab "), max_size=4).map(lambda values: pa.array(values, pa.string()).dictionary_encode()),
    st.integers(0, 4).map(pa.nulls),
)


@hostile
@given(
    column=columns, names=st.sampled_from([["text"], ["text", "text"], ["Text"], ["a", "text"]]), seed=st.integers(0)
)
def test_any_parquet(tiny: Model, tmp_path_factory: Any, column: pa.Array, names: list[str], seed: int) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    table = pa.Table.from_arrays([column] * len(names), names=names)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    (folder / "x.parquet").write_bytes(buffer.getvalue())
    measured(tiny, folder / "x.parquet")
    (folder / "x.parquet").write_bytes(spoiled(buffer.getvalue(), random.Random(seed)))
    measured(tiny, folder / "x.parquet")
    (folder / "y.parquet.gz").write_bytes(spoiled(gzip.compress(buffer.getvalue()), random.Random(seed)))
    measured(tiny, folder / "y.parquet.gz", skip_bad=True)


def spoiled(content: bytes, chance: random.Random) -> bytes:
    """Cut, flip, repeat or put in a few bytes."""
    spoilt = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(spoilt) + 1)
        what = chance.randrange(4)
        if what == 0:
            del spoilt[place:]
        elif what == 1 and place < len(spoilt):
            spoilt[place] ^= 1 << chance.randrange(8)
        elif what == 2:
            spoilt[place:place] = chance.randbytes(chance.randint(1, 9))
        else:
            spoilt[place : place + 8] = chance.choice([b"\xff" * 8, bytes(8), (2**62).to_bytes(8, "little")])
    return bytes(spoilt)


def test_five_megabytes_on_one_line(tiny: Model, tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("a" * 2**20 + "." * 2**18 + "Some words. " * 2**16 + "\u202e" * 2**20)
    assert path.stat().st_size > 5_000_000
    measured(tiny, path, lines=True)


@pytest.mark.parametrize("name", ["x.txt.gz", "x.jsonl.gz", "x.json.gz", "x.csv.gz", "x.parquet.gz"])
def test_a_small_file_that_unpacks_to_far_too_much_is_refused(
    tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for module in (tables, text_files):
        monkeypatch.setattr(module, "LONGEST_TEXT", 2**20)
    with gzip.open(tmp_path / name, "wb", compresslevel=1) as file:
        for _ in range(40):
            file.write(b"a" * 2**20)
    assert (tmp_path / name).stat().st_size < 2**20
    with pytest.raises(HeadscopeError, match=r"more than 1 MB|longer than 1 MB|unpacks to more than 4 MB"):
        small_study(tiny, tmp_path / "s", texts=headscope.read_texts([tmp_path / name]))


def test_a_parquet_file_with_one_far_too_long_text_is_refused(
    tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "LONGEST_TEXT", 2**20)
    pq.write_table(pa.table({"text": ["a" * (2**20 + 1)]}), tmp_path / "x.parquet")
    with pytest.raises(HeadscopeError, match="row 0 is longer than 1 MB"):
        small_study(tiny, tmp_path / "s", texts=headscope.read_texts([tmp_path / "x.parquet"]))


# Study folders.


@pytest.fixture(scope="module")
def sound(tiny: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_study(tiny, tmp_path_factory.mktemp("fuzz") / "sound", max_windows=24).folder


@pytest.fixture(scope="module")
def other(tiny: Model, tmp_path_factory: pytest.TempPathFactory, sample: list[str]) -> Path:
    folder = tmp_path_factory.mktemp("fuzz") / "other"
    return small_study(tiny, folder, max_windows=8, texts=sample[3:]).folder


def used(folder: Path, other: Path) -> None:
    """Everything that reads a study folder."""
    with one_sentence():
        study = headscope.read(folder)
        for look in (
            lambda: repr(study),
            lambda: study.heads,
            lambda: study.layers,
            lambda: dict(study.arrays),
            lambda: study.example,
            lambda: findings(study),
            lambda: headscope.compare([folder, other]),
            lambda: headscope.merge([folder, other], out=folder.parent / "merged", overwrite=True),
        ):
            with one_sentence():
                look()
        for check in headscope.verify(folder):
            assert check.problem is None or check.problem.isprintable()


@hostile
@given(seed=st.integers(0))
def test_any_damage_to_a_study_folder(sound: Path, other: Path, tmp_path_factory: Any, seed: int) -> None:
    chance = random.Random(seed)
    folder = Path(shutil.copytree(sound, tmp_path_factory.mktemp("fuzz") / "s"))
    for path in chance.sample(sorted(folder.iterdir()), 2):
        if chance.random() < 0.1:
            path.unlink()
        elif chance.random() < 0.1:
            path.write_bytes((sound / chance.choice(["heads.csv", "example.safetensors"])).read_bytes())
        else:
            path.write_bytes(spoiled(path.read_bytes(), chance))
    used(folder, other)


values = st.one_of(
    jsons,
    st.sampled_from(
        [-1, 0, 10**9, 2**63, 1e308, float("nan"), "../../secret", "/etc/passwd", "\ud800", "a" * 5000, [], {}]
    ),
)


@hostile
@given(data=st.data())
def test_any_manifest(sound: Path, other: Path, tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = Path(shutil.copytree(sound, tmp_path_factory.mktemp("fuzz") / "s"))
    manifest = json.loads((folder / "study.json").read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        where = manifest
        while isinstance(where, dict) and where:
            key = data.draw(st.sampled_from(sorted(where)))
            if not isinstance(where[key], dict) or data.draw(st.booleans()):
                where[key] = data.draw(values)
                break
            where = where[key]
    (folder / "study.json").write_text(json.dumps(manifest))
    used(folder, other)


@hostile
@given(
    content=st.one_of(st.binary(max_size=50), jsons.map(lambda value: json.dumps(value).encode()), st.just(b"[" * 9999))
)
def test_any_file_in_place_of_a_manifest(sound: Path, other: Path, tmp_path_factory: Any, content: bytes) -> None:
    folder = Path(shutil.copytree(sound, tmp_path_factory.mktemp("fuzz") / "s"))
    (folder / "study.json").write_bytes(content)
    used(folder, other)


def lying_headers(content: bytes) -> Iterator[bytes]:
    """The same safetensors file with headers that promise what is not there."""
    size = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    name = next(key for key in header if key != "__metadata__")
    for change in (
        {"shape": [2**40, 2**40]},
        {"shape": [-1]},
        {"shape": "x"},
        {"data_offsets": [0, 2**60]},
        {"data_offsets": [8, 0]},
        {"data_offsets": [2**64, 2**64 + 8]},
        {"dtype": "F16"},
        {"dtype": "PICKLE"},
    ):
        text = json.dumps(header | {name: header[name] | change}).encode()
        yield len(text).to_bytes(8, "little") + text + data
    for size in (0, 2**63, 2**64 - 1, len(content) + 1):
        yield size.to_bytes(8, "little") + content[8:]
    text = json.dumps(dict.fromkeys("ab", header[name])).encode()
    yield len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize("name", ["arrays.safetensors", "example.safetensors"])
def test_safetensors_with_lying_headers_in_a_study(sound: Path, other: Path, tmp_path: Path, name: str) -> None:
    for number, content in enumerate(lying_headers((sound / name).read_bytes())):
        folder = Path(shutil.copytree(sound, tmp_path / str(number) / "s"))
        (folder / name).write_bytes(content)
        used(folder, other)
        assert any(check.problem for check in headscope.verify(folder))


def test_safetensors_with_lying_headers_in_a_model(tiny_folder: Path, tmp_path: Path) -> None:
    for number, content in enumerate(lying_headers((tiny_folder / "model.safetensors").read_bytes())):
        folder = Path(shutil.copytree(tiny_folder, tmp_path / str(number)))
        (folder / "model.safetensors").write_bytes(content)
        with pytest.raises(HeadscopeError) as problem:
            headscope.load(str(folder))
        assert str(problem.value).isprintable()


@hostile
@given(seed=st.integers(0))
def test_any_damage_to_an_unfinished_study(tiny: Model, stopped: Path, tmp_path_factory: Any, seed: int) -> None:
    chance = random.Random(seed)
    folder = Path(shutil.copytree(stopped, tmp_path_factory.mktemp("fuzz") / "s"))
    for path in chance.sample(sorted((folder / "unfinished").iterdir()), 2):
        path.write_bytes(spoiled(path.read_bytes(), chance))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 16)
        with one_sentence():
            assert digests(small_study(tiny, folder, max_windows=96).folder) == digests(stopped.parent / "whole")


@pytest.fixture(scope="module")
def stopped(tiny: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unfinished study of six shards of which five are there; the whole one lies beside it."""
    from runs import during, stop

    root = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 16)
        small_study(tiny, root / "whole", max_windows=96)
        during(patch, 5, stop)
        with pytest.raises(KeyboardInterrupt):
            small_study(tiny, root / "stopped", max_windows=96)
    return root / "stopped"


# Files outside.

_opened: list[str] | None = None


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _opened is not None and event in ("open", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.listdir"):
        _opened.append(f"{event} {arguments[:2]}")


sys.addaudithook(_hear)


@contextmanager
def listening() -> Iterator[list[str]]:
    """All files that are opened, removed or renamed meanwhile."""
    global _opened
    _opened = []
    try:
        yield _opened
    finally:
        _opened = None


def everywhere(value: Any, secret: str) -> Any:
    """A manifest in which every string is a path."""
    if isinstance(value, dict):
        return {key: everywhere(inner, secret) for key, inner in value.items()} | {secret: secret}
    if isinstance(value, list):
        return [everywhere(inner, secret) for inner in value]
    return secret if isinstance(value, str) else value


@pytest.mark.parametrize("secret", ["../secret.txt", "{outside}/secret.txt", "secret\0.txt", "../secret.txt\n"])
def test_no_path_in_a_manifest_is_followed(sound: Path, other: Path, tmp_path: Path, secret: str) -> None:
    outside = tmp_path / "outside"
    folder = Path(shutil.copytree(sound, outside / "s"))
    (outside / "secret.txt").write_text("nobody's business")
    secret = secret.replace("{outside}", str(outside))
    manifest = json.loads((folder / "study.json").read_text())
    for key in [None, *manifest]:
        changed = everywhere(manifest, secret) if key is None else manifest | {key: everywhere(manifest[key], secret)}
        (folder / "study.json").write_text(json.dumps(changed))
        with listening() as touched:
            used(folder, other)
        assert touched, "the hook must hear something"
        assert not [event for event in touched if "secret" in event]
    assert (outside / "secret.txt").read_text() == "nobody's business"
    assert sorted(path.name for path in outside.iterdir() if path.name != "merged") == ["s", "secret.txt"]


def test_nothing_is_ever_unpickled(sound: Path, other: Path, tmp_path: Path, tiny_folder: Path) -> None:
    """Weights as pickle are refused, and pickles with the names of other files are no more than damaged files."""
    import pickle

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "exploded",))

    folder = Path(shutil.copytree(tiny_folder, tmp_path / "model"))
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(HeadscopeError, match="pickle only"):
        headscope.load(str(folder))
    for name in ("arrays.safetensors", "heads.parquet", "example.safetensors", "study.json", "example.json"):
        study = Path(shutil.copytree(sound, tmp_path / name / "s"))
        (study / name).write_bytes(pickle.dumps(Bomb()))
        used(study, other)
    assert not (tmp_path / "exploded").exists()
