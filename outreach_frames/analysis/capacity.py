"""How many emails the mailboxes send on which day, and how many leads these reach: pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from datetime import date
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from outreach_frames import spec
from outreach_frames.analysis.companies import require_columns
from outreach_frames.common.arguments import check_day, check_integer, check_one_of
from outreach_frames.common.text import plural
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.interchange import FrameLike, as_frame
from outreach_frames.tables.schema import frame_of_columns

Spread = Literal["by_limit", "evenly"]
# From daily limits and a number of emails to each mailbox's share of them.
Quotas = Callable[[Sequence[int], int], list[int]]

CAPACITY: Final = (
    spec.Field("date", format="date", note="day on which the mailbox sends"),
    spec.Field("mailbox_id", note="id of the mailbox"),
    spec.Field("email", note="address that the mailbox sends from"),
    spec.Field("emails", "integer", note="emails that the mailbox sends on that day"),
    spec.Field(
        "leads_reached",
        "integer",
        note="leads that all emails up to and including that day are enough for",
    ),
)
_NEEDED: Final = ("id", "email", "status", "daily_email_limit")
_MOST_DAYS: Final = 36_525
_MOST_NAMED: Final = 20
# The sums of whole numbers stay far below what 64 bits hold.
_MOST_EMAILS: Final = 10**15


def sending_capacity(
    mailboxes: FrameLike,
    leads: int | Sized,
    *,
    emails_per_lead: int = 1,
    start: str | date | None = None,
    freq: str | pd.offsets.BaseOffset = "B",
    spread: Spread = "by_limit",
) -> pd.DataFrame:
    """Return on which days the mailboxes can send a number of leads their emails.

    Parameters
    ----------
    mailboxes : DataFrame, also of Polars, DuckDB or Arrow
        Mailboxes, with the columns of `mailboxes`. Those that are active send, each its daily limit
        at most.
    leads : int or DataFrame, also of Polars, DuckDB or Arrow
        How many leads, or a frame with one row each.
    emails_per_lead : int
        Emails that each lead gets. They are pooled: any mailbox sends any of them.
    start : str or date, optional
        The first day that may be used; by default today.
    freq : str or DateOffset
        The days on which emails go out, as pandas takes them: "B" (Monday to Friday), "D", or
        ``pd.offsets.CustomBusinessDay(holidays=[...])``.
    spread : {"by_limit", "evenly"}
        by_limit: every mailbox sends in proportion to its limit, so that all are done on the same
        day. evenly: every mailbox sends the same number in all, so that a low limit takes longer.

    Returns
    -------
    DataFrame
        One row per day and mailbox that sends on it: date (datetime64), mailbox_id, email (str),
        emails (Int64), and leads_reached (Int64): how many leads the emails of all mailboxes up to
        and including that day are enough for, each with all of its emails. Empty with no leads.

    Raises
    ------
    InvalidInputError
        No mailbox is active with a daily limit, an argument is not usable, or it would take more
        than a hundred years.

    Warns
    -----
    OutreachWarning
        Some mailboxes cannot send; it says which, why, and how much sooner it would be done with
        them.

    Notes
    -----
    Interface: Mailbox, `status` and `daily_email_limit`. What the mailboxes send besides, and
    waits between the emails of a lead, are not known to it.

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
        raise InvalidInputError(f"emails_per_lead={each} sends nothing. Give 1 or more.")
    emails = _number_of_leads(leads) * each
    if emails > _MOST_EMAILS:
        raise InvalidInputError(f"{emails:,} emails are more than can be planned.")
    first = check_day("start", start)
    table = as_frame(mailboxes, "mailboxes", "the frame of mailboxes()")
    mailboxes, limits = _with_limits(table)
    statuses = mailboxes["status"].astype("str")
    sends = _are_positive(limits) & statuses.eq(spec.ACTIVE_MAILBOX_STATUS).to_numpy("bool")
    if not sends.any():
        raise InvalidInputError(_nobody(statuses))
    days = _days(quotas_of, limits[sends], emails)
    if max(days) > _MOST_DAYS:
        raise InvalidInputError(
            f"Sending {emails:,} emails takes {max(days):,} days at {limits[sends].sum():,} a day. "
            "Add mailboxes, raise their limits with set_daily_email_limit(), or take fewer leads."
        )
    if emails and not sends.all():
        everybody = _days(quotas_of, limits[_are_positive(limits)], emails)
        _warn_of(mailboxes.assign(daily_email_limit=limits)[~sends], max(days), max(everybody))
    senders = mailboxes[sends].assign(
        daily_email_limit=limits, quota=quotas_of(limits[sends].tolist(), emails)
    )
    return _plan(senders, days, _dates(first, freq, max(days)), each)


def _plan(
    senders: pd.DataFrame, days: Sequence[int], dates: pd.DatetimeIndex, emails_per_lead: int
) -> pd.DataFrame:
    """Let each mailbox send its limit a day until its quota is sent."""
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
        raise InvalidInputError(f"leads={number} is not a number of leads. Give 0 or more.")
    return number


