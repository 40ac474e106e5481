"""Parts of a study, run apart and merged, are the whole to the last bit; what can't be added up is refused by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from runs import added, digests, small_study
from typer.testing import CliRunner

import headscope
from headscope.cli.app import app
from headscope.errors import HeadscopeError
from headscope.folder.manifest import manifest_checksum
from headscope.measure.catalogue import DERIVED, GROUPED
from headscope.model.loading import Model
from headscope.show.objects import Study

pytestmark = pytest.mark.usefixtures("small_shards", "unsynced")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("merge")


@pytest.fixture(scope="module")
def whole(tiny: Model, root: Path) -> Iterator[Study]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 16)
        yield small_study(tiny, root / "whole", max_windows=170)


@pytest.fixture(scope="module")
def parts(tiny: Model, root: Path) -> Iterator[list[Path]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 16)
        for number in (1, 2, 3):
            small_study(tiny, root / f"part-{number}", max_windows=170, shard=f"{number}/3")
        yield [root / f"part-{number}" for number in (1, 2, 3)]


def test_merged_parts_are_the_whole_byte_for_byte(whole: Study, parts: list[Path], tmp_path: Path) -> None:
    merged = headscope.merge([parts[2], parts[0], parts[1]], out=tmp_path / "m")
    assert digests(merged.folder) == digests(whole.folder)
    for field in ("texts", "counts", "options", "layers", "model", "example", "part"):
        assert merged.manifest[field] == whole.manifest[field]
    assert merged.manifest.run.engine == "merge"
    assert sorted(path.name for path in merged.folder.iterdir()) == sorted(p.name for p in whole.folder.iterdir())


def test_parts_hold_every_window_once(whole: Study, parts: list[Path]) -> None:
    studies = [headscope.read(part) for part in parts]
    assert [study.windows for study in studies] == [64, 58, 48]
    assert sum(study.windows for study in studies) == whole.windows == 170
    assert {study.manifest.counts.texts for study in studies} == {whole.manifest.counts.texts}


def test_more_parts_than_shards_leave_some_empty_and_still_make_the_whole(tiny: Model, tmp_path: Path) -> None:
    for number in range(1, 5):
        small_study(tiny, tmp_path / str(number), max_windows=40, shard=f"{number}/4")
    assert headscope.read(tmp_path / "4").windows == 0
    merged = headscope.merge([tmp_path / str(number) for number in range(1, 5)], out=tmp_path / "m")
    assert digests(merged.folder) == digests(small_study(tiny, tmp_path / "whole", max_windows=40).folder)


def test_a_part_without_a_window_is_not_drawn_or_judged_but_told(tiny: Model, tmp_path: Path) -> None:
    empty = small_study(tiny, tmp_path / "4", max_windows=40, shard="4/4")
    for verb in ("report", "figures", "reproduce"):
        shown = CliRunner().invoke(app, [verb, str(empty.folder)])
        assert shown.exit_code == 2
        assert "is a part that holds no window; merge it with the other parts first" in " ".join(shown.output.split())


def test_a_part_goes_on_where_it_stopped(tiny: Model, parts: list[Path], tmp_path: Path, monkeypatch) -> None:
    from runs import during, stop

    with monkeypatch.context() as patch:
        during(patch, 2, stop)
        with pytest.raises(KeyboardInterrupt):
            small_study(tiny, tmp_path / "p", max_windows=170, shard="2/3")
    with pytest.raises(HeadscopeError, match=r"differs in shard \('2/3' there, '1/3' now\)"):
        small_study(tiny, tmp_path / "p", max_windows=170, shard="1/3")
    again = small_study(tiny, tmp_path / "p", max_windows=170, shard="2/3")
    for name in ("arrays.safetensors", "rest.safetensors", "heads.csv"):
        assert (again.folder / name).read_bytes() == (parts[1] / name).read_bytes()


def test_studies_of_different_texts_add_up(tiny: Model, tmp_path: Path, sample: list[str]) -> None:
    one = small_study(tiny, tmp_path / "1", max_windows=None, texts=sample[:2])
    two = small_study(tiny, tmp_path / "2", max_windows=20, texts=sample[2:4], batch_size=2)
    merged = headscope.merge([one.folder, two.folder], out=tmp_path / "m")
    expected = added([dict(one.arrays), dict(two.arrays)])
    for name, array in merged.arrays.items():
        # What is kept by group of texts is added up by group first, what is derived after all else.
        np.testing.assert_allclose(
            array, expected[name], rtol=1e-14 if name in GROUPED | DERIVED.keys() else 0, err_msg=name
        )
    assert merged.windows == one.windows + two.windows
    assert merged.manifest.counts.texts == one.manifest.counts.texts + two.manifest.counts.texts
    assert merged.manifest.options.max_windows is None
    assert merged.manifest.run.batch_size is None
    assert all(check.problem is None for check in headscope.verify(merged.folder))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["part-1", "part-2"], "Of the 3 parts, 3 is missing"),
        (["part-1"], "name at least two"),
        (["part-1", "part-2", "part-3", "part-2"], "are both part 2; leave one out"),
        (["part-1", "part-2", "part-3", "whole"], "whole is a whole study and can't be merged with parts"),
        (["whole", "part-1"], "whole is a whole study and can't be merged with parts"),
        (["whole", "whole"], "measured the same windows; merged, they would count twice"),
        (["part-1", "nowhere"], "There is no study folder"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    whole: Study, parts: list[Path], root: Path, tmp_path: Path, given: list[str], message: str
) -> None:
    with pytest.raises(HeadscopeError, match=message):
        headscope.merge([root / name for name in given], out=tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_parts_of_other_texts_cuts_models_and_options_are_refused_by_name(
    tiny: Model, minilm: Model, parts: list[Path], tmp_path: Path, sample: list[str]
) -> None:
    other = {
        "are parts of studies of different texts": {"texts": sample[1:]},
        "is one of 3 parts and .* one of 4": {"shard": "2/4"},
        "differ in threshold: 0.3 and 0.4": {"threshold": 0.4},
        "differ in layers measured": {"layers": (0, 1)},
        "differ in special: keep and drop": {"special": "drop"},
    }
    for message, asked in other.items():
        small_study(tiny, tmp_path / "p", **{"max_windows": 170, "shard": "2/3", "overwrite": True, **asked})
        with pytest.raises(HeadscopeError, match=message):
            headscope.merge([parts[0], tmp_path / "p", parts[2]], out=tmp_path / "m")
    one = small_study(tiny, tmp_path / "tiny", max_windows=16)
    two = small_study(minilm, tmp_path / "minilm", max_windows=16)
    with pytest.raises(HeadscopeError, match=r"differ in model: .*tiny \(weights \w+\) and minilm \(weights \w+\)"):
        headscope.merge([one.folder, two.folder], out=tmp_path / "m")


def relabelled(study: Path, out: Path, **fields: object) -> Path:
    """A copy of a part whose study.json says otherwise, with a checksum that is right: a careful forger's."""
    shutil.copytree(study, out)
    path = out / "study.json"
    said = json.loads(path.read_text())
    changed = said | {name: said[name] | value if isinstance(value, dict) else value for name, value in fields.items()}
    path.write_text(json.dumps(changed | {"checksum": manifest_checksum(changed)}))
    return out


