"""The one exception that users meet."""

from headscope.wording import named

LONGEST = 900


class HeadscopeError(Exception):
    """Something is wrong with what was asked for or given.

    The message is one sentence that names the file, line or option and says what to do.
    The command line prints it without a traceback and exits with code 2.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


def printable(sentence: str) -> str:
    """One line that is safe to print: a file name or a manifest may hold what steers a terminal.

    >>> printable("no file \x1b[31m here")
    'no file �[31m here'
    """
    line = "".join(letter if letter.isprintable() else "�" for letter in " ".join(named(sentence).split()))
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def shortened(reason: str, most: int = 300) -> str:
    return reason if len(reason) <= most else reason[: most - 1] + "…"
