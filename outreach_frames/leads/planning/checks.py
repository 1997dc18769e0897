"""Convert a frame's rows to lead fields, and collect all their problems."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.types import is_string_dtype

from outreach_frames import spec
from outreach_frames.common import terms
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.placeholders import (
    PLACEHOLDERS,
    are_missing_texts,
    are_placeholder_texts,
)
from outreach_frames.common.text import plural, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.identity import persons
from outreach_frames.identity.keys import are_placeholder_urls, certain_keys, profnet_url_keys
from outreach_frames.leads.planning import syntax
from outreach_frames.leads.planning.mailboxes import AccountMailboxes, UserMailboxes
from outreach_frames.leads.planning.mapping import (
    EMAIL,
    KEYS,
    MAILBOX,
    PROFNET_URL,
    LeadMapping,
)
from outreach_frames.leads.planning.opt_outs import opt_outs
from outreach_frames.tables.value_text import TEXT, column_texts, strip_texts

PLACEHOLDER: Final = "placeholder"
NOT_A_PROFILE: Final = "not_a_profile"
SHARED_EMAIL: Final = "shared_email"
TEMPLATE: Final = "template_text"
PLACEHOLDER_TEXT: Final = "placeholder_text"
MISSING_EVERYWHERE: Final = "field_missing_everywhere"
OPTED_OUT: Final = "opted_out"
# The codes of problems that leave a row valid.
HARMLESS: Final = frozenset(
    {
        *(PLACEHOLDER, NOT_A_PROFILE, SHARED_EMAIL, TEMPLATE),
        *(PLACEHOLDER_TEXT, MISSING_EVERYWHERE, OPTED_OUT),
    }
)
_FILLS_NO_FIELD: Final = (TEMPLATE, PLACEHOLDER_TEXT)
NOT_PLAIN: Final = "not_a_plain_value"

_IS_PLACEHOLDER: Final = "is a placeholder and was treated as missing."
_NO_MAILBOX: Final = (
    f"{_IS_PLACEHOLDER} Rows without a mailbox are sent from `mailboxes`, or by default from the "
    "sequence's senders."
)
_IS_KEPT: Final = "is a placeholder, which is not left out. Correct or empty the cell."
_IS_TEMPLATE: Final = "looks like an unfilled template. Fill in the value."
_HAS_OPTED_OUT: Final = "says that the person has opted out."
_IS_WEAK: Final = "is not a person's profile; sent by email alone."


class Problem(NamedTuple):
    """A problem of a row; without `column` and `field`, it concerns the whole row."""

    row: int
    column: str | None
    field: str | None
    code: str
    message: str


# Per field: a fast check of a column, the full check of texts that fail it, and their repair.
_CHECKS: Final = {
    EMAIL: (syntax.is_simple_email, syntax.email_problem, syntax.repair_email),
    PROFNET_URL: (syntax.is_simple_url, syntax.url_problem, syntax.repair_url),
    # A text without @ is a user's name, which only the account's mailboxes can check.
    MAILBOX: (
        lambda texts: pc.or_(
            syntax.is_simple_email(texts), pc.invert(pc.match_substring(texts, "@"))
        ),
        syntax.email_problem,
        lambda _text: None,
    ),
}


@dataclass(frozen=True)
class CheckedRows:
    """The rows of a frame as text by field, with their problems."""

    identifiers: Mapping[str, pa.Array]
    data: Mapping[str, pa.Array]
    # Each row's mailbox, or missing; None without a mailbox column.
    mailboxes: pa.Array | None
    # The mailboxes of the user per row that names a user.
    users: Mapping[int, UserMailboxes]
    problems: pd.DataFrame
    # `is_valid`: whether a row may be sent. `is_identified`: whether its identifiers are valid, so
    # that they link a person's rows even if the row is not sent.
    is_valid: np.ndarray[Any, Any]
    is_identified: np.ndarray[Any, Any]
    # Each row's normalised email and profile URL; missing if they are invalid.
    keys: pa.RecordBatch
    # For each row, the position of the row that is sent for the same person.
    kept: np.ndarray[Any, Any]


def check_rows(
    frame: pd.DataFrame, mapping: LeadMapping, account: AccountMailboxes | None = None
) -> CheckedRows:
    """Check a frame's rows against all rules, and mailboxes against `account` if it is passed."""
    problems: list[Problem] = []

    def column(field: str, name: Hashable) -> _Column:
        return _Column(frame[name], field, name, problems)

    identifiers = {
        field: _identifier(column(field, name)) for field, name in mapping.identifiers.items()
    }
    is_identified = _have_no_problem(problems, len(frame))
    if {EMAIL, PROFNET_URL} <= identifiers.keys():
        urls = column(PROFNET_URL, mapping.identifiers[PROFNET_URL])
        identifiers[PROFNET_URL] = _drop_weak_urls(urls, identifiers, pa.array(is_identified))
    # An identifier that cannot be converted to text is invalid, not missing.
    is_present = np.zeros(len(frame), dtype=bool)
    is_present[[problem.row for problem in problems if problem.code == NOT_PLAIN]] = True
    data = {field: _data_field(column(field, name)) for field, name in mapping.data.items()}
    problems += _unfilled(mapping, data, problems)
    for texts in identifiers.values():
        is_present |= texts.is_valid().to_numpy(zero_copy_only=False)
    is_identified &= is_present
    message = f"The row has no {' and no '.join(identifiers)}. Fill one in, or drop the row."
    problems += [
        Problem(row, None, None, "missing_identifier", message)
        for row in np.flatnonzero(~is_present).tolist()
    ]
    mailboxes = None
    users: Mapping[int, UserMailboxes] = {}
    if mapping.mailbox is not None:
        mailboxes, users = _mailboxes(column(MAILBOX, mapping.mailbox), identifiers, account)
    is_valid = _have_no_problem(problems, len(frame))
    keys = _identifier_keys(identifiers, problems, pa.array(is_identified))
    first = persons.first_rows(persons.numbers_of(persons.identifiers(*keys.columns)))
    kept = persons.first_valid_rows(first, is_valid)
    problems += _shared_emails(keys, is_valid, str(mapping.identifiers.get(EMAIL)))
    sent = np.flatnonzero(is_valid & (kept == np.arange(len(frame))))
    problems += _missing_everywhere(mapping, data, sent)
    problems += [
        Problem(row, str(name), None, OPTED_OUT, f"{quoted(name)} {_HAS_OPTED_OUT}")
        for name, _, rows in opt_outs(frame)
        for row in rows
    ]
    table = _problems_frame(problems, frame.index)
    return CheckedRows(
        identifiers, data, mailboxes, users, table, is_valid, is_identified, keys, kept
    )


