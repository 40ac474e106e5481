"""What the page says: gathered from the study, then put into the template."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from markupsafe import Markup

from headscope.corpus.null_kinds import CALLED
from headscope.errors import HeadscopeError
from headscope.folder.array_file import AbsentError
from headscope.folder.manifest import Manifest
from headscope.folder.study_folder import StudyAt, StudyFolder
from headscope.insight.beside import ends_of
from headscope.insight.claims import claims, heading, is_paper_model
from headscope.insight.every_threshold import at_every_threshold
from headscope.insight.findings import Finding, findings
from headscope.insight.notices import notices
from headscope.insight.sources import sources_used
from headscope.insight.stability import stability
from headscope.insight.verdicts import VERDICTS
from headscope.measure.catalogue import columns
from headscope.measure.declaration import Column
from headscope.show.helpers import Helpers
from headscope.show.report.importance import importance_shown
from headscope.show.report.pictures import drawing
from headscope.show.report.roles import roles_shown
from headscope.show.report.slider import at_thresholds, slider
from headscope.show.report.tables import columns_of, nulls_of
from headscope.show.viewer.page import frame, script_source
from headscope.show.viewer.text_page import text_page
from headscope.wording import capital, counted, listed, model_label, percent, ranges

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = resources.files("headscope.show.report") / "templates"

PAPER_BIBTEX = """@article{halevi2026selfattention,
  title   = {Self-attention vector output similarities reveal how machines pay attention},
  author  = {Halevi and Tzach and Gross and Rosner and Kanter},
  journal = {Physica A},
  volume  = {686},
  pages   = {131363},
  year    = {2026},
  note    = {arXiv:2512.21956}
}"""

OPTION_LABELS = {
    "length": "Tokens in a window",
    "threshold": "A pair is high above",
    "line_threshold": "A line is above",
    "windows": "Windows of a text",
    "short": "Shorter windows",
    "special": "Special tokens in pairs",
    "similarity": "Outputs are compared by",
    "sentences": "Sentences are found by",
    "max_windows": "Most windows",
    "sample": "Windows drawn",
    "layers": "Layers",
    "batch_size": "Batch",
    "seed": "Seed",
}


MARKS = {"tokens": "▲", "sentences": "◆", "weights": "●"}
"""What stands for each null study in bars."""


def page(study: StudyFolder, *, progress: bool = False, helpers: Helpers | None = None) -> str:
    """The whole page. helpers: who draw its figures, while what it says is gathered here."""
    study.check_not_empty()
    common = _common(study)
    with drawing(study, common["findings"], progress, helpers) as finish:
        texts = study.manifest.kind == "texts"
        gathered = {
            "claims": claims(study) if texts else [],
            "claims_heading": heading(study),
            "left_out": _left_out(study) if isinstance(study, StudyAt) else [],
            "example": _example(study),
            "sources": sources_used(study.manifest.source, None),
            "heads": columns_of(study.heads, study.manifest.gives, ends_of(study, "heads"), nulls_of(study, "heads")),
            "roles": roles_shown(study) if texts else None,
            "ablation": importance_shown(study),
            "stability": _stability(study),
            "terms": _terms(study),
        }
        moving = at_thresholds(study)
        templates = environment()
        whole, parts = templates.get_template("page.html"), cast(Any, templates.get_template("parts.html").module)
        drawn = finish()

    def findings_html(told: list[Finding], only_own: list[str]) -> str:
        return str(parts.findings_list(told, drawn, only_own, study.manifest.options.threshold))

    script, style = (TEMPLATES / "page.js").read_text("utf-8"), (TEMPLATES / "page.css").read_text("utf-8")
    return whole.render(
        **common,
        **gathered,
        verdicts=VERDICTS,
        pictures=drawn,
        in_paper={picture.number for picture in drawn.of_paper},
        slider=None if moving is None else slider(study, moving, findings_html),
        cite=[("The method", PAPER_BIBTEX), ("The software", software_bibtex(study))],
        style=style,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
        viewer_source=script_source(),
    )


def summary(study: StudyFolder) -> str:
    """For notebooks: what was run, findings, the layers. Static, escaped, styled by itself alone."""
    return environment().get_template("summary.html").render(**_common(study))


def environment() -> Environment:
    """Everything that comes from outside is escaped; a name that is missing is an error, not a blank."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("headscope.show.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["amount"] = amount
    made.filters["part"] = part
    made.filters["capital"] = capital
    made.globals["called"] = CALLED
    made.globals["marks"] = MARKS
    made.filters["unbroken"] = lambda sentence: sentence.replace(" %", "\u00a0%")
    return made