def test_a_part_under_the_number_of_another_is_refused(parts: list[Path], tmp_path: Path) -> None:
    """It would count twice."""
    twin = relabelled(parts[0], tmp_path / "twin", part={"number": 2})
    with pytest.raises(HeadscopeError, match="says it is part 2 of 3, but holds other windows than that part"):
        headscope.merge([parts[0], twin, parts[2]], out=tmp_path / "m")
    said = json.loads((parts[0] / "study.json").read_text())["shards"]
    moved = {str(int(number) + 1): value for number, value in said.items()}
    twin = relabelled(parts[0], tmp_path / "moved", part={"number": 2})
    changed = json.loads((twin / "study.json").read_text()) | {"shards": moved}
    (twin / "study.json").write_text(json.dumps(changed | {"checksum": manifest_checksum(changed)}))
    with pytest.raises(HeadscopeError, match="holds other windows than that part"):
        headscope.merge([parts[0], twin, parts[2]], out=tmp_path / "m")


def test_a_study_json_that_was_changed_is_refused(parts: list[Path], tmp_path: Path) -> None:
    shutil.copytree(parts[0], tmp_path / "p")
    path = tmp_path / "p" / "study.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(HeadscopeError, match=r"study\.json was changed after the study was finished"):
        headscope.merge([tmp_path / "p", *parts[1:]], out=tmp_path / "m")


