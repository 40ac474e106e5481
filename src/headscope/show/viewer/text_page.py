"""One text inside the viewer's page, beside a study where there is one."""

from __future__ import annotations

from headscope.folder.study_folder import StudyFolder
from headscope.insight.about_heads import about_study_beside
from headscope.one_text.describing import about_view
from headscope.one_text.telling import Place
from headscope.one_text.view import OneText
from headscope.show.viewer.of_study import pack_study
from headscope.show.viewer.packing import pack
from headscope.show.viewer.page import page


def text_page(view: OneText, place: Place, study: StudyFolder | None, without_scripts: str) -> str:
    """The whole page, opened at one head. without_scripts: HTML, see `page.page`."""
    beside = None if study is None else about_study_beside(view, study)
    shown = {
        "text": {**pack(view), "aboutStudy": beside, "open": place},
        "study": None if study is None else pack_study(study),
    }
    return page(f"headscope · {about_view(view)}", "One text, every head", shown, without_scripts)
