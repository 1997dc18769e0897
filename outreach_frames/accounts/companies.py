"""The companies that a frame names: one account per row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.analysis.companies import column_of
from outreach_frames.common.text import PLACEHOLDERS, quoted
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.domains import domain_keys
from outreach_frames.identity.keys import page_forms, profnet_url_keys
from outreach_frames.resources.search_arguments import canonical_uuid
from outreach_frames.tables.value_text import column_texts, strip_texts

FOUND: Final = "found"
NOBODY: Final = "nobody"
INVALID: Final = "invalid"
DUPLICATE: Final = "duplicate_in_frame"
STATUSES: Final = (FOUND, NOBODY, INVALID, DUPLICATE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one row of the accounts; no status where that is not known yet."""

    status: str | None
    detail: str = ""
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to name a company.

    `filter` is the search filter that takes it, `column` the people's column that says who is
    found by it, `keys` gives texts in the form that both are compared in, `forms` what is sent for
    a text and its key. With no column, nothing in a person tells which company was meant, so each
    is asked about alone.
    """

    argument: str
    noun: str
    filter: str
    column: str | None
    keys: Callable[[pa.Array], pa.Array]
    forms: Callable[[str, str], tuple[str, ...]] = lambda text, _key: (text,)


def _id_keys(texts: pa.Array) -> pa.Array:
    ids = (None if text is None else canonical_uuid(text) for text in texts.to_pylist())
    return pa.array(ids, pa.large_string())


def _name_keys(texts: pa.Array) -> pa.Array:
    lowered = pc.utf8_lower(texts)
    is_placeholder = pc.is_in(lowered, value_set=pa.array(sorted(PLACEHOLDERS), texts.type))
    return pc.if_else(is_placeholder, pa.scalar(None, texts.type), lowered)


def _page_keys(urls: pa.Array) -> pa.Array:
    pages = [None if url is None else page_forms(url)[-1] for url in urls.to_pylist()]
    return profnet_url_keys(pa.array(pages, pa.large_string()))


# From the surest to the least sure; a row is asked about by the first that it has.
KINDS: Final = (
    Kind("company_id", "company id", "company_ids", "company_id", _id_keys),
    Kind(
        "company_profnet_url",
        "profile URL",
        "company_profnet_urls",
        "company_profnet_url",
        _page_keys,
        # The interface does not say by which form the service knows a page.
        lambda url, _key: page_forms(url),
    ),
    Kind(
        "domain",
        "domain",
        "company_domains",
        "company_website",
        domain_keys,
        lambda _text, key: (key,),
    ),
    Kind("name", "company name", "company_names", None, _name_keys),
)


@dataclass(frozen=True, slots=True)
class Account:
    """A company to ask about: the row's position, and what is sent and compared."""

    row: int
    kind: Kind
    sent: tuple[str, ...]
    key: str

    @property
    def name(self) -> str:
        """What to call it by."""
        return self.sent[0]


def read_accounts(
    frame: pd.DataFrame, columns: Mapping[str, Hashable | None]
) -> tuple[list[Account], dict[int, Outcome]]:
    """Read each row's company from the columns that are named, by the argument's name.

    Returns the companies to ask about, and the outcomes of the other rows by position.
    """
    kinds = [kind for kind in KINDS if columns.get(kind.argument) is not None]
    if not kinds:
        arguments = ", ".join(f"{kind.argument}=" for kind in KINDS)
        raise InvalidInputError(
            f"Say which column names the companies, with one of {arguments}. "
            f"The frame has the columns {', '.join(map(quoted, list(frame.columns)[:20]))}."
        )
    texts = {
        kind: strip_texts(column_texts(column_of(frame, columns[kind.argument])).texts)
        for kind in kinds
    }
    keys = {kind: kind.keys(texts[kind]).to_pylist() for kind in kinds}
    cells = {kind: texts[kind].to_pylist() for kind in kinds}
    asked: dict[tuple[str, str], Account] = {}
    unasked: dict[int, Outcome] = {}
    for row in range(len(frame)):
        kind = next((kind for kind in kinds if keys[kind][row] is not None), None)
        if kind is None:
            why = _why_invalid({kind: cells[kind][row] for kind in kinds})
            unasked[row] = Outcome(INVALID, why)
            continue
        key = keys[kind][row]
        first = asked.setdefault(
            (kind.argument, key),
            Account(row, kind, kind.forms(cells[kind][row], key), key),
        )
        if first.row != row:
            label = quoted(_plain(frame.index[first.row]))
            detail = f"the same {kind.noun} as row {label}: {quoted(first.name)}"
            unasked[row] = Outcome(DUPLICATE, detail)
    return list(asked.values()), unasked


def _why_invalid(cells: Mapping[Kind, str | None]) -> str:
    return "; ".join(
        f"no {kind.noun}: the cell is empty"
        if cell is None
        else f"no usable {kind.noun}: {quoted(cell)}"
        for kind, cell in cells.items()
    )


def _plain(label: Any) -> Any:
    """Return a label without numpy's type, which would be printed with it."""
    return label.item() if hasattr(label, "item") else label
