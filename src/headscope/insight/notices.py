"""What a reader must know before believing a number: of the model, the tokenizer, the texts."""

from __future__ import annotations

from headscope.corpus.sentences import few_sentences
from headscope.corpus.windows import unknown_notice
from headscope.folder.manifest import checksum_is_right
from headscope.folder.study_folder import StudyAt, StudyFolder
from headscope.insight.choices import is_random
from headscope.insight.sureness import too_few_texts
from headscope.wording import counted


def notices(study: StudyFolder) -> list[str]:
    """One sentence each; mostly none."""
    counts = study.manifest.counts
    found = [*study.manifest.notices]
    if is_random(study):
        found.append("The weights are random: whatever is found here is built into the model, not learned.")
    if checksum_is_right(study.folder) is False:
        found.append("study.json was changed after the study was finished; what it says may not be what was run.")
    if counts.tokens is not None and counts.unknown_tokens is not None:
        found.append(unknown_notice(counts.tokens, counts.unknown_tokens) or "")
    if counts.pairs_cut:
        found.append(
            f"{counted(counts.pairs_cut, 'pair')} of {counts.windows:,} did not fit into a window, and lost tokens at "
            "the end of the longer text; a greater length cuts fewer."
        )
    found.append(too_few_texts(study) or "")
    if study.manifest.kind == "texts":
        found.append(few_sentences(counts.windows_in_one_sentence, counts.windows) or "")
    if isinstance(study, StudyAt):
        found.append(
            f"Read at the threshold {study.high.threshold:g}; the study was run with "
            f"{study.own.manifest.options.threshold:g}. Shares and distances of high pairs are pooled over the pairs "
            "of all windows, not means over windows, and have no intervals. What is known at the study's own threshold "
            "alone is left out."
        )
    return [sentence for sentence in found if sentence]
