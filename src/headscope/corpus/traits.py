"""What can be known of tokens, by what they are tokens of."""

from typing import Literal

Trait = Literal["words", "sentences", "order", "patches"]
"""words: two tokens may be equal, some are punctuation. sentences: they lie in them. order: they stand in a line, one
before the other. patches: they stand on a grid."""
Traits = frozenset[Trait]

WORDS: Traits = frozenset({"words"})
SENTENCES: Traits = frozenset({"sentences"})
ORDER: Traits = frozenset({"order"})
PATCHES: Traits = frozenset({"patches"})

TEXT: Traits = WORDS | SENTENCES | ORDER
"""Of the tokens of a text."""
IMAGE: Traits = PATCHES
"""Of the tokens of an image."""