def amount(value: float, finding: Finding) -> str:
    """A finding's number or its chance, in its unit."""
    if finding.unit == "share":
        return percent(value)
    return f"{value:+.2f}" if finding.unit == "difference" and value else f"{value:.1f}"


def part(value: float, finding: Finding) -> float:
    """How far along its bar a finding's number or that of a rival stands."""
    return round(min(max(value / finding.full, 0), 1), 3)


def software_bibtex(study: StudyFolder) -> str:
    version = study.manifest.headscope
    return (
        "@software{headscope,\n"
        "  title   = {headscope: what every attention head of a transformer puts out},\n"
        "  author  = {{The headscope developers}},\n"
        f"  version = {{{version}}},\n"
        f"  year    = {{{(study.manifest.finished or '')[:4]}}}\n"
        "}"
    )


def _common(study: StudyFolder) -> dict[str, Any]:
    return {
        "study": study,
        "name": model_label(study.model_name),
        "facts": facts(study),
        "findings": findings(study),
        "nulls": [name for name in MARKS if name in study.nulls],
        "notices": notices(study),
        "layers": columns_of(study.layers, study.manifest.gives, ends_of(study, "layers"), nulls_of(study, "layers")),
        "paper_model": is_paper_model(study),
    }


_CARRIED = {
    "projection": "weights times lengths of values as the output projection maps them",
    "value": "weights times lengths of values as they are",
}


def _stability(study: StudyFolder) -> list[list[str]]:
    """A row of headings, then a row for each column that is shown first; empty where there are too few texts."""
    try:
        table = stability(study)
    except AbsentError:
        return []
    known = columns(study.manifest.gives)
    rows = [["", "halves", "fifths", "top tenth kept, %", "heads that stay in it"]]
    for row in table.to_dict("records"):
        term, kept = known[row["column"]], row["heads_kept"]
        if term.overview:
            shares = [row["halves"], row["fifths"], 100 * row["top_tenth_kept"]]
            formats = ("{:.2f}", "{:.2f}", "{:.0f}")
            numbers = ["–" if np.isnan(n) else form.format(n) for n, form in zip(shares, formats, strict=True)]
            named = ", ".join(f"{layer}:{head}" for layer, head in kept[:8]) + (" …" if len(kept) > 8 else "")
            rows.append([term.label, *numbers, named])
    return rows


