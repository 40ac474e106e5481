"""Reading a study needs neither torch nor transformers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OLD = Path(__file__).parents[1] / "data" / "version-0.1.0"
HEAVY = ("torch", "transformers", "nupunkt")


def imported_by(code: str, *arguments: Path) -> set[str]:
    """The heavy libraries that are imported once some code has run in a new process."""
    asked = f"import sys\n{code}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", asked, *map(str, arguments)], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    return set(run.stdout.splitlines()[-1].split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "import headscope; headscope.read(sys.argv[1]).heads",
        "import headscope; headscope.read(sys.argv[1]).figures(progress=False, formats=('png',))",
        "import headscope; headscope.read(sys.argv[1]).report()",
        "import headscope; headscope.read(sys.argv[1])._repr_html_()",
        "import headscope; headscope.verify(sys.argv[1])",
        "import headscope; headscope.compare([sys.argv[1], sys.argv[2]]).save(sys.argv[1] + '/c.html')",
        "import headscope; headscope.merge([sys.argv[1], sys.argv[2]], out=sys.argv[1] + '/both')",
        "import headscope; headscope.claims(sys.argv[1], sys.argv[2])",
        "from headscope.cli.app import app; app(['reproduce', sys.argv[1]], standalone_mode=False)",
        "from headscope.cli.app import app; app(['--help'], standalone_mode=False)",
    ],
)
def test_reading_imports_nothing_heavy(tmp_path: Path, code: str) -> None:
    folders = [Path(shutil.copytree(OLD / name, tmp_path / name)) for name in ("texts", "other-texts")]
    assert imported_by(code, *folders) == set()