def _identifier_keys(
    identifiers: Mapping[str, pa.Array], problems: Sequence[Problem], is_identified: pa.BooleanArray
) -> pa.RecordBatch:
    """Return the keys of all valid identifiers; beside a damaged email, weak URLs have none."""
    missing = pa.nulls(len(is_identified), TEXT)
    keys = dict.fromkeys(KEYS, missing)
    for field, texts in identifiers.items():
        of_field = [problem for problem in problems if problem.field == field]
        keys[field] = pc.if_else(
            pa.array(_have_no_problem(of_field, len(texts))), KEYS[field](texts), missing
        )
    certain = certain_keys(keys[PROFNET_URL])
    keys[PROFNET_URL] = pc.if_else(is_identified, keys[PROFNET_URL], certain)
    return pa.RecordBatch.from_pydict(keys)


def _shared_emails(
    keys: pa.RecordBatch, is_valid: np.ndarray[Any, Any], column: str
) -> list[Problem]:
    """Report each email that valid rows with different certain profile URLs have."""
    people = keys.set_column(1, PROFNET_URL, certain_keys(keys[PROFNET_URL]))
    people = people.append_column("row", pa.array(np.arange(len(is_valid))))
    people = people.filter(pa.array(is_valid)).drop_null()
    # Grouping is slow, and most emails occur once.
    numbers = people[EMAIL].dictionary_encode().indices.to_numpy()
    people = people.filter(pa.array(np.bincount(numbers)[numbers] > 1))
    by_email = pa.table(people).group_by(EMAIL, use_threads=False)
    counts = by_email.aggregate([(PROFNET_URL, "count_distinct"), ("row", "min")])
    shared = counts.filter(pc.greater(counts[f"{PROFNET_URL}_count_distinct"], 1))
    return [
        Problem(
            row,
            column,
            EMAIL,
            SHARED_EMAIL,
            f"{quoted(email)}: {number} people share this address: only the first is sent.",
        )
        for email, number, row in zip(*shared.to_pydict().values(), strict=True)
    ]


