"""Read the company of each row of a table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.analysis.companies import column_of, near_column
from outreach_frames.common.text import PLACEHOLDERS, quoted
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.cells import Reading
from outreach_frames.identity.domains import domain_keys, domains_in
from outreach_frames.identity.keys import profnet_url_cells, profnet_urls_in, url_variants
from outreach_frames.keys import texts_of
from outreach_frames.resources.search_arguments import canonical_uuid
from outreach_frames.tables.value_text import column_texts, strip_texts

FOUND: Final = "found"
NOBODY: Final = "nobody"
INVALID: Final = "invalid"
DUPLICATE: Final = "duplicate_in_frame"
STATUSES: Final = (FOUND, NOBODY, INVALID, DUPLICATE)

_KEYS_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one row; its status is None until known."""

    status: str | None
    detail: str = ""
    total: int | None = None


@dataclass(frozen=True, slots=True)
class IdentifierKind:
    """A kind of company identifier."""

    argument: str
    noun: str
    filter: str
    # The people column with the same identifier. Without one, each company gets its own search,
    # since found people cannot be assigned to a company.
    column: str | None
    keys: Callable[[pa.Array], pa.Array]
    # Converts a text and its key to the values of the filter.
    search_values: Callable[[str, str], tuple[str, ...]] = lambda text, _key: (text,)
    # Reads every key of a cell, to explain why it has no single one; and what the cell should be.
    read: Callable[[str], Reading] = lambda _text: Reading([], True)
    expected: str = ""


def _id_keys(texts: pa.Array) -> pa.Array:
    ids = (None if text is None else canonical_uuid(text) for text in texts.to_pylist())
    return pa.array(ids, pa.large_string())


def _name_keys(texts: pa.Array) -> pa.Array:
    lowered = pc.utf8_lower(texts)
    is_placeholder = pc.is_in(lowered, value_set=pa.array(sorted(PLACEHOLDERS), texts.type))
    return pc.if_else(is_placeholder, pa.scalar(None, texts.type), lowered)


def _company_url_keys(urls: pa.Array) -> pa.Array:
    pages = [None if url is None else url_variants(url)[-1] for url in urls.to_pylist()]
    return profnet_url_cells(pa.array(pages, pa.large_string())).single()


# The most reliable first; a row is searched by its first identifier.
IDENTIFIER_KINDS: Final = (
    IdentifierKind("company_id", "company id", "company_ids", "company_id", _id_keys),
    IdentifierKind(
        "company_profnet_url",
        "profile URL",
        "company_profnet_urls",
        "company_profnet_url",
        _company_url_keys,
        # The form that the service stores is undocumented.
        lambda url, _key: url_variants(url),
        profnet_urls_in,
    ),
    IdentifierKind(
        "domain",
        "domain",
        "company_domains",
        "company_website",
        domain_keys,
        lambda _text, key: (key,),
        domains_in,
        " is not one web or email address below a public suffix, such as .com or .co.uk",
    ),
    IdentifierKind("name", "company name", "company_names", None, _name_keys),
)


@dataclass(frozen=True, slots=True)
class Account:
    """A company to search, and the position of its first row."""

    row: int
    kind: IdentifierKind
    search_values: tuple[str, ...]
    key: str

    @property
    def label(self) -> str:
        """The company's identifier in messages."""
        return self.search_values[0]


def read_accounts(
    frame: pd.DataFrame, columns: Mapping[str, Hashable | None]
) -> tuple[list[Account], dict[int, Outcome]]:
    """Return the companies to search, and the outcomes of all other rows by position."""
    kinds = [kind for kind in IDENTIFIER_KINDS if columns.get(kind.argument) is not None]
    if not kinds:
        arguments = ", ".join(f"{kind.argument}=" for kind in IDENTIFIER_KINDS)
        raise InvalidInputError(
            f"No company column was passed. Pass at least one of {arguments}. "
            f"The frame has the columns {', '.join(map(quoted, list(frame.columns)[:20]))}."
        )
    texts = {
        kind: _texts(column_of(frame, near_column(frame, columns[kind.argument]))) for kind in kinds
    }
    keys = {kind: kind.keys(texts[kind]).to_pylist() for kind in kinds}
    cells = {kind: texts[kind].to_pylist() for kind in kinds}
    accounts: dict[tuple[str, str], Account] = {}
    outcomes: dict[int, Outcome] = {}
    for row in range(len(frame)):
        kind = next((kind for kind in kinds if keys[kind][row] is not None), None)
        if kind is None:
            detail = _explain_invalid({kind: cells[kind][row] for kind in kinds})
            outcomes[row] = Outcome(INVALID, detail)
            continue
        key = keys[kind][row]
        first = accounts.setdefault(
            (kind.argument, key),
            Account(row, kind, kind.search_values(cells[kind][row], key), key),
        )
        if first.row != row:
            label = quoted(_python_value(frame.index[first.row]))
            detail = f"same {kind.noun} as row {label}: {quoted(first.label)}"
            outcomes[row] = Outcome(DUPLICATE, detail)
    return list(accounts.values()), outcomes


def _texts(column: pd.Series[Any]) -> pa.Array:
    """Return a column's text; lists and bytes are no empty cells."""
    read = column_texts(column)
    texts = pc.coalesce(read.texts, texts_of(column)) if read.unreadable else read.texts
    return strip_texts(texts)


def _explain_invalid(cells: Mapping[IdentifierKind, str | None]) -> str:
    return "; ".join(
        f"no {kind.noun}: the cell is empty"
        if cell is None
        else f"no usable {kind.noun}: {quoted(cell)}{_reason(kind, kind.read(cell))}"
        for kind, cell in cells.items()
    )


def _reason(kind: IdentifierKind, reading: Reading) -> str:
    """Explain why a cell has no single key."""
    if len(reading.keys) > 1:
        return f" holds several: {', '.join(reading.keys[:_KEYS_SHOWN])}"
    return f" holds more than {reading.keys[0]}" if reading.keys else kind.expected


def _python_value(label: Any) -> Any:
    """Convert a numpy scalar, whose repr includes its type, to a Python value."""
    return label.item() if hasattr(label, "item") else label