def _with_limits(mailboxes: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return the mailboxes, numbered, and their limits, missing where the service gives none."""
    require_columns(mailboxes, _NEEDED, "mailboxes' columns", "mailboxes()")
    # Frames of several accounts put together have each label several times.
    mailboxes = mailboxes.reset_index(drop=True)
    ids = mailboxes["id"].astype("str").fillna(mailboxes["email"].astype("str"))
    twice = ids[ids.duplicated() & ids.notna()]
    if len(twice):
        raise InvalidInputError(
            f"The mailbox {twice.iloc[0]!r} is in the frame more than once, and its limit would "
            'count as often. Keep one row of each, as mailboxes.drop_duplicates("id") does.'
        )
    given = mailboxes["daily_email_limit"]
    try:
        if not pd.api.types.is_any_real_numeric_dtype(given):
            # By way of text, as dates and true would be numbers too.
            given = given.astype("str")
        limits = pd.to_numeric(given).astype("Int64")
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInputError(
            f"daily_email_limit has values that are not whole numbers: {error}"
        ) from error
    # No mailbox has more to send than everything there is.
    return mailboxes, limits.clip(upper=_MOST_EMAILS)


def _are_positive(limits: pd.Series[Any]) -> np.ndarray[Any, Any]:
    return limits.gt(0).fillna(False).to_numpy("bool")


def _nobody(statuses: pd.Series[str]) -> str:
    if not len(statuses):
        return "No mailbox can send: the frame of mailboxes is empty."
    counts = statuses.fillna("no status").value_counts()
    counted = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    return (
        f"No mailbox can send: none is {spec.ACTIVE_MAILBOX_STATUS} with a daily_email_limit above "
        f"0 ({counted}). Reconnect or activate one in the web app, or set a limit with "
        "set_daily_email_limit()."
    )


def _days(quotas_of: Quotas, limits: pd.Series[Any], emails: int) -> list[int]:
    """Return how many days each mailbox sends."""
    daily = limits.astype("int64").tolist()
    pairs = zip(quotas_of(daily, emails), daily, strict=True)
    return [-(-quota // limit) for quota, limit in pairs]


def _by_limit(limits: Sequence[int], emails: int) -> list[int]:
    """Share emails in proportion to limits; what a division leaves goes to the largest rests."""
    days, rest = divmod(emails, sum(limits))
    shares = [divmod(rest * limit, sum(limits)) for limit in limits]
    missing = rest - sum(share for share, _ in shares)
    largest = sorted(range(len(limits)), key=lambda place: -shares[place][1])[:missing]
    return [
        days * limit + shares[place][0] + (place in largest) for place, limit in enumerate(limits)
    ]


def _evenly(limits: Sequence[int], emails: int) -> list[int]:
    """Share emails alike; what a division leaves goes to the highest limits."""
    share, rest = divmod(emails, len(limits))
    highest = sorted(range(len(limits)), key=lambda place: -limits[place])[:rest]
    return [share + (place in highest) for place in range(len(limits))]


_SPREADS: Final[Mapping[str, Quotas]] = {
    "by_limit": _by_limit,
    "evenly": _evenly,
}


def _dates(first: pd.Timestamp, freq: Any, number: int) -> pd.DatetimeIndex:
    """Return the first days that emails go out on."""
    try:
        offset = pd.tseries.frequencies.to_offset(freq)
        dates = pd.date_range(first, periods=max(number, 2), freq=offset).normalize()
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidInputError(
            f"freq={freq!r} gives no days. Give what pandas takes, such as 'B' or 'D'."
        ) from error
    in_turn = len(dates) >= number and dates.is_monotonic_increasing and dates.is_unique
    if offset is None or not in_turn:
        raise InvalidInputError(
            f"freq={freq!r} does not give one day after the other, and limits are per day. "
            "Give 'B', 'D' or days that lie further apart."
        )
    return dates


def _warn_of(others: pd.DataFrame, days: int, everybody: int) -> None:
    """Name mailboxes that cannot send, and say how many days fewer it would take with them."""
    others = others.sort_values("daily_email_limit", ascending=False)
    texts = others[["id", "email", "status"]].astype("str")
    names = texts["email"].fillna(texts["id"]).fillna("one with no id or address")
    limits = others["daily_email_limit"].map("{:,} a day".format, na_action="ignore")
    rows = zip(
        names, texts["status"].fillna("no status"), limits.fillna("no daily limit"), strict=True
    )
    named = [f"{name} ({status}, {limit})" for name, status, limit in rows]
    more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
    warn(
        f"{plural(len(named), 'mailbox', 'mailboxes')} cannot send: "
        f"{', '.join(named[:_MOST_NAMED])}{more}. "
        + (
            f"With them it would take {plural(everybody, 'day')} instead of {days:,}."
            if everybody < days
            else f"With them it would not be done sooner than in {plural(days, 'day')}."
        )
    )
