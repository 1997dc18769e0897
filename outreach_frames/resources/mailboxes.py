"""Mailboxes: the addresses that sequences send from, and their daily limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import compress
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pandas.api.types import is_numeric_dtype

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.arguments import (
    check_ids,
    check_integer,
    format_positions,
    is_missing,
)
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.text import plural, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import (
    AuthenticationError,
    ConfigurationError,
    ConnectionFailedError,
    InvalidInputError,
    InvalidResponseError,
    OutreachError,
    ServiceError,
    WaitTooLongError,
)
from outreach_frames.identity.keys import email_keys
from outreach_frames.reading.flatten import DtypeBackend, check_dtype_backend, records_frame
from outreach_frames.resources.paging import keeping_partial, list_frame
from outreach_frames.tables.column_checks import column_of, to_whole_numbers
from outreach_frames.tables.interchange import FrameLike, as_frame
from outreach_frames.tables.result_columns import DETAIL, OUTCOME
from outreach_frames.tables.value_text import python_values

_LIMIT: Final = spec.DAILY_EMAIL_LIMIT_BODY[0].name
_UPDATED: Final = "updated_at"
_STOPPING: Final = (AuthenticationError, ConfigurationError, WaitTooLongError)


def mailboxes(
    *,
    status: str | None = None,
    email_provider: str | None = None,
    user_email: str | None = None,
    dtype_backend: DtypeBackend = "numpy_nullable",
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
) -> pd.DataFrame:
    """List the account's mailboxes.

    Parameters
    ----------
    status : str, optional
        One of active, inactive, needs_reconnection.
    email_provider : str, optional
        One of google, outlook, other, other_mixed.
    user_email : str, optional
        The email address of the mailbox's user.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' nullable dtypes, or Arrow dtypes for all columns.
    refresh : bool
        Ask the service even if the cache has a fresh response.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, for long runs.
    client : Client, optional
        By default the client of the last `connect`.

    Returns
    -------
    DataFrame
        One row per mailbox: id, email, email_provider (str), daily_email_limit (Int64), status,
        user_id, user_name, user_email (str), created_at, updated_at (datetime64, UTC). The frame
        is empty if no mailbox matches.

    Raises
    ------
    InvalidInputError
        An argument is invalid; nothing was sent.
    ServiceError
        The service failed or could not be reached.

    Notes
    -----
    Interface: GET /mailboxes.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     set(of.mailboxes(status="active")["status"])
    {'active'}
    """
    return list_frame(
        client,
        spec.LIST_MAILBOXES,
        {"status": status, "email_provider": email_provider, "user_email": user_email},
        dtype_backend=dtype_backend,
        refresh=refresh,
        progress=progress,
    )


def set_daily_email_limit(
    mailboxes: str | Iterable[str] | Mapping[str, int] | FrameLike,
    limit: int | None = None,
    *,
    progress: bool | None = None,
    dtype_backend: DtypeBackend = "numpy_nullable",
    client: Client | None = None,
) -> pd.DataFrame:
    """Change the daily email limit of one or several mailboxes.

    Parameters
    ----------
    mailboxes : str, iterable of str, dict of str to int, or DataFrame, also of Polars and others
        One id or address, or several in a list or a column of a frame. A dict, or a Series of
        numbers, maps ids or addresses to limits. For a frame of `mailboxes()` with edited limits,
        or of columns email and daily_email_limit, only limits that differ from the service's
        current limits are sent. An address must belong to one mailbox only.
    limit : int, optional
        Emails per day, if `mailboxes` has no limits: a whole number, also as 41.0 or "41". The
        service decides which limits are valid.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, for long runs.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' nullable dtypes, or Arrow dtypes for all columns.
    client : Client, optional
        By default the client of the last `connect`.

    Returns
    -------
    DataFrame
        For one mailbox, the updated mailbox with the columns of `mailboxes()`. For several, one row
        per mailbox in the given order (a Series keeps its index), with the columns `outcome`
        (str: changed; differs, if the service reports another limit; failed; unknown, if the limit
        may have changed; not_sent) and `detail` (str, the reason). For a frame, only the rows whose
        limit differed, with their index; if the service updated a mailbox after the frame's
        `updated_at`, or either time is unknown, `detail` has the replaced limit.

    Raises
    ------
    InvalidInputError
        An id is invalid, an address belongs to no mailbox or to several, a row has no mailbox or no
        limit, a limit is not a whole number, or a mailbox has two limits; nothing was changed.
    ServiceError
        For one mailbox, the service failed or could not be reached; the limit may have changed if
        `may_have_acted` is True. For addresses and frames, the mailboxes could not be listed;
        nothing was changed.

    Warns
    -----
    OutreachWarning
        For several mailboxes, some limits were not changed. For a frame, the service updated
        mailboxes after the frame's `updated_at`, and the limits of these mailboxes were replaced.

    Notes
    -----
    Interface: PATCH /mailboxes/{id}. For addresses and frames, first GET /mailboxes without the
    cache.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     mailbox = of.mailboxes(status="active")["id"].iloc[0]
    ...     of.set_daily_email_limit(mailbox, 40)["daily_email_limit"].tolist()
    ...     mailboxes = of.mailboxes()
    ...     mailboxes.loc[mailboxes["id"] == mailbox, "daily_email_limit"] = 45
    ...     of.set_daily_email_limit(mailboxes)["daily_email_limit"].tolist()
    ...     by_address = {mailboxes["email"].iloc[0]: 30, mailboxes["email"].iloc[1]: 35}
    ...     of.set_daily_email_limit(by_address)["daily_email_limit"].tolist()
    [40]
    [45]
    [30, 35]
    """
    check_dtype_backend(dtype_backend)
    is_frame = hasattr(mailboxes, "columns")
    given: Any = as_frame(mailboxes, "set_daily_email_limit()") if is_frame else mailboxes
    ids, values = _names_and_limits(given, limit)
    limits = _limits_by_id(ids, values)
    connected, listed = resolve(client), None
    if is_frame or any("@" in name for name in ids):
        listed = _list_current(connected, progress)
        ids = _ids_of(ids, listed)
        limits = _limits_by_id(ids, values)
    labels = given.index if isinstance(given, pd.Series | pd.DataFrame) else pd.RangeIndex(len(ids))
    done: dict[str, dict[str, Any]] = {}

    def framed(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
        return records_frame(list(rows), (*spec.MAILBOX, OUTCOME, DETAIL), dtype_backend)

    try:
        if isinstance(mailboxes, str):
            row = _change(connected, ids[0], limits[ids[0]])
            return records_frame([row], spec.MAILBOX, dtype_backend)
        details = dict.fromkeys(ids, "")
        if is_frame and listed is not None:
            details = _differing(given, ids, limits, listed)
            is_sent = [identity in details for identity in ids]
            ids, labels = list(compress(ids, is_sent)), labels[is_sent]
        with keeping_partial(lambda: framed(done.values())):
            _change_all(connected, limits, details, progress, done)
    finally:
        connected._session.drop_cached(spec.LIST_MAILBOXES)
    return framed(done[identity] for identity in ids).set_axis(labels)


def _names_and_limits(given: Any, limit: int | None) -> tuple[list[str], list[int]]:
    """Return the ids or addresses, and a limit for each."""
    if isinstance(given, Mapping):
        names, limits = list(given), list(given.values())
    elif isinstance(given, pd.DataFrame):
        key = "email" if "id" not in given.columns and "email" in given.columns else "id"
        names = list(column_of(given, key))
        limits = list(python_values(column_of(given, _LIMIT)))
    elif isinstance(given, pd.Series) and limit is None and _has_limits(given):
        names, limits = list(given.index), list(python_values(given))
    else:
        names = check_ids("mailboxes", given)
        return names, [check_integer("limit", _whole_number(limit))] * len(names)
    if limit is not None:
        raise InvalidInputError("A dict or frame has a limit for each mailbox. Omit limit=.")
    names = check_ids("mailboxes", names)
    numbers = [*map(_whole_number, limits)]
    if empty := [place for place, number in enumerate(numbers) if number is None]:
        raise InvalidInputError(
            f"{plural(len(empty), 'mailbox has', 'mailboxes have')} no limit, such as "
            f"{quoted(names[empty[0]])} ({format_positions(empty)}). Fill in the limits, or drop "
            "the rows."
        )
    return names, [
        check_integer(f"The limit of the mailbox {quoted(name)}", number)
        for name, number in zip(names, numbers, strict=True)
    ]


def _has_limits(mailboxes: pd.Series[Any]) -> bool:
    """Return whether a column's values are numbers, and not ids or addresses."""
    return is_numeric_dtype(mailboxes) or all(
        not isinstance(_whole_number(value), str) for value in mailboxes.dropna()
    )


