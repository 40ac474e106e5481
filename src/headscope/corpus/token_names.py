"""Tokens as people read them: without the marks that tokenizers keep for themselves."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

SPACES = {" ": "␣", "\n": "⏎", "\t": "⇥"}


def readable_tokens(tokenizer: Any, ids: Iterable[int]) -> list[str]:
    """The token of each id: `Ġcat` and `▁cat` are read `cat`.

    WordPiece's `##` stays: it says that a piece goes on with a word. A token that is only white space is shown by a
    sign, one that is part of a character by its bytes.
    """
    special = set(tokenizer.all_special_ids)
    return [_readable(tokenizer, int(token), int(token) in special) for token in ids]


def _readable(tokenizer: Any, token: int, special: bool) -> str:
    raw: str = tokenizer.convert_ids_to_tokens(token)
    if special:
        return raw
    text: str = tokenizer.decode([token], clean_up_tokenization_spaces=False)
    if "\ufffd" in text:
        return _bytes_of(raw)
    if text.strip():
        return text.strip()
    return "".join(SPACES.get(character, "␣") for character in text) or "␣"


def _bytes_of(raw: str) -> str:
    """A piece of a character. `<0xE2>` of SentencePiece stays; byte-level BPE is brought to the same form."""
    table = _byte_of_character()
    if not raw.startswith("<0x") and all(character in table for character in raw):
        return "".join(f"<0x{table[character]:02X}>" for character in raw).removeprefix("<0x20>")
    return raw


@cache
def _byte_of_character() -> dict[str, int]:
    """The alphabet of byte-level BPE: printable bytes stand for themselves, the others for characters from 256 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(others)}
