"""What a helper does, see `helpers`: it reads jobs from its input and writes what they return to its output."""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress
from typing import Any

from headscope.garbage import without_collecting


def serve() -> None:
    """Answer until there is nobody who asks."""
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints is no answer
    with answers, suppress(EOFError):
        folder, threshold = pickle.load(asked)
        with without_collecting():
            from headscope.show import figures as figures
            from headscope.show.objects import read
        study = read(folder)
        if threshold is not None:
            study = study.at(threshold)
        while True:
            function, given = pickle.load(asked)
            answer: tuple[bool, Any]
            try:
                answer = True, function(study, *given)
            except Exception:
                answer = False, None
            pickle.dump(answer, answers)
            answers.flush()


if __name__ == "__main__":
    serve()