def _whole_number(value: Any) -> Any:
    """Return the whole number of a float or text, None if missing, or any other value unchanged."""
    with suppress(InvalidInputError):
        number = to_whole_numbers(pd.Series([value], dtype=object), _LIMIT).iloc[0]
        return None if is_missing(number) else int(number)
    return value


def _list_current(client: Client, progress: bool | None) -> pd.DataFrame:
    return mailboxes(refresh=True, progress=progress, client=client)


def _ids_of(names: list[str], listed: pd.DataFrame) -> list[str]:
    """Replace each address by the id of its mailbox."""
    addresses = pa.array([*names, *listed["email"]], pa.string(), from_pandas=True)
    keys = email_keys(addresses).to_pylist()
    ids_of_key: dict[str, list[str]] = {}
    for key, identity in zip(keys[len(names) :], listed["id"], strict=True):
        if key is not None:
            ids_of_key.setdefault(key, []).append(identity)
    ids = []
    for name, key in zip(names, keys, strict=False):
        matches = ids_of_key.get(key, []) if "@" in name else [name]
        if len(matches) != 1:
            belongs = f"several mailboxes ({', '.join(matches)})" if matches else "no mailbox"
            raise InvalidInputError(
                f"The address {quoted(name)} belongs to {belongs}. Pass the mailbox's id: "
                "of.mailboxes() lists ids and addresses."
            )
        ids += matches
    return ids


