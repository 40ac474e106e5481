"""Texts of a data set on the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Iterator

from headscope.corpus.meta import with_meta
from headscope.corpus.records import Bad, Source, Text
from headscope.corpus.tables import of_cells
from headscope.errors import HeadscopeError
from headscope.speaking import option


class HubDataset(Source):
    """`hf:NAME`, `hf:NAME:CONFIG` or `hf:NAME:CONFIG:SPLIT`, streamed from the Hugging Face hub."""

    def __init__(self, address: str, fields: tuple[str, ...]) -> None:
        self._address = address
        self._fields = fields
        self.name = f"hf:{address}"
        self.has_fields = True

    def records(self) -> Iterator[Text | Bad]:
        try:
            import datasets
        except ImportError:
            raise HeadscopeError(
                f"{self.name} needs the package datasets; install it with: pip install 'headscope[hub]'"
            ) from None
        name, config, split = (*self._address.split(":"), "", "")[:3]
        try:
            rows = datasets.load_dataset(name, config or None, split=split or "train", streaming=True)
            for number, row in enumerate(rows):
                origin = f"{self.name}, row {number}"
                missing = next((field for field in self._fields if not isinstance(row.get(field), str)), None)
                if missing is None:
                    record = of_cells(origin, [row[field] for field in self._fields])
                    if record is not None:
                        yield with_meta(record, [row.get(name) for name in self.meta])
                else:
                    yield Bad(
                        f"{origin} has no text in its field {missing!r}, only the fields "
                        f"{', '.join(row)}; name the right one with {option('field')}."
                    )
        except (OSError, ValueError) as problem:
            reason = (str(problem).strip() or type(problem).__name__).splitlines()[0]
            raise HeadscopeError(f"The data set {self.name} can't be read: {reason}") from None
