"""headscope verify"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """[bold]Example[/bold]\n
headscope verify wiki   [dim]exit code 0: all is right; 1: something is wrong; 2: not a study; 74: output lost[/dim]"""


def command(folder: Annotated[Path, typer.Argument(help="The study folder.")]) -> int:
    """Check that a study folder is whole, and that its tables follow from its arrays."""
    from rich.markup import escape
    from rich.table import Table

    from headscope.console import console
    from headscope.folder.verifying import verify

    checks = verify(folder)
    table = Table(box=None, show_header=False, pad_edge=False)
    for check in checks:
        mark = "[green]right[/green]" if check.checked else "[dim]not checked[/dim]"
        mark = mark if check.problem is None else "[red]wrong[/red]"
        table.add_row(mark, check.what, escape(check.problem or check.note or ""))
    console().print(table)
    return 1 if any(check.problem for check in checks) else 0