def _have_no_problem(problems: Sequence[Problem], size: int) -> np.ndarray[Any, Any]:
    """Return whether each row is free of problems, apart from harmless ones."""
    are_good = np.ones(size, dtype=bool)
    are_good[[problem.row for problem in problems if problem.code not in HARMLESS]] = False
    return are_good


def row_notes(checked: CheckedRows) -> dict[int, str]:
    """Return the messages, by position, of rows without a mailbox or of people who opted out."""
    problems = checked.problems
    is_note = problems["message"].str.endswith(_NO_MAILBOX) | problems["code"].eq(OPTED_OUT)
    notes: dict[int, str] = {}
    for row, message in zip(*(problems.loc[is_note, c] for c in ("row", "message")), strict=True):
        notes[row] = f"{notes[row]} {message}" if row in notes else message
    return notes


@dataclass(frozen=True, slots=True)
class _Column:
    """A column, the lead field that it fills, and the list that collects its problems."""

    cells: pd.Series[Any]
    field: str
    name: Hashable
    problems: list[Problem]

    def report(self, row: int, code: str, message: str) -> None:
        """Add a problem of one cell."""
        self.problems.append(Problem(row, str(self.name), self.field, code, message))

    def texts(self) -> pa.Array:
        """Convert the cells to text, and report cells that cannot be converted."""
        written = column_texts(self.cells)
        for row, why in written.unreadable.items():
            self.report(row, NOT_PLAIN, f"{self.field}: {why}")
        return written.texts

    def report_texts(self, texts: pa.Array, mask: pa.Array, code: str, why: str) -> None:
        """Report the texts that `mask` selects."""
        for row in _rows(mask):
            self.report(row, code, f"{quoted(texts[row].as_py())} {why}")

    def drop(self, texts: pa.Array, mask: pa.Array, code: str, why: str) -> pa.Array:
        """Report the texts that `mask` selects, and replace them by missing values."""
        self.report_texts(texts, mask, code, why)
        return pc.if_else(mask, pa.scalar(None, TEXT), texts)


def _identifier(column: _Column) -> pa.Array:
    texts = strip_texts(column.texts())
    placeholders = pc.is_in(pc.utf8_lower(texts), pa.array(sorted(PLACEHOLDERS), TEXT))
    if column.field == PROFNET_URL:
        placeholders = pc.or_(placeholders, are_placeholder_urls(texts))
    why = _NO_MAILBOX if column.field == MAILBOX else _IS_PLACEHOLDER
    texts = column.drop(texts, placeholders, PLACEHOLDER, why)
    for row, message, repaired in _invalid_texts(texts, column.field):
        advice = (
            ""
            if repaired is None
            else f" Pass {terms.argument('clean', True)} to send {quoted(repaired)}."
        )
        column.report(row, f"invalid_{column.field}", f"{message}{advice}")
    return texts


def _invalid_texts(texts: pa.Array, field: str) -> Iterator[tuple[int, str, str | None]]:
    """Yield the row, error message and repaired text, if any, of each invalid text."""
    is_simple, *slow = _CHECKS[field]
    not_simple = pc.invert(is_simple(texts)).fill_null(False)
    find_problem, repair = map(cache, slow)
    for row, text in zip(_rows(not_simple), texts.filter(not_simple).to_pylist(), strict=True):
        if message := find_problem(text):
            yield row, message, repair(text)


def repair_identifiers(
    frame: pd.DataFrame, mapping: LeadMapping, *, clean: bool
) -> tuple[pd.DataFrame, str]:
    """Repair invalid cells with exactly one email or profile URL, if `clean`, and warn of them.

    Return the repaired frame, and a text with the number of repaired cells.
    """
    counts: list[str] = []
    frame = frame.copy(deep=False)
    for field, column in mapping.identifiers.items() if clean else ():
        texts = strip_texts(column_texts(frame[column]).texts)
        repairs = {row: text for row, _, text in _invalid_texts(texts, field) if text is not None}
        if repairs:
            cells = frame[column]
            # A categorical column does not accept new values.
            cells = cells.copy() if is_string_dtype(cells.dtype) else cells.astype(STR)
            cells.iloc[list(repairs)] = pd.Index(list(repairs.values()))
            frame[column] = cells.array
            counts.append(f"{plural(len(repairs), 'cell')} of {quoted(column)}")
    repaired = " and ".join(counts)
    if repaired:
        warn(
            f"{terms.argument('clean', True)} repaired {repaired}. The plan and the report have "
            "the sent texts."
        )
    return frame, repaired


