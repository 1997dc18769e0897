"""Check the arguments that map a frame's columns to lead fields."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pandas as pd

from outreach_frames import spec
from outreach_frames.common import terms
from outreach_frames.common.arguments import (
    check_integer,
    check_list,
    near_names,
    similar,
    suggestion,
)
from outreach_frames.common.text import listed, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.keys import email_keys, profnet_url_keys
from outreach_frames.leads import statuses
from outreach_frames.leads.planning.syntax import email_problem, field_name, is_field_name
from outreach_frames.tables.column_checks import column_of, require_name
from outreach_frames.tables.columns import columns_like, columns_text, find_profile_urls

EMAIL, PROFNET_URL = spec.LEAD_IDENTIFIERS
DISTRIBUTION, MAILBOXES = (field.name for field in spec.ADD_LEADS_SETTINGS)
MAILBOX: Final = "mailbox"
# The functions that return a column's normalised keys.
KEYS: Final = {EMAIL: email_keys, PROFNET_URL: profnet_url_keys}

_LISTS = (list, tuple, pd.Index, pd.Series, np.ndarray)


class DefaultColumn(str):
    """A default column name; unlike a passed column, the column may be absent."""

    __slots__ = ()


EMAIL_COLUMN: Final = DefaultColumn(EMAIL)
PROFNET_URL_COLUMN: Final = DefaultColumn(PROFNET_URL)


@dataclass(frozen=True, slots=True)
class LeadMapping:
    """The frame's columns for each part of a lead."""

    identifiers: Mapping[str, Hashable]
    data: Mapping[str, Hashable]
    # The overrides of all leads; each value is True.
    overrides: Mapping[str, bool]
    # The column with each row's mailbox.
    mailbox: Hashable | None
    # The data fields without which a row is invalid.
    required: Sequence[str] = ()


def read_mapping(
    frame: pd.DataFrame,
    *,
    email: object,
    profnet_url: object,
    data: object,
    overrides: object,
    mailbox: object,
    require: object = None,
) -> LeadMapping:
    """Check the arguments that name columns against a frame."""
    if isinstance(frame.columns, pd.MultiIndex):
        raise InvalidInputError(
            "The table's columns have several levels. Flatten their names first: "
            'df.columns = ["_".join(map(str, names)) for names in df.columns].'
        )
    identifiers = _read_identifiers(frame, {EMAIL: email, PROFNET_URL: profnet_url})
    fields = _read_data(frame, data)
    return LeadMapping(
        identifiers,
        fields,
        _read_overrides(overrides),
        None if mailbox is None else _column(frame, terms.name(MAILBOX), mailbox),
        _read_required(require, fields),
    )


def read_settings(
    mailboxes: object, address_of: Callable[[str], str | None] = lambda _: None
) -> Mapping[str, Any]:
    """Check `mailboxes`, and return the request's settings, empty for the service's defaults.

    `address_of` returns the address of the mailbox with an id.
    """
    if mailboxes is None:
        return MappingProxyType({})
    addresses = _read_mailboxes(mailboxes, address_of)
    custom = spec.MAILBOXES_LEADS_DISTRIBUTION
    return MappingProxyType({DISTRIBUTION: custom, MAILBOXES: addresses})


def read_chunk_size(value: object) -> int:
    """Check the number of leads per request."""
    size = check_integer("chunk_size", value)
    most = spec.MAX_LEADS_PER_REQUEST
    if not 1 <= size <= most:
        raise InvalidInputError(
            f"{terms.argument('chunk_size', size)} is not between 1 and {most}, the service's "
            "limit of leads per request. Pass a number in that range."
        )
    return size


