"""What a study can be held against: the same windows, measured where there is nothing to know."""

from typing import Literal, get_args

Null = Literal["tokens", "sentences", "weights"]
NULLS: tuple[Null, ...] = get_args(Null)
CALLED: dict[Null, str] = {
    "tokens": "shuffled tokens",
    "sentences": "shuffled sentences",
    "weights": "random weights",
}
"""As sentences and headings name what a null study is of."""
