"""Read a company identifier from each row of a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.common import terms
from outreach_frames.common.arguments import check_list
from outreach_frames.common.placeholders import are_companies
from outreach_frames.common.text import plural, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.identity.cells import texts_of
from outreach_frames.identity.domains import are_pages, domain_keys
from outreach_frames.identity.keys import profnet_url_cells, url_variants
from outreach_frames.tables.column_checks import column_of, near_column, require_name
from outreach_frames.tables.columns import no_column_error, usual_column
from outreach_frames.tables.value_text import column_texts, strip_texts

FOUND_STATUS: Final = "found"
SEVERAL: Final = "several"
SIMILAR_STATUS: Final = "similar"
NOBODY_STATUS: Final = "nobody"
INVALID: Final = "invalid"
DUPLICATE: Final = "duplicate_in_frame"
STATUSES: Final = (FOUND_STATUS, SEVERAL, SIMILAR_STATUS, NOBODY_STATUS, INVALID, DUPLICATE)


@dataclass(frozen=True, slots=True)
class RowResult:
    """The outcome of one row; the status is None until the search is finished."""

    status: str | None
    detail: str = ""
    total: int | None = None


# Matches a UUID with or without hyphens and braces.
_UUID: Final = (
    r"\A\{?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?\z"
)
# Matches an email address or a URL with a user name, in all forms that `domain_keys` accepts.
_AT: Final = "[@\uff20\ufe6b]"


@dataclass(frozen=True, slots=True)
class IdentifierKind:
    """A kind of company identifier."""

    argument: str
    noun: str
    filter: str
    # The people column with the same identifier. Without this column, found people cannot be
    # assigned to a company, so each company gets its own search.
    column: str | None
    keys: Callable[[pa.Array], pa.Array]
    # Converts the text of a cell and its key to the values of the search filter.
    search_values: Callable[[str, str], tuple[str, ...]] = lambda _text, key: (key,)


def id_keys(texts: pa.Array) -> pa.Array:
    """Return each UUID in lower case with hyphens; replace any other text by a missing value."""
    lowered = pc.ascii_lower(texts.cast(pa.large_string()))
    ids = pc.replace_substring_regex(lowered, _UUID, r"\1-\2-\3-\4-\5")
    is_id = pc.match_substring_regex(lowered, _UUID)
    return pc.if_else(is_id, ids, pa.scalar(None, ids.type))


def _name_keys(texts: pa.Array) -> pa.Array:
    return pc.if_else(are_companies(texts), pc.utf8_lower(texts), pa.scalar(None, texts.type))


def _company_url_keys(urls: pa.Array) -> pa.Array:
    pages = [None if url is None else url_variants(url)[-1] for url in urls.to_pylist()]
    return profnet_url_cells(pa.array(pages, pa.large_string())).single_keys()


# From most to least reliable: a row is searched by its first available kind.
IDENTIFIER_KINDS: Final = (
    IdentifierKind("company_id", "company id", "company_ids", "company_id", id_keys),
    IdentifierKind(
        "company_profnet_url",
        "profile URL",
        "company_profnet_urls",
        "company_profnet_url",
        _company_url_keys,
        # The service does not document the form of its stored URLs, so send several variants.
        lambda url, _key: url_variants(url),
    ),
    IdentifierKind("domain", "domain", "company_domains", "company_website", domain_keys),
    IdentifierKind(
        "company_name",
        "company name",
        "company_names",
        None,
        _name_keys,
        lambda name, _key: (name,),
    ),
)


@dataclass(frozen=True, slots=True)
class SearchedAccount:
    """A company to search, and the position of its first row."""

    row: int
    kind: IdentifierKind
    search_values: tuple[str, ...]
    key: str

    @property
    def label(self) -> str:
        """Return the identifier to show in messages."""
        return self.search_values[0]


def identifier_columns(
    frame: pd.DataFrame, columns: Mapping[str, Hashable | None]
) -> dict[str, Hashable]:
    """Return the passed column of each kind; if none was passed, the usual columns."""
    passed = {kind: column for kind, column in columns.items() if column is not None}
    for kind, column in passed.items():
        require_name(kind, column)
    if passed:
        return passed
    table = "The table of accounts"
    usual = {
        kind: column for kind in columns if (column := usual_column(frame, kind, table)) is not None
    }
    if not usual:
        raise no_column_error(frame, columns, table)
    shown = ", ".join(terms.argument(kind, column) for kind, column in usual.items())
    warn(f"No column was passed, so the companies are identified by {shown}.")
    return usual


def read_account_columns(
    frame: pd.DataFrame, names: object, taken: Collection[object]
) -> dict[str, pd.Series[Any]]:
    """Return the chosen columns of the table of accounts by their names in the people's frame."""
    given = [] if names is None else [names] if isinstance(names, str) else names
    columns: dict[str, pd.Series[Any]] = {}
    given = check_list("account_columns", given)
    for name in given:
        require_name("account_columns", name)
    for name in dict.fromkeys(given):
        column = column_of(frame, name, f"{terms.name('account_columns')}: the table of accounts")
        columns[prefixed(str(name), [*taken, *columns])] = column
    return columns