def facts(study: StudyFolder) -> dict[str, dict[str, str]]:
    """What was run: title of a block -> label -> value; what an older version did not keep is left out."""
    manifest = study.manifest
    model, source, counts, part = manifest.model, manifest.source, manifest.counts, manifest.part
    left_out = {
        "Shorter windows left out": counts.short_windows_left_out,
        "Later windows left out": counts.later_windows_left_out,
        "Texts without a window": counts.texts_without_window,
        "Unusable records left out": counts.unreadable_records_left_out,
        "Other files in the folders, left out": counts.other_files_left_out,
    }
    wide = f" × {model.head_width} wide" if model.head_width else ""
    blocks: dict[str, dict[str, str | None]] = {
        "Model": {
            "Name": model.name,
            "Architecture": f"{model.architecture} ({model.family})" if model.architecture else None,
            "Shape": f"{model.layers} layers × {model.heads} heads{wide}",
            "Stack": model.stack,
            "Precision": model.dtype,
            "Heads": model.proof.sentence if model.proof else None,
            "Layers without attention": _others(model.other_layers) if model.other_layers else None,
            "What attention carries": _CARRIED.get(model.carried_by or ""),
            "Weights, SHA-256": model.weights_sha256,
        },
        manifest.kind.capitalize(): {
            "Source": source.name,
            manifest.kind.capitalize(): f"{counts.texts:,}",
            "Windows": f"{counts.windows:,}" if manifest.kind == "texts" else None,
            "Drawn by seed from": _drawn_from(manifest),
            "Tokens in a window, on average": _mean_tokens(manifest),
            "Files not reached": f"{source.files_not_reached:,}" if source.files_not_reached else None,
            "Only part": f"{part.number} of {part.of}" if part is not None else None,
            **{label: f"{count:,}" for label, count in left_out.items() if count},
            f"{manifest.kind.capitalize()}, SHA-256": source.sha256,
            "Windows, SHA-256": source.windows_sha256,
        },
        "Options": {
            OPTION_LABELS.get(name, name): _option(name, value)
            for name, value in manifest.options.as_dict().items()
            if value is not None and name != "stack"
        },
        "Run": {
            "Finished": manifest.finished and manifest.finished.replace("T", " ").replace("+00:00", " UTC"),
            "Time": f"{manifest.seconds:,.0f} s on {manifest.run.device}" if manifest.seconds is not None else None,
            "headscope": manifest.headscope,
            **manifest.versions,
        },
    }
    return {
        title: {label: value for label, value in block.items() if value is not None} for title, block in blocks.items()
    }


def _drawn_from(manifest: Manifest) -> str | None:
    """Of a sample."""
    drawn_from = manifest.counts.windows_drawn_from
    return None if drawn_from is None else f"{counted(drawn_from, 'window')} of all texts"


def _mean_tokens(manifest: Manifest) -> str | None:
    """Where it is not the length of a window."""
    windows, tokens = manifest.counts.windows, manifest.counts.window_tokens
    if tokens is None or tokens == windows * manifest.options.length:
        return None
    return f"{tokens / windows:.0f}, the rest is padding"


def _left_out(study: StudyAt) -> list[str]:
    """Of a page at another threshold: what it lacks, beside figures, which say so themselves."""
    lost = [
        column.label
        for name, column in columns(study.manifest.gives).items()
        if any(name in getattr(study.own, table) and name not in getattr(study, table) for table in ("heads", "layers"))
    ]
    topics = [f"“{topic}”" for topic in at_every_threshold(study.own).only_own]
    told = [("columns", lost), ("findings", topics)]
    return [f"The {what} {listed(names)}" for what, names in told if names]


def _others(layers: dict[str, str]) -> str:
    """Layer numbers by what they are."""
    kinds: dict[str, list[int]] = {}
    for number, what in layers.items():
        kinds.setdefault(what, []).append(int(number))
    return "; ".join(f"{ranges(sorted(numbers))} ({what})" for what, numbers in kinds.items())


def _terms(study: StudyFolder) -> dict[str, Column]:
    """The columns that this study has."""
    written = {*study.heads.columns, *study.layers.columns}
    return {name: column for name, column in columns(study.manifest.gives).items() if name in written}


def _option(name: str, value: Any) -> str:
    if name == "layers":
        return ", ".join(map(str, value))
    return {"keep": "take part", "drop": "left out"}[value] if name == "special" else str(value)


def _example(study: StudyFolder) -> dict[str, Any] | None:
    """The text that figures of one text show."""
    try:
        view = study.example
    except HeadscopeError:
        return None
    place = view.telling_heads(count=1)[0]
    inside = text_page(view, place, study, "<p>Figures of this text stand in the report itself.</p>")
    return {
        "origin": view.origin,
        "text": view.text,
        "continues": view.continues,
        "viewer": Markup(frame(inside, "Every head on this text")),
    }