def _read_mailboxes(mailboxes: object, address_of: Callable[[str], str | None]) -> tuple[str, ...]:
    if not isinstance(mailboxes, _LISTS):
        raise InvalidInputError(
            f"{terms.name(MAILBOXES)} takes a list of e-mail addresses: "
            f"{terms.argument(MAILBOXES, ['anna@example.org'])}."
        )
    addresses = tuple(mailboxes)
    if not addresses:
        raise InvalidInputError(f"{terms.name(MAILBOXES)} is empty. Pass the mailboxes' addresses.")
    for address in addresses:
        if not isinstance(address, str):
            raise InvalidInputError(
                f"{terms.name(MAILBOXES)} takes e-mail addresses, not {quoted(address)}."
            )
        if problem := email_problem(address):
            if own := address_of(address):
                problem = f"{quoted(address)} is a mailbox's id. Pass its address, {quoted(own)}."
            raise InvalidInputError(f"{terms.name(MAILBOXES)}: {problem}")
    if len(set(addresses)) < len(addresses):
        raise InvalidInputError(
            f"{terms.name(MAILBOXES)} contains a duplicate. Pass each address once."
        )
    return addresses


def _read_identifiers(frame: pd.DataFrame, columns: Mapping[str, object]) -> dict[str, Hashable]:
    identifiers: dict[str, Hashable] = {}
    for field, column in columns.items():
        absent = isinstance(column, DefaultColumn) and column not in frame.columns
        if absent and (near := near_names(column, frame.columns)):
            raise InvalidInputError(
                f"The table has no column {field!r}, but it has {' and '.join(map(quoted, near))}. "
                f"Pass {terms.argument(field, near[0])} to send this column, or "
                f"{terms.argument(field, None)} to omit the field. {columns_text(frame)}"
            )
        if column is not None and not absent:
            identifiers[field] = _column(frame, terms.name(field), column)
    if not identifiers:
        raise InvalidInputError(
            f"No column identifies the leads: neither {' nor '.join(columns)} was found or passed. "
            f"Pass a column: {_suggest_identifier(frame)}. {columns_text(frame)}"
        )
    if len(set(identifiers.values())) < len(identifiers):
        raise InvalidInputError(
            f"{' and '.join(map(terms.name, identifiers))} name the same column, "
            f"{quoted(identifiers[EMAIL])}. Pass two different columns."
        )
    if isinstance(columns[PROFNET_URL], DefaultColumn):
        _warn_of_other_urls(frame)
    return identifiers


def _warn_of_other_urls(frame: pd.DataFrame) -> None:
    """Warn of profile URLs in a column with another network's name, which are not sent."""
    if (name := find_profile_urls(frame.columns, lambda column: frame[column])) is not None:
        warn(
            f"{PROFNET_URL} is missing, but {quoted(name)} has profile URLs, which are not sent. "
            f"Pass {terms.argument(PROFNET_URL, name)} to send them."
        )


def _suggest_identifier(frame: pd.DataFrame) -> str:
    if (name := find_profile_urls(frame.columns, lambda column: frame[column])) is not None:
        return terms.argument(PROFNET_URL, name)
    for field in spec.LEAD_IDENTIFIERS:
        if columns := columns_like(field, frame.columns):
            return terms.argument(field, columns[0])
    return f"{terms.argument(EMAIL, 'E-mail address')} or {terms.argument(PROFNET_URL, 'Profile')}"


def _read_data(frame: pd.DataFrame, data: object) -> dict[str, Hashable]:
    if data is None:
        return {}
    if isinstance(data, Mapping):
        columns = {
            field: _column(frame, terms.argument("data", {field: column}), column)
            for field, column in data.items()
        }
    elif isinstance(data, _LISTS):
        columns = {_column(frame, terms.name("data"), column): column for column in data}
    else:
        raise InvalidInputError(
            "data takes a list of columns or {field: column}, "
            f"for example data=[{quoted(data)}], not {quoted(data)}."
        )
    for field in columns:
        _check_field(field, columns)
    if len(columns) > spec.MAX_DATA_FIELDS:
        raise InvalidInputError(
            f"{terms.name('data')} has {len(columns)} fields; a lead takes at most "
            f"{spec.MAX_DATA_FIELDS}. Drop the fields that the sequence's texts do not use."
        )
    return {str(field): column for field, column in columns.items()}  # numpy's text, too


