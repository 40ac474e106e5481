"""Numbers and names in words: how findings, claims and the report say them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

_BIDI_CONTROLS = range(0x202A, 0x202F), range(0x2066, 0x206A)
_UNDECODED = re.compile("[\udc80-\udcff]")
"""What Python makes of a byte in a file name that is not UTF-8."""


def percent(share: float) -> str:
    """Whole percent, with a decimal near 0 and 100.

    >>> percent(0.444), percent(0.012)
    ('44 %', '1.2 %')
    """
    exact = abs(share) < 0.0995 or 0.995 <= share < 0.9995
    return f"{share * 100:.1f} %" if exact else f"{share * 100:.0f} %"


def times(ratio: float) -> str:
    """
    >>> times(12.6), times(1.53)
    ('13 times', '1.5 times')
    """
    return f"{ratio:,.0f} times" if ratio >= 9.95 else f"{ratio:.1f} times"


def ranged(value: float, low: float | None, high: float | None, unit: str) -> str:
    """A number with the ends of its interval, where there is one.

    >>> ranged(0.16, 0.144, 0.176, "share"), ranged(0.012, 0.011, 0.0131, "share"), ranged(12.31, None, None, "tokens")
    ('16 % (14 to 18)', '1.2 % (1.1 to 1.3)', '12.3')
    >>> ranged(-0.001, None, None, "difference")
    '0.00'
    """
    digits = 2 if unit == "difference" else 1 if abs(value) < 1000 else 0
    if unit == "share":
        shown = percent(value)
        digits = 1 if "." in shown else 0
        scale = 100
    else:
        shown, scale = f"{round(value, digits) + 0.0:,.{digits}f}", 1
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return shown
    ends = (f"{end * scale:,.{digits}f}" for end in (low, high))
    return f"{shown} ({' to '.join(ends)})"


def counted(number: int, what: str) -> str:
    """
    >>> counted(1, "text"), counted(2595, "text")
    ('1 text', '2,595 texts')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def in_words(layers: Sequence[int]) -> str:
    """Layers, told as a range where they are one.

    >>> in_words([5, 6, 7]), in_words([3]), in_words([3, 7])
    ('layers 5 to 7', 'layer 3', 'layers 3 and 7')
    """
    if len(layers) == 1:
        return f"layer {layers[0]}"
    if len(layers) > 2 and list(layers) == list(range(layers[0], layers[-1] + 1)):
        return f"layers {layers[0]} to {layers[-1]}"
    return f"layers {', '.join(map(str, layers[:-1]))} and {layers[-1]}"


def head_name(head: tuple[int, int]) -> str:
    """A layer and a head of it.

    >>> head_name((11, 8))
    'layer 11, head 8'
    """
    return f"layer {head[0]}, head {head[1]}"


def model_label(name: str) -> str:
    """What a heading calls a model: a folder by its last part, a hub id whole.

    >>> model_label("/models/gte-small"), model_label("thenlper/gte-small")
    ('gte-small', 'thenlper/gte-small')
    """
    return Path(name).name or name if name.startswith(("/", ".", "~")) else name


def named(path: object) -> str:
    """The name of a file as it is shown and kept: a byte that is not UTF-8 by its number.

    >>> print(named("caf" + chr(0xDCE9) + ".txt"))
    caf\\xe9.txt
    """
    return _UNDECODED.sub(lambda byte: f"\\x{ord(byte[0]) - 0xDC00:02x}", str(path))


def visible(text: str) -> str:
    """Without characters that steer a terminal or turn the direction of what follows; a dot stands for each."""
    return "".join("·" if _steers(character) else character for character in named(text))


def _steers(character: str) -> bool:
    if unicodedata.category(character) in ("Cc", "Cs"):
        return character not in "\n\t"
    return any(ord(character) in controls for controls in _BIDI_CONTROLS)


def capital(words: str) -> str:
    return words[0].upper() + words[1:]


def against_chance(value: float, chance: float) -> Literal["above", "near", "below"]:
    """Near is within a tenth of chance.

    >>> against_chance(0.46, 0.25), against_chance(0.26, 0.25)
    ('above', 'near')
    """
    if value > 1.1 * chance:
        return "above"
    return "below" if value < 0.9 * chance else "near"


def listed(names: Sequence[str]) -> str:
    """
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def ranges(numbers: Sequence[int]) -> str:
    """
    >>> ranges([0, 1, 2, 5])
    '0-2, 5'
    """
    told: list[list[int]] = []
    for number in numbers:
        if told and told[-1][-1] == number - 1:
            told[-1].append(number)
        else:
            told.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in told)


_QUOTED = re.compile("“[^”]*”")

LONGEST_LABEL = 24
LONGEST_PIECE = 200


def short(label: str, most: int = LONGEST_LABEL) -> str:
    """The beginning of a label, on one line.

    >>> short("constabulary", 8)
    'constab…'
    """
    clean = visible(label).replace("\n", "·").replace("\t", "·")
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def abridged(characters: str) -> str:
    """A piece of the text where there is no room to scroll: the middle of a very long one is left out."""
    half = LONGEST_PIECE // 2
    return characters if len(characters) <= LONGEST_PIECE else f"{characters[:half]} … {characters[-half:]}"


def isolated(sentence: str) -> str:
    """With every quoted token closed off, so that one written from right to left does not turn what follows it."""
    return _QUOTED.sub("\u2068\\g<0>\u2069", sentence)