def prefixed(name: str, taken: Collection[object]) -> str:
    """Return a column name; a name that is taken gets the prefix `account_`.

    >>> prefixed("title", ["title"])
    'account_title'
    """
    while name in taken:
        name = f"account_{name}"
    return name


def read_accounts(
    frame: pd.DataFrame, columns: Mapping[str, Hashable]
) -> tuple[list[SearchedAccount], dict[int, RowResult]]:
    """Return the companies to search, and the outcome of each invalid or duplicate row."""
    accounts: dict[tuple[str, str], SearchedAccount] = {}
    outcomes: dict[int, RowResult] = {}
    for row, account in enumerate(row_accounts(frame, columns)):
        if isinstance(account, RowResult):
            outcomes[row] = account
            continue
        first = accounts.setdefault((account.kind.argument, account.key), account)
        if first.row != row:
            label = row_label(frame.index, first.row)
            detail = f"same {account.kind.noun} as row {label}: {quoted(first.label)}"
            outcomes[row] = RowResult(DUPLICATE, detail)
    return list(accounts.values()), outcomes


def row_accounts(
    frame: pd.DataFrame, columns: Mapping[str, Hashable]
) -> Iterator[SearchedAccount | RowResult]:
    """Yield each row's company, or the outcome of a row without one."""
    kinds = [kind for kind in IDENTIFIER_KINDS if kind.argument in columns]
    cells, keys = {}, {}
    for kind in kinds:
        name = near_column(frame, columns[kind.argument])
        column = column_of(frame, name, f"{terms.name(kind.argument)}: the table of accounts")
        texts = cell_texts(column)
        kind_keys = kind.keys(texts)
        if kind.keys is domain_keys:
            kind_keys = drop_shared_domains(texts_of(column), kind_keys, column.name, frame.index)
        cells[kind], keys[kind] = texts.to_pylist(), kind_keys.to_pylist()
    for row in range(len(frame)):
        if not (usable := [kind for kind in kinds if keys[kind][row] is not None]):
            given = [(kind.noun, cells[kind][row]) for kind in kinds]
            shown = [f"{noun} {quoted(cell) if cell else '(empty)'}" for noun, cell in given]
            yield RowResult(INVALID, f"not exactly one company in {', '.join(shown)}")
            continue
        kind = usable[0]
        key = keys[kind][row]
        yield SearchedAccount(row, kind, kind.search_values(cells[kind][row], key), key)


def drop_shared_domains(
    texts: pa.Array, keys: pa.Array, column: Hashable, index: pd.Index[Any]
) -> pa.Array:
    """Drop the domains of free mail addresses, and of pages at networks and builders."""
    is_email = pc.match_substring_regex(texts, _AT).fill_null(False)
    is_free = pc.and_(is_email, pc.is_in(keys, value_set=_free_mail_domains()))
    for is_shared, nouns, owner, reason in (
        (
            is_free,
            ("email address", "email addresses"),
            "free mail providers",
            "A mail provider is not the person's employer",
        ),
        (
            are_pages(texts, keys),
            ("page", "pages"),
            "networks, link lists or site builders",
            "The host is not the company's own",
        ),
    ):
        if count := pc.sum(is_shared).as_py():
            first = pc.index(is_shared, True).as_py()
            warn(
                f"The column {quoted(column)} has {plural(count, *nouns)} of {owner}, such as "
                f"{keys[first]} in row {row_label(index, first)}. {reason}, so these cells are "
                "ignored."
            )
            keys = pc.if_else(is_shared, pa.scalar(None, keys.type), keys)
    return keys


@cache
def _free_mail_domains() -> pa.Array:
    content = files(__package__).joinpath("free_mail_domains.txt").read_text(encoding="utf-8")
    return pa.array(content.split(), pa.large_string())


def cell_texts(column: pd.Series[Any]) -> pa.Array:
    """Return a column's cells as text, including lists and bytes."""
    read = column_texts(column)
    texts = pc.coalesce(read.texts, texts_of(column)) if read.unreadable else read.texts
    return strip_texts(texts)


def row_label(index: pd.Index[Any], row: int) -> str:
    """Return the index label of a row as text for messages."""
    label = index[row]
    # The repr of a numpy scalar would include its type.
    return quoted(label.item() if hasattr(label, "item") else label)