def _limits_by_id(ids: list[str], limits: list[int]) -> dict[str, int]:
    """Return the limits by id; reject different limits of a mailbox."""
    by_id: dict[str, int] = {}
    for identity, number in zip(ids, limits, strict=True):
        if by_id.setdefault(identity, number) != number:
            raise InvalidInputError(
                f"The mailbox {quoted(identity)} has two limits, {by_id[identity]} and {number}. "
                "Pass one limit."
            )
    return by_id


def _differing(
    frame: pd.DataFrame, ids: list[str], limits: Mapping[str, int], listed: pd.DataFrame
) -> dict[str, str]:
    """Map each id whose limit differs at the service to a note on the replaced limit, or ""."""
    listed = listed.set_index("id")
    current, updated = listed[_LIMIT].dropna().to_dict(), listed[_UPDATED].to_dict()
    seen: dict[str, Any] = {}
    if _UPDATED in frame.columns:
        times = pd.to_datetime(column_of(frame, _UPDATED), errors="coerce", utc=True)
        seen = dict(zip(ids, times, strict=True))
    details: dict[str, str] = {}
    newer: list[str] = []
    for identity, limit in limits.items():
        before = current.get(identity)
        if before == limit:
            continue
        now, then = updated.get(identity, pd.NaT), seen.get(identity, pd.NaT)
        if now > then:
            newer.append(identity)
            details[identity] = f"Updated since the frame was read: the limit was {before}."
        else:
            is_unknown = before is not None and (pd.isna(now) or pd.isna(then))
            details[identity] = f"The limit was {before}." if is_unknown else ""
    if newer:
        warn(
            f"{plural(len(newer), 'mailbox was', 'mailboxes were')} updated after the frame was "
            f"read, such as {newer[0]}. The column 'detail' has the replaced limits."
        )
    return details


def _change_all(
    client: Client,
    limits: Mapping[str, int],
    details: Mapping[str, str],
    progress: bool | None,
    done: dict[str, dict[str, Any]],
) -> None:
    """Change each limit once, store the outcomes by id, and warn of unchanged limits."""
    changes = {identity: limits[identity] for identity in details}
    bar = progress_bar(len(changes), description="limits", unit="mailboxes", progress=progress)
    with bar:
        for identity, row in zip(changes, _outcomes(client, changes), strict=True):
            if row[OUTCOME.name] not in {"failed", "not_sent"}:
                row[DETAIL.name] = f"{row[DETAIL.name]} {details[identity]}".strip()
            done[identity] = row
            bar.update()
    wrong = [row for row in done.values() if row[OUTCOME.name] != "changed"]
    if wrong:
        counts = Counter(row[OUTCOME.name] for row in wrong)
        counted = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())
        warn(
            f"Not all of {plural(len(done), 'mailbox', 'mailboxes')} were changed: {counted}. "
            f"The first is {wrong[0]['id']}: {wrong[0][DETAIL.name]}"
        )


def _change(client: Client, identity: str, limit: int) -> dict[str, Any]:
    """Change one limit and return the mailbox in the response."""
    body = {_LIMIT: limit}
    updated = client._session.write(spec.UPDATE_MAILBOX, path={"id": identity}, body=body)
    if not isinstance(updated, dict) or "id" not in updated:
        raise InvalidResponseError(
            "The response is not a mailbox. "
            "Check with mailboxes(refresh=True) whether the limit has changed.",
            request=spec.UPDATE_MAILBOX.label,
        )
    return updated


def _outcomes(client: Client, limits: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Change limits in order and yield the outcome of each."""
    stopped = False
    for identity, limit in limits.items():
        mailbox: dict[str, Any] = {"id": identity}
        outcome, detail = "not_sent", "Not sent, because the last error would have occurred again."
        if not stopped:
            try:
                mailbox = _change(client, identity, limit)
                reported = mailbox.get(_LIMIT)
                outcome, detail = "changed", ""
                if reported != limit:
                    outcome, detail = "differs", f"The service now reports {reported!r}."
            except OutreachError as error:
                acted = isinstance(error, ServiceError) and error.may_have_acted
                outcome, detail = "unknown" if acted else "failed", str(error)
                # The other mailboxes would fail with the same error.
                is_unreachable = isinstance(error, ConnectionFailedError) and not acted
                is_closed = type(error) is OutreachError
                stopped = is_unreachable or is_closed or isinstance(error, _STOPPING)
        yield {**mailbox, OUTCOME.name: outcome, DETAIL.name: detail}
