"""The recipe of CONTRIBUTING, performed: one new file and one name make a measure that is known everywhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import headscope

TOP = Path(__file__).parents[2]
OLD = TOP / "tests" / "data" / "version-0.1.0" / "texts"

TRY = """
import sys
from contextlib import nullcontext
import numpy as np
import headscope
from headscope.show.report import content
from headscope.show.report.pictures import Pictures

content.drawing = lambda *_: nullcontext(Pictures)  # drawing takes long, and is tested elsewhere
model, out, old = sys.argv[1:]
study = headscope.study(model, out=out, length=16, max_windows=4, progress=False, threads=1)
high = study.arrays["high_count"]
pairs = np.triu(high).sum((2, 3))
by_hand = np.array([[np.trace(head, 1) for head in layer] for layer in high]) / np.where(pairs, pairs, np.nan)
np.testing.assert_array_equal(study.heads["adjacent_share"], by_hand.reshape(-1))
assert "adjacent_share" in study.layers
assert "side by side" in headscope.columns()["adjacent_share"].definition
assert study.manifest.tables["heads"][5] == "mean_distance"
page = study.report().read_text()
assert 'data-column="adjacent_share"' in page and "tokens that stand side by side" in page
assert "adjacent_share" in headscope.inspect(model, "A cat. A dog.").summary()
assert not [check for check in headscope.verify(out) if check.problem]

before = headscope.read(old)
assert "adjacent_share" not in before.heads
assert not [check for check in headscope.verify(old) if check.problem]
before.report()
print("done")
"""


def test_a_new_measure_is_one_new_file_and_one_name(tiny_folder: Path, tmp_path: Path) -> None:
    package = Path(shutil.copytree(Path(headscope.__file__).parent, tmp_path / "headscope"))
    measures = package / "measure" / "measures"
    recipe = (TOP / "CONTRIBUTING.md").read_text("utf-8")
    [code] = re.findall(r"```python\n(.*?)```", recipe, flags=re.S)
    (measures / "adjacent.py").write_text(code)
    names = (measures / "__init__.py").read_text()
    (measures / "__init__.py").write_text(names.replace('    "distance",\n', '    "distance",\n    "adjacent",\n'))
    old = shutil.copytree(OLD, tmp_path / "old")
    run = subprocess.run(
        [sys.executable, "-c", TRY, str(tiny_folder), str(tmp_path / "s"), str(old)],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.stdout.endswith("done\n"), run.stderr
