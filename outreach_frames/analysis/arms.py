"""Assign rows to the arms of a test, such as two variants and a hold-out, by hashes of keys.

The first 64 bits of a key's hash are read as a number between 0 and 1. This range is divided among
the arms in the order of their names, in proportion to their shares. Exact arithmetic makes the
result the same on every machine.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from hashlib import blake2b
from itertools import accumulate
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.analysis.companies import column_of, near_column
from outreach_frames.common.arguments import check_integer, is_usable
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import PLACEHOLDERS, plural, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.cells import texts_of
from outreach_frames.identity.keys import certain_keys, email_cells, profnet_url_cells
from outreach_frames.identity.persons import (
    NONE,
    Identifiers,
    Rows,
    first_rows,
    numbers_of,
)
from outreach_frames.tables.columns import no_column_error, usual_column
from outreach_frames.tables.interchange import FrameLike, as_frame
from outreach_frames.tables.value_text import TEXT, column_texts, compose_texts, strip_texts

_PERSON: Final = "person"
_A_FORMER: Final = "A table of previous"
# Matches 7.0 and 7.50, converted from a number or read as text; RE2 leaves an unmatched group
# empty.
_TRAILING_ZEROS: Final = r"\A(-?\d+)(?:\.0+|(\.\d*[1-9])0+)\z"


def assign_arms(
    frame: pd.DataFrame,
    shares: Mapping[str, float],
    *,
    by: Hashable | pd.Series[Any],
    seed: int,
    name: str = "arm",
    email: Hashable | None = None,
    profnet_url: Hashable | None = None,
    previous: FrameLike | Sequence[FrameLike] | None = None,
) -> pd.DataFrame:
    """Assign rows to the arms of a test, such as two variants and a hold-out.

    The arm of a key depends only on the seed and the shares. The row order, the column's dtype and
    the machine do not matter. A person's key is the smallest of the person's addresses and profile
    URLs, so it may change if one of them is missing in the next batch of a campaign: save the
    assigned table, and pass it as `previous`.

    Parameters
    ----------
    frame : DataFrame
        The rows to assign; it is not changed.
    shares : dict of str to number
        The names of the arms and their weights, which need not sum to 1 or 100: 45 and 10 mean the
        same as 0.45 and 0.1. The actual shares deviate randomly from the weights.
    by : str, Series or "person"
        The source of the keys; rows with the same key get the same arm. Pass a column, a Series
        with the frame's index, such as `of.keys.domain(df["Website"])`, or "person" to use the
        email addresses and the profile URLs `/in/<name>`.
    seed : int
        The seed of the hash. Different seeds give independent assignments, so use one seed per
        campaign.
    name : str
        The name of the new column.
    email : str, optional
        With "person", the column with email addresses. If neither `email` nor `profnet_url` is
        passed, the columns with usual names are used, such as Email and Profile URL.
    profnet_url : str, optional
        With "person", the column with profile URLs.
    previous : DataFrame or list of DataFrames, optional
        The assigned tables of former batches, with the column `name`, and with the column `by`, or
        the columns `email` and `profnet_url` or ones with usual names. People, or values of the
        column `by`, that are in these tables keep the arm.

    Returns
    -------
    DataFrame
        The frame with the column `name` (ordered category, in the order of `shares`). Rows without
        a key have no arm.

    Raises
    ------
    InvalidInputError
        A share is not a positive number, the frame already has the column `name`, the column `by`
        does not exist, or the index of `by` differs from the frame's index. A person or value has
        several arms in `previous`, an arm there is not in `shares`, or `by` is a Series.

    Warns
    -----
    OutreachWarning
        Rows have no key, or keys differ only in case.

    Notes
    -----
    Keys are compared as text without surrounding blanks; 7.0 and 7.50 equal 7 and 7.5, but case and
    leading zeros matter. Placeholders such as n/a count as missing keys. With "person", rows that
    share an address or a profile URL `/in/<name>`, directly or through other rows, also of
    `previous`, are one person and get one arm. A person with a single address and no profile URL
    has the same arm as with `by=of.keys.email(df["email"])`. The order of the arms in `shares` does
    not matter; different shares or names change the assignment of people who are not in `previous`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> leads = pd.DataFrame({"email": ["ada@x.example", "bo@y.example", "Ada@X.example"]})
    >>> leads = leads.outreach.assign_arms({"A": 90, "holdout": 10}, by="person", seed=7)
    >>> leads["arm"].tolist()
    ['A', 'A', 'A']
    """
    weights = _check_shares(shares)
    number = check_integer("seed", seed)
    if not is_usable(name) or name in frame.columns:
        raise InvalidInputError(
            f"name={quoted(name)} is not the name of a new column. Pass another name, or drop the "
            "frame's column of that name."
        )
    is_person = isinstance(by, str) and by == _PERSON
    given = zip(spec.LEAD_IDENTIFIERS, (email, profnet_url), strict=True)
    passed = {kind: column for kind, column in given if column is not None}
    if passed and not is_person:
        raise InvalidInputError(
            f"{' and '.join(f'{kind}=' for kind in passed)} identify a person. Pass "
            f"by={_PERSON!r} too, or omit them."
        )
    parts = [_person_keys(frame, passed) if is_person else _column_keys(frame, by)]
    former = _former_tables(previous, by)
    if is_person:
        parts += [_person_keys(table, passed, _A_FORMER) for table in former]
    elif not isinstance(by, pd.Series):
        parts += [_keys_in(column_of(table, by, _A_FORMER))[0] for table in former]
    rows = Identifiers(*map(pa.concat_arrays, zip(*parts, strict=True)))
    first = first_rows(numbers_of(rows))
    smallest = _smallest_keys(rows, first)
    kept = _former_arms(former, name, weights, first[len(frame) :], smallest)
    first, smallest = first[: len(frame)], smallest[: len(frame)]
    if is_person:
        _warn_of_keyless(smallest, "no single email address or profile URL /in/<name>")
    own = _arms_of_keys(smallest, weights, number).tolist()
    arms = [kept.get(person, arm) for person, arm in zip(first.tolist(), own, strict=True)]
    categories = pd.Index(list(weights), dtype=STR)
    column = pd.Categorical.from_codes(arms, categories=categories, ordered=True)
    return frame.assign(**{name: column})


def _check_shares(shares: object) -> dict[str, Fraction]:
    if not isinstance(shares, Mapping) or not shares:
        raise InvalidInputError(
            f'Pass shares as arms and their weights, such as {{"A": 45, "B": 45, "holdout": 10}}, '
            f"not {quoted(shares)}."
        )
    weights: dict[str, Fraction] = {}
    for arm, share in shares.items():
        if not is_usable(arm) or arm != arm.strip():
            raise InvalidInputError(
                f"{quoted(arm)} in shares is not a valid name. Pass text without blanks around it."
            )
        try:
            # Convert the digits, so that 0.1 is exactly one tenth; texts are not accepted.
            weight = Fraction(0 if isinstance(share, str) else str(share))
        except ValueError:
            weight = Fraction(0)
        if weight <= 0:
            raise InvalidInputError(
                f"The share of the arm {quoted(arm)} is {quoted(share)}. Pass a positive number, "
                "or omit the arm."
            )
        weights[str.__str__(arm)] = weight
    return weights


def _arms_of_keys(keys: pa.Array, weights: Mapping[str, Fraction], seed: int) -> Rows:
    """Return the position of each key's arm in `weights`; -1 for a missing key."""
    names = sorted(weights)
    total = sum(weights.values())
    ends = [end * 2**64 // total for end in accumulate(weights[name] for name in names)]
    encoded = keys.dictionary_encode()
    digests = [
        blake2b(f"{seed}\n{key}".encode(), digest_size=8).digest()
        for key in encoded.dictionary.to_pylist()
    ]
    hashes = np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)
    places = np.searchsorted(np.array(ends[:-1], np.uint64), hashes, side="right")
    numbers = np.array([list(weights).index(name) for name in names])[places]
    codes = encoded.indices.fill_null(NONE).to_numpy(zero_copy_only=False)
    arms: Rows = np.append(numbers, NONE)[codes]
    return arms