def _drop_weak_urls(
    column: _Column, identifiers: Mapping[str, pa.Array], is_identified: pa.Array
) -> pa.Array:
    """Report weak profile URLs beside a valid email, and replace them by missing values."""
    urls = identifiers[PROFNET_URL]
    is_beside = pc.and_(is_identified, identifiers[EMAIL].is_valid())
    keys = profnet_url_keys(pc.if_else(is_beside, urls, pa.scalar(None, TEXT)))
    is_weak = pc.and_not(keys.is_valid(), certain_keys(keys).is_valid())
    return column.drop(urls, is_weak, NOT_A_PROFILE, _IS_WEAK)


def _mailboxes(
    column: _Column, identifiers: Mapping[str, pa.Array], account: AccountMailboxes | None
) -> tuple[pa.Array, dict[int, UserMailboxes]]:
    """Return each row's mailbox, or its text if no mailbox is usable, and the rows' users."""
    before = len(column.problems)
    texts = _identifier(column)
    if account is None:
        return texts, {}
    invalid = {problem.row for problem in column.problems[before:]}
    addresses, problems, users = account.choose(texts, identifiers)
    for row in problems.keys() - invalid:
        column.report(row, *problems[row])
    return addresses, users


def _data_field(column: _Column) -> pa.Array:
    texts = column.texts()
    stripped = strip_texts(texts)
    texts = pc.if_else(are_missing_texts(stripped), pa.scalar(None, TEXT), texts)
    placeholders = are_placeholder_texts(stripped)
    column.report_texts(texts, placeholders, PLACEHOLDER_TEXT, _IS_KEPT)
    templates = syntax.are_templates(texts, [str(column.name), column.field])
    templates = pc.and_not(templates, placeholders)
    column.report_texts(texts, templates, TEMPLATE, _IS_TEMPLATE)
    lengths = pc.utf8_length(texts)
    for row in _rows(pc.greater(lengths, spec.MAX_DATA_VALUE_LENGTH).fill_null(False)):
        message = (
            f"The text has {lengths[row].as_py():,} characters; {column.field} takes at most "
            f"{spec.MAX_DATA_VALUE_LENGTH:,}. Shorten the text."
        )
        column.report(row, "data_value_too_long", message)
    return texts


def _unfilled(
    mapping: LeadMapping, data: Mapping[str, pa.Array], problems: Sequence[Problem]
) -> list[Problem]:
    """Return a problem for each row that lacks a required field, or has only other text for it."""
    unfilled: list[Problem] = []
    for field in mapping.required:
        of_field = [problem for problem in problems if problem.field == field]
        unfit = {problem.row for problem in of_field if problem.code in _FILLS_NO_FIELD}
        unreadable = {problem.row for problem in of_field if problem.code == NOT_PLAIN}
        rows = {*_rows(data[field].is_null()), *unfit} - unreadable
        message = f"{field} is required and missing. Fill it in, or drop the row."
        name = str(mapping.data[field])
        unfilled += [Problem(row, name, field, "missing_required_field", message) for row in rows]
    return unfilled


def _missing_everywhere(
    mapping: LeadMapping, data: Mapping[str, pa.Array], sent: np.ndarray[Any, Any]
) -> list[Problem]:
    """Return a problem of the first row to send for each data field that no row to send has."""
    return [
        Problem(
            int(sent[0]),
            str(mapping.data[field]),
            field,
            MISSING_EVERYWHERE,
            f"{field} is missing in every row to send. Check the column, or omit the field.",
        )
        for field, texts in data.items()
        if len(sent) and texts.take(pa.array(sent)).null_count == len(sent)
    ]


def _rows(mask: pa.Array) -> list[int]:
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False)).tolist()


def _problems_frame(problems: Sequence[Problem], index: pd.Index) -> pd.DataFrame:
    """Return one row per problem, in row order, with the rows' index labels."""
    ordered = sorted(problems, key=lambda problem: problem.row)
    dtypes = {"row": "Int64", **dict.fromkeys(Problem._fields[1:], STR)}
    table = pd.DataFrame(ordered, columns=list(dtypes), dtype="object").astype(dtypes)
    labels = index.to_flat_index().take([problem.row for problem in ordered])
    table.insert(1, "index", pd.Series(labels))
    return table
