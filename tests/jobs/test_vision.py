"""Images: patches are the tokens, distance is on the grid, and what needs words is absent."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from transformers import ViTImageProcessorPil

import headscope
from headscope import HeadscopeError
from headscope.cli.app import app
from headscope.corpus.grid import Grid
from headscope.corpus.images import Images, are_images, read_images
from headscope.insight.findings import findings
from headscope.measure.accumulate import ShardOfMeasures
from headscope.model.families.small import FAMILIES, small_network
from headscope.model.loading import Model

pytestmark = pytest.mark.model
BY_NAME = {family.name: family for family in FAMILIES}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Networks this small only lose by sharing work among threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def model_of(name: str, seed: int = 0) -> Model:
    network = small_network(BY_NAME[name], seed)
    side = network.config.image_size
    return Model(network, ViTImageProcessorPil(size={"height": side, "width": side}), name)


@pytest.fixture(scope="module")
def pictures():
    return np.random.default_rng(0).integers(0, 256, (6, 40, 50, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def study(pictures, tmp_path_factory):
    out = tmp_path_factory.mktemp("vision") / "study"
    return headscope.study_images(model_of("ViT"), pictures, out=out, batch_size=4, progress=False)


def test_distance_is_measured_between_patches_and_not_along_the_row():
    apart = Grid(3, 4, before=2).distance
    assert np.isnan(apart[:2]).all()
    assert np.isnan(apart[:, :2]).all()
    assert apart[2, 2 + 4] == 1
    assert apart[2, 2 + 3] == 3
    assert apart[2, 2 + 11] == pytest.approx(np.hypot(2, 3))


def test_at_another_threshold_the_number_of_pairs_is_known_and_their_distance_is_not(study):
    at, lower = study.at(0.5), study.at(0.2)
    assert (at.heads["pairs"] <= lower.heads["pairs"]).all()
    assert abs(study.at(0.3).heads["pairs"] - study.heads["pairs"]).max() <= 1
    assert "mean_distance" in study.heads
    assert not {"mean_distance", "focal_share"} & {*at.heads}
    assert study.at(0.5).heads["attention_self"].equals(study.heads["attention_self"])
    assert "Range of heads" not in {finding.topic for finding in findings(at)}


def test_heads_are_measured_as_they_are_for_texts(study, pictures):
    """By hand, from the model's own attentions and its projections' inputs."""
    model = model_of("ViT")
    pixels = model.tokenizer(images=list(pictures), return_tensors="pt")["pixel_values"]
    outputs = []
    for name, module in model.network.named_modules():
        if name.endswith("attention.o_proj"):
            module.register_forward_pre_hook(lambda _, given: outputs.append(given[0]))
    model.network.set_attn_implementation("eager")
    with torch.no_grad():
        attentions = model.network(pixel_values=pixels, output_attentions=True).attentions
    assert study.grid == Grid(4, 4, before=1)
    first = [float(A[:, head, :, 0].mean()) for A in attentions for head in range(4)]
    assert np.allclose(study.heads["attention_to_first"], first, atol=1e-6)
    assert np.allclose(study.heads["attention_to_patch"], 1 - np.array(first), atol=1e-6)
    distances = []
    for Z in outputs:
        heads = Z.unflatten(-1, (4, -1)).transpose(1, 2)
        for head in range(4):
            found = []
            for z in heads[:, head]:
                C = (z @ z.T).triu(1).numpy()
                upper = np.triu_indices(17, 1)
                high = C[upper] > 0.3 * C[upper].max() if C[upper].max() > 0 else np.zeros(136, bool)
                found += [d for d in study.grid.distance[upper][high] if not np.isnan(d)]
            distances.append(np.mean(found))
    assert np.allclose(study.heads["mean_distance"], distances)


def test_what_needs_words_is_absent(study):
    for table in (study.heads, study.layers):
        assert not [name for name in table if "repeat" in name or "sentence" in name or "comma" in name]
        assert {"mean_distance", "focal_share", "attention_to_first", "attention_to_patch", "block_contrast"} <= set(
            table
        )
    assert not [name for name in study.arrays if "repeat" in name or "sentence" in name]
    assert study.arrays["attention_sum"].shape == (3, 4, 17, 17)


def test_dinov2_is_measured_too(pictures, tmp_path):
    asked = {"max_images": 3, "layers": (0, 2), "progress": False}
    study = headscope.study_images(model_of("DINOv2"), list(pictures), out=tmp_path / "dino", **asked)
    assert (study.windows, study.grid) == (3, Grid(3, 3, before=1))
    assert study.layers["layer"].tolist() == [0, 2]


def test_images_are_added_up_shard_by_shard_in_workers_and_in_parts(pictures, tmp_path, monkeypatch):
    """The same run that serves texts: shards, processes, parts and merging give one result."""
    model = model_of("ViT")
    asked = {"batch_size": 1, "progress": False, "threads": 1}
    monkeypatch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 2)
    whole = headscope.study_images(model, list(pictures), out=tmp_path / "whole", **asked)
    assert whole.manifest.run.windows_per_shard == 2
    headscope.study_images(model, list(pictures), out=tmp_path / "workers", workers=2, **asked)
    for number in (1, 2):
        out = tmp_path / f"part-{number}"
        headscope.study_images(model, list(pictures), out=out, shard=f"{number}/2", **asked)
    headscope.merge([tmp_path / "part-1", tmp_path / "part-2"], out=tmp_path / "merged")
    for other in ("workers", "merged"):
        for name in ("arrays.safetensors", "heads.csv", "layers.csv"):
            assert (tmp_path / other / name).read_bytes() == (whole.folder / name).read_bytes()


def test_a_study_of_images_that_was_stopped_goes_on(pictures, tmp_path, monkeypatch):
    model = model_of("ViT")
    monkeypatch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 2)
    asked = {"progress": False, "threads": 1}
    whole = headscope.study_images(model, list(pictures), out=tmp_path / "whole", **asked)
    taken: list[int] = []
    take = ShardOfMeasures.take

    def counting(shard, capture, batch, in_turn):
        if len(taken) == 2:
            raise KeyboardInterrupt
        taken.append(len(batch))
        take(shard, capture, batch, in_turn)

    monkeypatch.setattr(ShardOfMeasures, "take", counting)
    with pytest.raises(KeyboardInterrupt):
        headscope.study_images(model, list(pictures), out=tmp_path / "stopped", **asked)
    monkeypatch.setattr(ShardOfMeasures, "take", take)
    again = headscope.study_images(model, list(pictures), out=tmp_path / "stopped", **asked)
    for name in ("arrays.safetensors", "heads.csv", "layers.csv"):
        assert (again.folder / name).read_bytes() == (whole.folder / name).read_bytes()


def test_a_study_of_images_is_verified_drawn_reported_and_compared(study, pictures, tmp_path):
    assert [check for check in headscope.verify(study.folder) if check.problem] == []
    drawn = {path.stem for path in study.figures(tmp_path / "figures", formats=("png",), progress=False)}
    assert drawn == {"fig02", "fig10", "fig11", "spectrum", "atlas", "grid"}
    with pytest.raises(HeadscopeError, match="Figure 8 needs sentences, which images do not have"):
        study.figure(8)
    page = study.report(tmp_path / "report.html").read_text()
    assert "6 images of 4 x 4 patches" in page
    assert "sentence" not in page.split('id="definitions"')[1].split('id="cite"')[0].split("<dl")[1]
    other = headscope.study_images(model_of("ViT", seed=1), pictures, out=tmp_path / "other", progress=False)
    comparison = headscope.compare([study, other])
    assert comparison.claims.empty
    comparison.save(tmp_path / "compare.html")
    assert "patches" in (tmp_path / "compare.html").read_text()


def test_images_come_from_files_folders_and_arrays(tmp_path, pictures):
    for number, picture in enumerate(pictures[:2]):
        Image.fromarray(picture).save(tmp_path / f"{number}.png")
    np.save(tmp_path / "more.npy", pictures[2:])
    assert are_images([tmp_path])
    assert np.array_equal(np.stack(list(read_images(tmp_path))), pictures)
    assert np.array_equal(next(read_images([tmp_path / "1.png"])), pictures[1])
    (tmp_path / "notes.txt").write_text("words")
    assert not are_images([tmp_path])


def test_bad_images_are_refused_with_their_name(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"no image")
    with pytest.raises(HeadscopeError, match=r"broken\.png can't be read"):
        list(read_images(tmp_path))
    with pytest.raises(HeadscopeError, match=r"shape \(4, 4\)"):
        list(read_images(np.zeros((4, 4), dtype=np.uint8)))
    with pytest.raises(HeadscopeError, match="no image"):
        list(read_images([tmp_path / "nowhere"]))


def test_texts_and_images_are_not_mixed_up(tmp_path, pictures, tiny):
    with pytest.raises(HeadscopeError, match="tiny does not take images"):
        headscope.study_images(tiny, pictures, out=tmp_path / "no")
    with pytest.raises(HeadscopeError, match="takes images, not texts"):
        headscope.study(model_of("ViT"), ["Some text."], out=tmp_path / "no", length=10, progress=False)


@pytest.mark.model
def test_the_command_studies_a_folder_of_images_with_a_saved_model(tmp_path, pictures, capsys):
    model = model_of("ViT")
    model.network.save_pretrained(tmp_path / "vit")
    model.tokenizer.save_pretrained(tmp_path / "vit")
    (tmp_path / "photos").mkdir()
    Image.fromarray(pictures[0]).save(tmp_path / "photos" / "a.png")
    out = tmp_path / "out"
    command = ["study", str(tmp_path / "photos"), "--model", str(tmp_path / "vit"), "--out", str(out)]
    assert app(command, standalone_mode=False) == 0
    assert "1 image of 4 x 4 patches" in capsys.readouterr().out
    said = json.loads((out / "study.json").read_text())
    assert said["images"]["grid"] == {"rows": 4, "columns": 4, "before": 1}
    assert pd.read_parquet(out / "heads.parquet").shape[0] == 12
    assert app(command, standalone_mode=False) == 2
    assert headscope.read(out).grid == Grid(4, 4, before=1)
    assert (out / "report.html").is_file()


@pytest.mark.model
def test_the_doctor_looks_at_vision_models_too():
    [diagnosis] = headscope.doctor(model_of("DINOv2"))
    assert diagnosis.right


def test_the_figure_shows_distance_and_attention_by_layer(study):
    near, first = study.figure("grid").axes
    assert near.lines[0].get_ydata().tolist() == study.layers["mean_distance"].tolist()
    assert first.lines[0].get_ydata().tolist() == study.layers["attention_to_first"].tolist()


def test_images_that_can_not_be_read_are_passed_over_where_that_is_asked_for(tmp_path, pictures):
    for number, picture in enumerate(pictures[:3]):
        Image.fromarray(picture).save(tmp_path / f"{number}.png")
    (tmp_path / "1.png").write_bytes(b"no image")
    asked = {"out": tmp_path / "s", "progress": False}
    with pytest.raises(HeadscopeError, match=r"1\.png can't be read as an image"):
        headscope.study(model_of("ViT"), Images(str(tmp_path)), **asked)
    study = headscope.study(model_of("ViT"), Images(str(tmp_path), skip_bad=True), **asked)
    assert (study.windows, study.manifest.counts.unreadable_records_left_out) == (2, 1)


@pytest.mark.parametrize("stack", [None, "vision"])
def test_both_towers_of_a_model_are_measured(tmp_path, pictures, stack):
    from transformers import CLIPConfig, CLIPModel

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    network = CLIPModel(CLIPConfig(text_config=sizes, vision_config=sizes | {"image_size": 24, "patch_size": 8})).eval()
    model = Model(network, None, "clip", image_processor=ViTImageProcessorPil(size={"height": 24, "width": 24}))
    study = headscope.study_images(model, pictures, out=tmp_path / "s", stack=stack, progress=False)
    assert (study.grid, study.manifest.model.stack) == (Grid(3, 3, before=1), "vision")
    assert study.manifest.model.proof.layers == 2
    with pytest.raises(HeadscopeError, match="does not take images with stack='text'"):
        headscope.study_images(model, pictures, out=tmp_path / "no", stack="text", progress=False)