def _smallest_keys(rows: Identifiers, first: Rows) -> pa.Array:
    """Return the smallest certain key of each row's person; `first` has the person's first row."""
    keys = pd.Series(pa.concat_arrays([rows.email, rows.url]).to_pylist(), np.tile(first, 2), STR)
    smallest = keys.dropna().sort_values()
    smallest = smallest[~smallest.index.duplicated()].reindex(first)
    return pa.array(smallest.to_list(), TEXT, from_pandas=True)


def _former_tables(previous: Any, by: Any) -> list[pd.DataFrame]:
    """Return the former tables as pandas frames."""
    if previous is None:
        return []
    if isinstance(by, pd.Series):
        raise InvalidInputError(
            f"With previous, pass a column or {_PERSON!r} as by, not a Series, which has no values "
            "for the rows of previous. Add the Series to each table as a column."
        )
    given = previous if isinstance(previous, list | tuple) else [previous]
    return [as_frame(one, "previous=", "a frame or a list of frames") for one in given]


def _former_arms(
    former: Sequence[pd.DataFrame],
    name: str,
    weights: Mapping[str, Fraction],
    first: Rows,
    smallest: pa.Array,
) -> dict[int, int]:
    """Return the position in `weights` of each person's former arm, by the person's first row."""
    columns = [column_texts(column_of(table, name, _A_FORMER)).texts for table in former]
    texts = [arm for column in columns for arm in column.to_pylist()]
    found: dict[int, str] = {}
    for person, arm in zip(first.tolist(), texts, strict=True):
        if arm is None:
            continue
        if arm not in weights:
            raise InvalidInputError(
                f"The arm {quoted(arm)} in previous is not in shares. Add it to shares, or drop "
                "the arm's rows from previous to assign these people again."
            )
        if found.setdefault(person, arm) != arm:
            raise InvalidInputError(
                f"{quoted(smallest[person].as_py())} has two arms in previous, "
                f"{quoted(found[person])} and {quoted(arm)}. Drop one arm's rows from previous."
            )
    return {person: list(weights).index(arm) for person, arm in found.items()}


