"""The one exception that users meet."""

from headscope.speaking import for_commands, for_python
from headscope.wording import named

LONGEST = 900


class HeadscopeError(Exception):
    """Something is wrong with what was asked for or given.

    The message is one sentence that names the file, line or option and says what to do. As a string it speaks Python;
    the command line prints `typed`, without a traceback, and exits with code 2. sentence: with what is written
    differently in both (see `speaking`), to be part of another.

    >>> str(HeadscopeError("There is no file notes.txt; check the path."))
    'There is no file notes.txt; check the path.'
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence

    def __str__(self) -> str:
        return printable(for_python(self.sentence))

    @property
    def typed(self) -> str:
        return printable(for_commands(self.sentence))


def printable(sentence: str) -> str:
    """One line that is safe to print: a file name or a manifest may hold what steers a terminal.

    >>> printable("no file \x1b[31m here")
    'no file �[31m here'
    """
    line = "".join(letter if letter.isprintable() else "�" for letter in " ".join(named(sentence).split()))
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def shortened(reason: str, most: int = 300) -> str:
    return reason if len(reason) <= most else reason[: most - 1] + "…"
