"""Plan how many emails the mailboxes send per day, and how many leads they reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from datetime import date
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.analysis.companies import require_columns
from outreach_frames.common.arguments import check_day, check_integer, check_one_of
from outreach_frames.common.text import plural
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.keys import email_keys
from outreach_frames.tables.interchange import FrameLike, as_frame
from outreach_frames.tables.schema import frame_of_columns

Spread = Literal["by_limit", "evenly"]
# Maps daily limits and a number of emails to the number of emails per mailbox.
Quotas = Callable[[Sequence[int], int], list[int]]

CAPACITY: Final = (
    spec.Field("date", format="date", note="day on which the mailbox sends"),
    spec.Field("mailbox_id", note="id of the mailbox"),
    spec.Field("email", note="address that the mailbox sends from"),
    spec.Field("emails", "integer", note="emails that the mailbox sends on that day"),
    spec.Field(
        "leads_reached",
        "integer",
        note="leads covered by the emails sent by the end of that day",
    ),
)
_REQUIRED_COLUMNS: Final = ("id", "email", "status", "daily_email_limit")
_MAX_DAYS: Final = 36_525
_MAX_NAMED: Final = 20
# Keeps all sums far below the limit of 64-bit integers.
_MAX_EMAILS: Final = 10**15


def sending_capacity(
    mailboxes: FrameLike,
    leads: int | Sized,
    *,
    emails_per_lead: int = 1,
    start: str | date | None = None,
    freq: str | pd.offsets.BaseOffset = "B",
    spread: Spread = "by_limit",
) -> pd.DataFrame:
    """Plan on which days the mailboxes send a number of leads their emails.

    Parameters
    ----------
    mailboxes : DataFrame, also of Polars, DuckDB or Arrow
        Mailboxes, with the columns of `mailboxes`. Each active mailbox sends up to its daily limit.
    leads : int or DataFrame, also of Polars, DuckDB or Arrow
        The number of leads, or a frame with one row per lead.
    emails_per_lead : int
        Emails per lead. Any mailbox may send any of them.
    start : str or date, optional
        The first day to send on, as text YYYY-MM-DD or a date; by default today.
    freq : str or DateOffset
        The days to send on, as a pandas frequency: "B" (Monday to Friday), "D", or
        ``pd.offsets.CustomBusinessDay(holidays=[...])``.
    spread : {"by_limit", "evenly"}
        by_limit: each mailbox sends in proportion to its limit, and all finish on the same day.
        evenly: all mailboxes send the same number of emails, and those with low limits take longer.

    Returns
    -------
    DataFrame
        One row per day and sending mailbox: date (datetime64), mailbox_id, email (str), emails
        (Int64), and leads_reached (Int64): the leads covered by the emails that all mailboxes have
        sent by the end of that day, at emails_per_lead each. Empty without leads.

    Raises
    ------
    InvalidInputError
        No mailbox is active with a daily limit, an argument is invalid, or sending would take more
        than 100 years.

    Warns
    -----
    OutreachWarning
        Some mailboxes cannot send: the warning names them, the reasons, and the days that they
        would save. Or several have the same address, which then counts once.

    Notes
    -----
    Interface: Mailbox, `status` and `daily_email_limit`. The plan ignores other emails of the
    mailboxes and waiting times between the emails of a lead.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     mailboxes = of.mailboxes(status="active")
    >>> plan = of.sending_capacity(mailboxes, leads=1_000, emails_per_lead=3, start="2026-03-02")
    >>> int(plan["emails"].sum()), int(plan["leads_reached"].iloc[-1])
    (3000, 1000)
    """
    quotas_of = _SPREADS[check_one_of("spread", spread, _SPREADS)]
    each = check_integer("emails_per_lead", emails_per_lead)
    if each < 1:
        raise InvalidInputError(f"emails_per_lead={each} sends nothing. Pass 1 or more.")
    emails = _number_of_leads(leads) * each
    if emails > _MAX_EMAILS:
        raise InvalidInputError(
            f"{emails:,} emails are more than can be planned. Pass fewer leads."
        )
    first = check_day("start", start)
    table = as_frame(mailboxes, "mailboxes", "a frame from mailboxes()")
    mailboxes, limits = _with_limits(table)
    statuses = mailboxes["status"].astype("str")
    sends = _are_positive(limits) & statuses.eq(spec.ACTIVE_MAILBOX_STATUS).to_numpy("bool")
    if not sends.any():
        raise InvalidInputError(_no_sender(statuses))
    repeats = _repeat_addresses(mailboxes, sends)
    distinct = mailboxes[~repeats]
    limits, sends = limits[~repeats], sends[~repeats]
    days = _days(quotas_of, limits[sends], emails)
    if max(days) > _MAX_DAYS:
        raise InvalidInputError(
            f"Sending {emails:,} emails takes {max(days):,} days at {limits[sends].sum():,} a day. "
            "Add mailboxes, raise their limits with set_daily_email_limit(), or pass fewer leads."
        )
    if emails and not sends.all():
        with_all = _days(quotas_of, limits[_are_positive(limits)], emails)
        others = distinct.assign(daily_email_limit=limits)[~sends]
        _warn_cannot_send(others, max(days), max(with_all))
    senders = distinct[sends].assign(
        daily_email_limit=limits, quota=quotas_of(limits[sends].tolist(), emails)
    )
    return _plan(senders, days, _dates(first, freq, max(days)), each)


def _plan(
    senders: pd.DataFrame, days: Sequence[int], dates: pd.DatetimeIndex, emails_per_lead: int
) -> pd.DataFrame:
    """Plan each mailbox's emails per day, up to its limit, until its quota is sent."""
    mailbox = np.arange(len(days)).repeat(days)
    day = np.concatenate([np.arange(number) for number in days])
    order = np.lexsort((mailbox, day))
    day = day[order]
    rows = senders.iloc[mailbox[order]]
    limits = rows["daily_email_limit"].to_numpy("int64")
    emails = np.minimum(limits, rows["quota"].to_numpy("int64") - day * limits)
    so_far = emails.cumsum()[np.searchsorted(day, day, side="right") - 1]
    ids, addresses = (rows[name].astype("str") for name in ("id", "email"))
    values = [dates[day], ids, addresses, emails, so_far // emails_per_lead]
    return frame_of_columns(CAPACITY, values)


def _number_of_leads(leads: object) -> int:
    if isinstance(leads, Sized) and not isinstance(leads, str | bytes | Mapping):
        return len(leads)
    number = check_integer("leads", leads)
    if number < 0:
        raise InvalidInputError(f"leads={number} is negative. Pass 0 or more.")
    return number


def _with_limits(mailboxes: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return the mailboxes with a RangeIndex, and their limits as integers or missing."""
    require_columns(
        mailboxes, _REQUIRED_COLUMNS, "columns of mailboxes", "a frame from mailboxes()"
    )
    # Concatenated frames of several accounts have duplicate labels.
    mailboxes = mailboxes.reset_index(drop=True)
    ids = mailboxes["id"].astype("str").fillna(mailboxes["email"].astype("str"))
    duplicates = ids[ids.duplicated() & ids.notna()]
    if len(duplicates):
        raise InvalidInputError(
            f"The mailbox {duplicates.iloc[0]!r} is in the frame more than once, and its limit "
            'would count each time. Remove the duplicates: mailboxes.drop_duplicates("id").'
        )
    column = mailboxes["daily_email_limit"]
    try:
        if not pd.api.types.is_any_real_numeric_dtype(column):
            # Convert through text, because dates and booleans would become numbers.
            column = column.astype("str")
        limits = pd.to_numeric(column).astype("Int64")
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInputError(
            f"daily_email_limit has values that are not whole numbers: {error}. Correct them."
        ) from error
    # A limit above the maximum number of emails has no effect.
    return mailboxes, limits.clip(upper=_MAX_EMAILS)


def _repeat_addresses(mailboxes: pd.DataFrame, sends: np.ndarray[Any, Any]) -> Any:
    """Return which rows repeat an address, of senders first, and warn of them."""
    texts = pa.array(mailboxes["email"].astype("str"), from_pandas=True)
    keys = pc.coalesce(email_keys(texts), pc.utf8_lower(pc.utf8_trim_whitespace(texts)))
    ordered = keys.to_pandas().iloc[np.argsort(~sends, kind="stable")]
    repeats = (ordered.duplicated() & ordered.notna()).sort_index().to_numpy("bool")
    if repeats.any():
        first = mailboxes[repeats].iloc[0]
        warn(
            f"{plural(int(repeats.sum()), 'mailbox has', 'mailboxes have')} the address of another "
            f"row, such as {first['id']} ({first['email']}). Each address counts once, with the "
            "daily limit of its first row that can send. Drop the other rows to choose the limit."
        )
    return repeats


def _are_positive(limits: pd.Series[Any]) -> np.ndarray[Any, Any]:
    return limits.gt(0).fillna(False).to_numpy("bool")


def _no_sender(statuses: pd.Series[str]) -> str:
    if not len(statuses):
        return "No mailbox can send: the frame of mailboxes is empty. Pass active mailboxes."
    counts = statuses.fillna("no status").value_counts()
    counted = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    return (
        f"No mailbox can send, because no {spec.ACTIVE_MAILBOX_STATUS} mailbox has a "
        f"daily_email_limit above 0 ({counted}). Reconnect or activate a mailbox in the web app, "
        "or set a limit with set_daily_email_limit()."
    )


def _days(quotas_of: Quotas, limits: pd.Series[Any], emails: int) -> list[int]:
    """Return the number of sending days per mailbox."""
    daily = limits.astype("int64").tolist()
    pairs = zip(quotas_of(daily, emails), daily, strict=True)
    return [-(-quota // limit) for quota, limit in pairs]


def _by_limit(limits: Sequence[int], emails: int) -> list[int]:
    """Divide emails in proportion to limits; the largest remainders get one more."""
    days, rest = divmod(emails, sum(limits))
    shares = [divmod(rest * limit, sum(limits)) for limit in limits]
    remaining = rest - sum(share for share, _ in shares)
    largest = sorted(range(len(limits)), key=lambda place: -shares[place][1])[:remaining]
    return [
        days * limit + shares[place][0] + (place in largest) for place, limit in enumerate(limits)
    ]


def _evenly(limits: Sequence[int], emails: int) -> list[int]:
    """Divide emails evenly; the highest limits get one more for the remainder."""
    share, rest = divmod(emails, len(limits))
    highest = sorted(range(len(limits)), key=lambda place: -limits[place])[:rest]
    return [share + (place in highest) for place in range(len(limits))]


_SPREADS: Final[Mapping[str, Quotas]] = {
    "by_limit": _by_limit,
    "evenly": _evenly,
}


def _dates(first: pd.Timestamp, freq: Any, number: int) -> pd.DatetimeIndex:
    """Return the first sending days."""
    try:
        offset = pd.tseries.frequencies.to_offset(freq)
        dates = pd.date_range(first, periods=max(number, 2), freq=offset).normalize()
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidInputError(
            f"freq={freq!r} gives no days. Pass a pandas frequency, such as 'B' or 'D'."
        ) from error
    is_increasing = len(dates) >= number and dates.is_monotonic_increasing and dates.is_unique
    if offset is None or not is_increasing:
        raise InvalidInputError(
            f"freq={freq!r} does not give one day after the other, but limits are per day. "
            "Pass 'B', 'D' or a longer frequency."
        )
    return dates


def _warn_cannot_send(others: pd.DataFrame, days: int, days_with_all: int) -> None:
    """Warn which mailboxes cannot send, and how many days sending would take with them."""
    others = others.sort_values("daily_email_limit", ascending=False)
    texts = others[["id", "email", "status"]].astype("str")
    names = texts["email"].fillna(texts["id"]).fillna("a mailbox without id and address")
    limits = others["daily_email_limit"].map("{:,} a day".format, na_action="ignore")
    rows = zip(
        names, texts["status"].fillna("no status"), limits.fillna("no daily limit"), strict=True
    )
    named = [f"{name} ({status}, {limit})" for name, status, limit in rows]
    more = f" and {len(named) - _MAX_NAMED:,} more" if len(named) > _MAX_NAMED else ""
    warn(
        f"{plural(len(named), 'mailbox', 'mailboxes')} cannot send: "
        f"{', '.join(named[:_MAX_NAMED])}{more}. "
        + (
            f"With them, sending would take {plural(days_with_all, 'day')} instead of {days:,}."
            if days_with_all < days
            else f"With them, sending would still take {plural(days, 'day')}."
        )
    )
