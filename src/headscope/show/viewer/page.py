"""The viewer as one page: its style, its script and what it shows are inside; it asks for nothing but its server."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

MODULES = ("dom", "colour", "data", "study", "saving", "maps", "tokens", "atlas", "tables", "pane", "server", "main")
"""Of the script, each after those that it imports."""
_IMPORT = re.compile(r"^import .*;\n", re.M)
_EXPORT = re.compile(r"^export ", re.M)
FILES = resources.files("headscope.show.viewer")


def page(title: str, heading: str, shown: dict[str, Any], without_scripts: str = "") -> str:
    """shown: `text`, what `packing.pack` made; `study`, of `of_study.pack_study`; or `server`, what one can do.

    without_scripts: HTML that stands in for the viewer where scripts are blocked.
    """
    return _environment().get_template("viewer.html").render(
        title=title,
        heading=heading,
        policy=policy("server" in shown, bool(without_scripts)),
        style=Markup(style()),
        script=Markup(script()),
        data=shown,
        without_scripts=Markup(without_scripts),
    )  # fmt: skip


def policy(server: bool = False, static: bool = False) -> str:
    """The Content-Security-Policy: this script and this style, nothing from elsewhere. static: what stands in for the
    viewer has styles of its own."""
    styles = "'unsafe-inline'" if static else f"'sha256-{_hash(style())}'"
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {script_source()}",
            f"style-src {styles}",
            "img-src data: blob:",
            *(["connect-src 'self'"] if server else []),
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def script_source() -> str:
    """What a page that the viewer is embedded in must allow to run."""
    return f"'sha256-{_hash(script())}'"


def frame(page: str, title: str) -> str:
    """The page within another one or a notebook's cell, cut off from what is around it."""
    style = "width: 100%; height: 60rem; border: 0; resize: vertical; overflow: auto"
    return (
        f'<iframe title="{html.escape(title)}" sandbox="allow-scripts allow-downloads" loading="lazy" '
        f'style="{style}" srcdoc="{html.escape(page)}"></iframe>'
    )


@cache
def script() -> str:
    """The modules as one script: a page that is opened from a file can't load them one by one."""
    parts = [_EXPORT.sub("", _IMPORT.sub("", (FILES / "script" / f"{name}.js").read_text("utf-8"))) for name in MODULES]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


@cache
def style() -> str:
    return (FILES / "viewer.css").read_text("utf-8")


def _hash(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii")


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("headscope.show.viewer", ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