def _column_keys(frame: pd.DataFrame, by: Any) -> Identifiers:
    """Return the keys of a column or Series; warn of rows without a key."""
    if isinstance(by, pd.Series):
        if not by.index.equals(frame.index):
            raise InvalidInputError(
                "The index of by differs from df.index. Pass by.reindex(df.index) to align it "
                "by label, or by.set_axis(df.index) to align it by position."
            )
        column, source = by, "by" if by.name is None else f"by, {quoted(by.name)}"
    elif by is None or not pd.api.types.is_hashable(by):
        raise InvalidInputError(
            f"Pass a column, a Series with the table's index, or {_PERSON!r} as by, not a "
            f"{type(by).__name__}. Convert values in the order of the rows with "
            "pd.Series(values, index=df.index)."
        )
    else:
        column, source = column_of(frame, by), f"the column {quoted(by)}"
    found, unreadable = _keys_in(column)
    keys = found.email
    problems = [f"Row {row}: {problem}" for row, problem in unreadable.items()]
    _warn_of_keyless(keys, f"no key or only a placeholder, such as n/a, in {source}", *problems[:1])
    distinct = keys.unique().drop_null()
    if twins := len(distinct) - pc.count_distinct(pc.utf8_lower(distinct)).as_py():
        warn(
            f"{plural(twins, 'key')} in {source} {'differs' if twins == 1 else 'differ'} from "
            "another key only in case and may get a different arm. If case does not matter, pass "
            "keys in lower case."
        )
    return found


def _keys_in(column: pd.Series[Any]) -> tuple[Identifiers, Mapping[int, str]]:
    """Return the keys of a column, and the problems of its unreadable cells by row."""
    read = column_texts(column)
    texts = compose_texts(strip_texts(read.texts.cast(TEXT)))
    texts = pc.replace_substring_regex(texts, _TRAILING_ZEROS, r"\1\2")
    is_placeholder = pc.is_in(pc.utf8_lower(texts), pa.array(sorted(PLACEHOLDERS), TEXT))
    keys = pc.if_else(is_placeholder, pa.scalar(None, TEXT), texts)
    none = pa.nulls(len(keys), TEXT)
    return Identifiers(keys, none, none), read.unreadable


def _person_keys(
    frame: pd.DataFrame, passed: Mapping[str, Hashable], table: str = "The table"
) -> Identifiers:
    """Return each row's email and profile URL; raise if the table has neither column."""
    if table == "The table" and _PERSON in frame.columns:
        raise InvalidInputError(
            f"by={_PERSON!r} is ambiguous, because the table has a column {_PERSON!r}. Pass "
            f"by=df[{_PERSON!r}] to use the column, or drop the column to use the person."
        )
    columns = {kind: near_column(frame, name, table) for kind, name in passed.items()}
    if table == _A_FORMER:
        columns = {kind: name for kind, name in columns.items() if name in frame.columns}
    columns = columns or {
        kind: name
        for kind in spec.LEAD_IDENTIFIERS
        if (name := usual_column(frame, kind, table)) is not None
    }
    if not columns:
        raise no_column_error(frame, spec.LEAD_IDENTIFIERS, table)
    emails, urls = (
        read(texts_of(column_of(frame, columns[kind], table))).single()
        if kind in columns
        else pa.nulls(len(frame), TEXT)
        for kind, read in zip(spec.LEAD_IDENTIFIERS, (email_cells, profnet_url_cells), strict=True)
    )
    return Identifiers(emails, certain_keys(urls), pa.nulls(len(frame), TEXT))


def _warn_of_keyless(keys: pa.Array, what: str, *reasons: str) -> None:
    rows = np.flatnonzero(keys.is_null())
    if len(rows):
        counted = plural(len(rows), "row has", "rows have")
        warn(" ".join([f"{counted} {what} and got no arm; the first is row {rows[0]}.", *reasons]))
