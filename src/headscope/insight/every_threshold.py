"""What a study says at every threshold, beside what it says at its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from headscope.folder.study_folder import StudyAt, StudyFolder
from headscope.insight.findings import Finding, gathered, ordered
from headscope.measure.bins import THRESHOLDS


@dataclass(frozen=True)
class EveryThreshold:
    """studies: at each of `THRESHOLDS`, pooled over pairs. own: the findings at the threshold of the study; there:
    those at each; both in the order of the finders."""

    studies: Sequence[StudyAt]
    own: list[Finding]
    there: list[list[Finding]]

    @cached_property
    def moving(self) -> set[str]:
        """Topics of which something else is said at another threshold, or nothing."""
        topics = {finding.topic for found in self.there for finding in found}
        told = {topic: {_said(found).get(topic) for found in self.there} for topic in topics}
        return {topic for topic, versions in told.items() if len(versions) > 1}

    @property
    def only_own(self) -> list[str]:
        """Topics of which nothing is known at other thresholds."""
        elsewhere = {finding.topic for found in self.there for finding in found}
        return [finding.topic for finding in self.own if finding.topic not in elsewhere]

    def at(self, place: int) -> list[Finding]:
        """All that can be said at one of the thresholds, the most telling first: of topics that move what is said
        there, of all others what the study says anyway."""
        moving, there = self.moving, self.there[place]
        told = [finding for finding in self.own if finding.topic not in moving]
        for number, finding in enumerate(there):
            if finding.topic in moving:
                before = [other.topic for other in there[:number]]
                after = [place for place, other in enumerate(told) if other.topic in before]
                told.insert(max(after, default=-1) + 1, finding)
        return ordered(told)


def at_every_threshold(study: StudyFolder) -> EveryThreshold:
    everywhere = [study.at(threshold) for threshold in THRESHOLDS]
    return EveryThreshold(everywhere, gathered(study), [gathered(there) for there in everywhere])


def _said(found: list[Finding]) -> dict[str, Finding]:
    return {finding.topic: finding for finding in found}
