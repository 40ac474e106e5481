"""What a study shows, in sentences computed from its numbers.

Each finder is a small pure function of the study. Its finding says what the numbers support and changes its words with
them; it is absent where there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable

from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.insight.findings import about_attention, about_pairs, about_values
from headscope.insight.findings.about_values import GAP, value_shares
from headscope.insight.findings.finding import Finding, Quantity, held_against, ordered

__all__ = ["FINDERS", "GAP", "Finding", "Quantity", "findings", "gathered", "ordered", "value_shares"]

FINDERS: tuple[Callable[[StudyFolder], Finding | None], ...] = (
    about_attention.punctuation,
    about_pairs.same_sentence,
    about_pairs.repeats,
    about_values.signal,
    about_attention.carried,
    about_pairs.distance_by_depth,
    about_pairs.distant_repeats,
    about_attention.lines,
    about_attention.first_token,
    about_attention.special_tokens,
    about_values.blocks,
    about_attention.neighbours,
    about_pairs.focal,
    about_pairs.unique_focal,
    about_pairs.distance_of_heads,
    about_values.spectrum,
    about_values.mean_vector,
    about_values.crowded,
    about_pairs.silent,
)


def findings(study: StudyFolder) -> list[Finding]:
    """The most telling first, see `Finding.rank`; each held against the null studies that lie in the folder."""
    return ordered(gathered(study))


def gathered(study: StudyFolder) -> list[Finding]:
    """In the order of `FINDERS`. Those that need high pairs are absent where a model has none, and those that need what
    the study does not have: words, where it is of images, or what its version did not keep."""
    found = []
    for find in FINDERS:
        try:
            finding = find(study)
        except AbsentError:
            continue
        if finding is not None:
            found.append(held_against(study, finding, study.nulls))
    return found
