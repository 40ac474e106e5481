"""Token ids that a Python user made: lists, arrays and tensors, and what a tokenizer returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.records import Bad, GivenIds, Text
from headscope.errors import HeadscopeError

IDS, MASK, TYPES = "input_ids", "attention_mask", "token_type_ids"
"""As tokenizers call them."""


class _Misfit(Exception):
    """With the sentence that says what is wrong."""


def row_text(origin: str, row: Any) -> Text | Bad:
    """One row as one window: ids, or a mapping with `input_ids` and perhaps a mask and types."""
    named = row if isinstance(row, Mapping) else {IDS: row}
    try:
        ids = _numbers(origin, named[IDS])
        mask, types = (
            None if named.get(name) is None else _numbers(f"The {name} of {origin}", named[name], like=ids)
            for name in (MASK, TYPES)
        )
        if mask is not None:
            _check_mask(origin, mask)
            ids = ids[mask == 1]
            types = None if types is None else types[: len(ids)]
        if not ids.size:
            raise _Misfit(f"{origin} holds no token ids; leave it out.")
    except _Misfit as misfit:
        return Bad(str(misfit))
    return Text(origin, "", given=GivenIds(ids, types, masked=mask is not None))


def rows_of(texts: Any) -> list[Any] | None:
    """The rows of an array of numbers, or of what a tokenizer returns; None for anything else."""
    if isinstance(texts, Mapping):
        return _rows_of_encoding(texts) if IDS in texts else None
    if not is_numbers(texts):
        return None
    array = _array(texts)
    if array.dtype.kind not in "iu":
        raise HeadscopeError(
            f"texts is an array of {array.dtype}; token ids must be whole numbers, and texts are strings."
        )
    if array.ndim != 2:
        raise HeadscopeError(
            f"texts is an array of whole numbers of shape {array.shape}; of token ids give rows, as in [ids]."
        )
    return list(array)


def is_numbers(value: Any) -> bool:
    """Whether it is an array or a tensor of anything but strings and objects."""
    if not hasattr(value, "dtype") or not hasattr(value, "ndim") or type(value).__module__.startswith("pandas"):
        return False
    return getattr(value.dtype, "kind", "i") in "iufbc"


def is_row(item: Any) -> bool:
    """Whether an item is meant to be a row of token ids: something with numbers in it."""
    if isinstance(item, Mapping):
        return IDS in item
    if isinstance(item, (list, tuple)):
        return bool(item) and not any(isinstance(value, str) for value in item)
    return is_numbers(item) and item.ndim > 0


def _rows_of_encoding(encoding: Mapping[Any, Any]) -> list[Any]:
    """A row for each text, with its mask and types. What a tokenizer returns for one text alone is one row."""
    columns = {name: encoding[name] for name in (IDS, MASK, TYPES) if encoding.get(name) is not None}
    ids = columns[IDS]
    if not _is_nested(ids):
        return [columns]
    for name, column in columns.items():
        if not _is_nested(column) or len(column) != len(ids):
            raise HeadscopeError(f"{name} has not as many rows as input_ids, {len(ids)}; give both as tokenized.")
    return [{name: column[place] for name, column in columns.items()} for place in range(len(ids))]


def _is_nested(values: Any) -> bool:
    if hasattr(values, "ndim"):
        return bool(values.ndim > 1)
    return len(values) > 0 and (isinstance(values[0], (list, tuple)) or getattr(values[0], "ndim", 0) > 0)


def _numbers(origin: str, values: Any, like: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """(S,); a single row in a table of one is that row."""
    try:
        array = _array(values)
    except ValueError:
        raise _Misfit(f"{origin} holds no row of numbers; token ids are a list of rows of whole numbers.") from None
    if array.ndim == 2 and len(array) == 1:
        array = array[0]
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        kind = f"of {array.dtype}" if array.ndim == 1 else f"of shape {array.shape}"
        raise _Misfit(f"{origin} is {kind}; token ids are whole numbers, a list of rows of them.")
    if like is not None and array.shape != like.shape:
        raise _Misfit(f"{origin} has {array.size} numbers and not {like.size}, as many as there are input_ids.")
    return array.astype(np.int64)


def _check_mask(origin: str, mask: NDArray[np.int64]) -> None:
    if not np.isin(mask, (0, 1)).all():
        raise _Misfit(f"The attention_mask of {origin} must be of 0 and 1.")
    if (np.diff(mask) > 0).any():
        raise _Misfit(
            f"The attention_mask of {origin} has padding before or between tokens; padding must come last "
            "(tokenizer.padding_side = 'right')."
        )


def _array(values: Any) -> NDArray[Any]:
    """Of a list or an array; a tensor may lie on another device, or be of a type that numpy does not have."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if values.is_floating_point() else values
    return np.asarray(values)
