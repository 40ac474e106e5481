"""The notebooks in examples/ run from top to bottom, without a warning, and show what they say."""

from __future__ import annotations

import base64
from pathlib import Path

import nbclient
import nbformat
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.model
@pytest.mark.slow
def test_from_a_table_to_a_finding_with_its_interval(tmp_path: Path) -> None:
    notebook = nbformat.read(EXAMPLES / "from-table-to-finding.ipynb", 4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) <= 10
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in code for output in cell.outputs]
    assert not [output for output in outputs if "arning" in output.get("text", "")]
    shown = [output["data"] for output in outputs if "data" in output]
    [picture] = [data["image/png"] for data in shown if "image/png" in data]
    assert base64.b64decode(picture).startswith(b"\x89PNG")
    [finding] = [output["text"] for output in outputs if output.get("name") == "stdout"]
    assert "95 % interval" in finding
    pages = [data["text/html"] for data in shown if "text/html" in data]
    assert any("160 windows of 128 tokens" in page for page in pages)