@pytest.mark.parametrize("library", ["torch", "transformers", "nupunkt"])
def test_parts_made_with_other_versions_are_refused(parts: list[Path], tmp_path: Path, library: str) -> None:
    other = relabelled(parts[1], tmp_path / "p", versions={library: "1.2.3"})
    with pytest.raises(HeadscopeError, match=f"differ in version of {library}: .* and 1.2.3"):
        headscope.merge([parts[0], other, parts[2]], out=tmp_path / "m")


@pytest.mark.parametrize("name", ["arrays.safetensors", "rest.safetensors", "example.json"])
def test_a_damaged_part_is_refused(tiny: Model, parts: list[Path], tmp_path: Path, name: str) -> None:
    small_study(tiny, tmp_path / "p", max_windows=170, shard="1/3")
    content = bytearray((tmp_path / "p" / name).read_bytes())
    content[-1] ^= 1
    (tmp_path / "p" / name).write_bytes(content)
    with pytest.raises(HeadscopeError, match=rf"{name} is damaged"):
        headscope.merge([tmp_path / "p", *parts[1:]], out=tmp_path / "m")


def test_the_command_merges_and_refuses_to_write_over_a_study(parts: list[Path], tmp_path: Path) -> None:
    arguments = ["merge", *map(str, parts), "--out", str(tmp_path / "m")]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0
    assert "170 windows), merged from 3 folders" in " ".join(first.output.split())
    second = CliRunner().invoke(app, arguments)
    assert second.exit_code == 2
    assert "holds a finished study" in second.output
    manifest = json.loads((tmp_path / "m" / "study.json").read_text())
    assert manifest["merged"] == [str(part) for part in parts]


def test_merged_wholes_have_the_groups_of_texts_and_intervals_of_one_study(
    tiny: Model, tmp_path: Path, sample: list[str]
) -> None:
    texts = sample[:12]
    whole = small_study(tiny, tmp_path / "whole", max_windows=None, texts=texts)
    books = [small_study(tiny, tmp_path / f"{n}", max_windows=None, texts=[text]) for n, text in enumerate(texts)]
    assert books[0].intervals["groups"].max() < 8
    merged = headscope.merge([book.folder for book in books], out=tmp_path / "m")
    for name in whole.groups:
        np.testing.assert_allclose(merged.groups[name], whole.groups[name], rtol=1e-12, atol=1e-12, err_msg=name)
    assert merged.intervals["groups"].max() == 12
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(merged.intervals[name], whole.intervals[name], rtol=1e-9)


def test_a_null_study_is_not_merged_with_another(tiny: Model, tmp_path: Path, sample: list[str]) -> None:
    study = small_study(tiny, tmp_path / "s", max_windows=20, texts=sample[:4], maps="none")
    headscope.nulls(study.folder, tiny, sample[:4], progress=False)
    nulls = [study.folder / "nulls" / kind for kind in ("tokens", "sentences")]
    with pytest.raises(HeadscopeError, match="differ in null: tokens and sentences"):
        headscope.merge(nulls, out=tmp_path / "m")