def _read_required(require: object, fields: Mapping[str, Hashable]) -> list[str]:
    if require is None:
        return []
    if not isinstance(require, _LISTS):
        raise InvalidInputError(
            f"require takes a list of data fields, for example require=[{quoted(require)}], not "
            f"{quoted(require)}."
        )
    if others := [name for name in require if name not in fields]:
        raise InvalidInputError(
            f"{terms.name('require')} has names that are not fields of {terms.name('data')}: "
            f"{listed(others)}. The fields: {listed(fields)}."
        )
    return [*require]


def read_send_again(names: object) -> frozenset[str]:
    """Return the statuses whose people are sent again; only skips of the service are allowed."""
    if isinstance(names, str):
        raise InvalidInputError(
            f"send_again takes a list of statuses, for example send_again=[{quoted(names)}], not "
            f"{quoted(names)}. Nothing was sent."
        )
    chosen = [] if names is None else check_list("send_again", names)
    for name in chosen:
        is_other = name in statuses.STATUSES or bool(similar(str(name), statuses.STATUSES))
        if name not in statuses.SKIPPED and (is_other or not isinstance(name, str)):
            hint = suggestion(str(name), statuses.SKIPPED)
            if name == statuses.UNKNOWN:
                retry = terms.wording("report.retry_unknown()", in_shell="--retry-unknown")
                hint = f" {retry} sends unknown rows."
            raise InvalidInputError(
                f"{terms.name('send_again')} takes skips of the service, such as "
                f"{', '.join(statuses.SKIPPED)}, not {quoted(name)}.{hint} Nothing was sent."
            )
    return frozenset(map(str, chosen))


def _check_field(field: object, columns: Mapping[Any, Hashable]) -> None:
    if field in spec.LEAD_IDENTIFIERS:
        raise InvalidInputError(
            f"{field} is an identifier, not a data field: drop {field} from {terms.name('data')}, "
            f"and pass {terms.argument(str(field), columns[field])}."
        )
    if not is_field_name(field):
        raise InvalidInputError(
            f"{quoted(field)} is not a valid name of a data field. Use lowercase letters, "
            f"digits and underscores, beginning with a letter, at most {spec.MAX_DATA_NAME_LENGTH} "
            f"characters.{_suggest_field(field, columns)}"
        )


def _suggest_field(field: object, columns: Mapping[Any, Hashable]) -> str:
    try:
        return f" Pass {terms.argument('data', {field_name(field): columns[field]})}."
    except InvalidInputError as error:
        return f" {error}"


def _read_overrides(overrides: object) -> Mapping[str, bool]:
    """Return the overrides that are True, in the interface's order."""
    if overrides is None:
        return MappingProxyType({})
    example = f"overrides={{{spec.OVERRIDE_NAMES[0]!r}: True}}"
    if not isinstance(overrides, Mapping):
        raise InvalidInputError(
            f"overrides takes {{override: True}}, not {quoted(overrides)}. For example: {example}."
        )
    for name, value in overrides.items():
        if name not in spec.OVERRIDE_NAMES:
            raise InvalidInputError(
                f"There is no override {quoted(name)}."
                f"{suggestion(str(name), spec.OVERRIDE_NAMES)} "
                f"Choose from: {', '.join(spec.OVERRIDE_NAMES)}."
            )
        if not isinstance(value, bool | np.bool_):
            raise InvalidInputError(
                f"The override {name} takes True or False for all rows, not {quoted(value)}. To "
                "override a check for some rows, filter the rows and submit them with the same "
                f"journal: df[mask].outreach.add_to_sequence(..., overrides={{{name!r}: True}}, "
                "journal=path)."
            )
    return MappingProxyType({name: True for name in spec.OVERRIDE_NAMES if overrides.get(name)})


def _column(frame: pd.DataFrame, argument: str, column: Any) -> Hashable:
    """Check that an argument's column occurs exactly once in the frame, and return its name."""
    require_name(argument, column)
    column_of(frame, column, f"{argument}: the table")
    name: Hashable = column
    return name
