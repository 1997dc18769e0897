"""Plan how many emails mailboxes send per day, and how many leads they finish."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from datetime import date
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.common import terms
from outreach_frames.common.arguments import check_day, check_integer, check_list
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import plural, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.keys import email_keys
from outreach_frames.tables.column_checks import require_columns, to_whole_numbers
from outreach_frames.tables.interchange import FrameLike, as_frame
from outreach_frames.tables.schema import frame_of_columns

LimitByDate = Mapping[str, int] | Mapping[date, int]
# Maps each mailbox row to its limits by start day.
Ramps = dict[int, dict[pd.Timestamp, int]]

CAPACITY: Final = (
    spec.Field("date", format="date", note="sending day"),
    spec.Field("mailbox_id", note="id of the mailbox"),
    spec.Field("email", note="address of the mailbox"),
    spec.Field("emails", "integer", note="number of emails that the mailbox sends on that day"),
    spec.Field(
        "leads_finished",
        "integer",
        note="number of leads that have received all emails by the end of that day",
    ),
    spec.Field(
        "leads_started",
        "integer",
        note="number of leads that have received at least one email by the end of that day",
    ),
)
_REQUIRED_COLUMNS: Final = ("email", "daily_email_limit")
_TAKES: Final = "a frame from mailboxes(), or one with the columns email and daily_email_limit"
_MAX_DAYS: Final = 36_525
_MAX_NAMED: Final = 20
# This maximum keeps all sums far below the limit of 64-bit integers.
_MAX_EMAILS: Final = 10**15


def sending_capacity(
    mailboxes: FrameLike,
    leads: int | Sized,
    *,
    email_days: Sequence[int] = (0,),
    start: str | date | None = None,
    freq: str | pd.offsets.BaseOffset = "B",
    ramp: LimitByDate | Mapping[str, LimitByDate] | None = None,
) -> pd.DataFrame:
    """Plan how many emails each mailbox sends per day to a number of leads.

    The plan ends on the earliest possible day. The leads that finish on that day are divided in
    proportion to what each mailbox can finish on it.

    Parameters
    ----------
    mailboxes : DataFrame, also of Polars, DuckDB or Arrow
        A frame of `mailboxes`, or a frame with the columns email and daily_email_limit. Each active
        mailbox sends up to its daily limit; without a column status, all are active.
    leads : int or DataFrame, also of Polars, DuckDB or Arrow
        The number of leads. A frame has one row per lead.
    email_days : list of int
        The earliest day of each email, in sending days after the lead's first email, such as 0, 3
        and 7; by default one email. Sending days are those of `freq`: with "W-WED", 3 means three
        weeks. One mailbox sends all emails to a lead. Due follow-ups are sent before emails to new
        leads; leads that started earlier come first. A late email delays the lead's later emails.
    start : str or date, optional
        The first sending day, as text YYYY-MM-DD or a date; by default today.
    freq : str or DateOffset
        The sending days as a pandas frequency, such as "B" (Monday to Friday) or "D". Holidays and
        other days: ``pd.offsets.CustomBusinessDay(weekmask="Mon Tue Wed Thu", holidays=[...])``.
    ramp : dict, optional
        Limits that replace daily_email_limit from a date on, as {date: limit} for all mailboxes, or
        {mailbox_id: {date: limit}}. Dates are text YYYY-MM-DD or date objects.

    Returns
    -------
    DataFrame
        One row per day and sending mailbox: date (datetime64), mailbox_id, email (str), emails
        (Int64), and two cumulative counts over all mailboxes (Int64). leads_finished counts leads
        that have received all emails by the end of that day; leads_started counts leads that have
        received at least one. `.attrs["last_day"]` is the last sending day, as text YYYY-MM-DD.
        Without leads, the frame is empty and the day is None.

    Raises
    ------
    InvalidInputError
        No active mailbox has a daily limit, an argument is invalid, or sending would take more than
        100 years.

    Warns
    -----
    OutreachWarning
        Some mailboxes cannot send: the warning names these mailboxes, their statuses and limits. Or
        several mailboxes that can send have the same address, which counts once.

    Notes
    -----
    Interface: Mailbox, `status` and `daily_email_limit`. The plan ignores emails that mailboxes
    send for other purposes, and leads that leave the sequence after an answer.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     mailboxes = of.mailboxes(status="active")
    >>> plan = of.sending_capacity(mailboxes.head(2), 200, start="2026-03-02")
    >>> plan[["date", "email", "emails", "leads_finished"]]
            date                                   email  emails  leads_finished
    0 2026-03-02  michael.smith.hale@brightforge.example      50              80
    1 2026-03-02       diego.vazquez@brightforge.example      30              80
    2 2026-03-03  michael.smith.hale@brightforge.example      50             160
    3 2026-03-03       diego.vazquez@brightforge.example      30             160
    4 2026-03-04  michael.smith.hale@brightforge.example      25             200
    5 2026-03-04       diego.vazquez@brightforge.example      15             200

    Plan three emails per lead, on sending days 0, 3 and 7, from new mailboxes with rising limits:

    >>> warming_up = {"2026-03-02": 10, "2026-03-09": 20, "2026-03-16": 40}
    >>> plan = of.sending_capacity(
    ...     mailboxes, leads=1_000, email_days=[0, 3, 7], ramp=warming_up, start="2026-03-02"
    ... )
    >>> print(plan.loc[plan["leads_started"] == 1_000, "date"].min().date())
    2026-03-10
    >>> print(plan["date"].max().date())
    2026-03-20
    """
    gaps = _gaps(email_days)
    number = _number_of_leads(leads)
    emails = number * (len(gaps) + 1)
    if emails > _MAX_EMAILS:
        raise InvalidInputError(
            f"{emails:,} emails exceed the maximum of {_MAX_EMAILS:,}. Pass fewer leads."
        )
    first = check_day("start", start)
    mailboxes, limits = _with_limits(as_frame(mailboxes, "mailboxes", _TAKES))
    ramps = _ramps(ramp, mailboxes)
    rises = np.array([any(ramps.get(row, {}).values()) for row in mailboxes.index], dtype="bool")
    sends = limits.gt(0).fillna(False).to_numpy("bool") | rises
    sends &= mailboxes["status"].eq(spec.ACTIVE_MAILBOX_STATUS).fillna(False).to_numpy("bool")
    if not sends.any():
        raise InvalidInputError(
            f"No mailbox can send: {_describe(mailboxes, limits) or 'there are no mailboxes'}. "
            "Reconnect or activate a mailbox in the web app, or raise its daily limit."
        )
    if emails and not sends.all():
        idle = plural(int((~sends).sum()), "mailbox", "mailboxes")
        warn(f"{idle} cannot send: {_describe(mailboxes[~sends], limits[~sends])}.")
    senders = mailboxes[sends & ~_repeat_addresses(mailboxes, sends)]
    limits = limits[senders.index].fillna(0).clip(lower=0).astype("int64")
    plan = _schedule(limits, ramps, number, gaps, _sending_days(first, freq))
    if plan is None:
        raise InvalidInputError(
            f"Sending {emails:,} emails would take more than {_MAX_DAYS:,} days at "
            f"{limits.sum():,} a day{' or the limits in ramp' if ramps else ''}. Add "
            "mailboxes, raise daily limits, or pass fewer leads."
        )
    day, mailbox = np.nonzero(plan.emails)
    senders = senders.iloc[mailbox]
    ids, addresses = (senders[name].astype(STR) for name in ("id", "email"))
    sent = plan.emails[day, mailbox]
    values = [plan.days[day], ids, addresses, sent, plan.finished[day], plan.started[day]]
    table = frame_of_columns(CAPACITY, values)
    table.attrs["last_day"] = None if table.empty else str(table["date"].iloc[-1].date())
    return table


def _gaps(email_days: object) -> list[int]:
    """Return the number of sending days between consecutive emails to a lead."""
    days = [check_integer("email_days", day) for day in check_list("email_days", email_days)]
    gaps = [later - earlier for earlier, later in pairwise(days)]
    if days[:1] != [0] or min(gaps, default=1) < 1:
        raise InvalidInputError(
            f"{terms.argument('email_days', email_days)} is not an ascending list from 0. Pass the "
            "earliest day of each email, counted from the lead's first email, such as [0, 3, 7]."
        )
    return gaps


def _ramps(ramp: Any, mailboxes: pd.DataFrame) -> Ramps:
    """Return the limits of `ramp` by mailbox row and start day."""
    if not isinstance(ramp, Mapping) or not any(
        isinstance(value, Mapping) for value in ramp.values()
    ):
        steps = _limits_by_day("ramp", {} if ramp is None else ramp)
        return dict.fromkeys(mailboxes.index, steps) if steps else {}
    ids = _mailbox_ids(mailboxes)
    known = set(ids)
    unknown = [key for key in ramp if key not in known]
    if unknown:
        raise InvalidInputError(
            f"ramp has the key {quoted(unknown[0])}, which is not the id of a mailbox in "
            f"the frame ({plural(len(unknown), 'unknown key')}). Pass ids from the column id."
        )
    limits = {key: _limits_by_day(f"ramp[{key!r}]", ramp[key]) for key in ramp}
    return {row: limits[key] for row, key in enumerate(ids) if key in limits}


def _limits_by_day(name: str, limits: Any) -> dict[pd.Timestamp, int]:
    if not isinstance(limits, Mapping):
        raise InvalidInputError(f"{name}={quoted(limits)} is not a dict. Pass {{date: limit}}.")
    # check_day would read None as today.
    days = [check_day(name, pd.NaT if day is None else day) for day in limits]
    values = [check_integer(name, value) for value in limits.values()]
    if min(values, default=0) < 0 or len(set(days)) < len(days):
        raise InvalidInputError(
            f"{name}={quoted(limits)} has a negative limit or a repeated date. Pass one "
            "limit of 0 or more per date."
        )
    return {day: min(value, _MAX_EMAILS) for day, value in zip(days, values, strict=True)}


class _Schedule(NamedTuple):
    """Emails by day and mailbox, and cumulative counts of started and finished leads by day."""

    days: pd.DatetimeIndex
    emails: np.ndarray[Any, Any]
    started: np.ndarray[Any, Any]
    finished: np.ndarray[Any, Any]


def _schedule(
    limits: pd.Series[int],
    ramps: Ramps,
    leads: int,
    gaps: Sequence[int],
    days: Iterable[pd.Timestamp],
) -> _Schedule | None:
    """Schedule follow-ups, then new leads, for each day; return None if `days` are too few."""
    limit = limits.to_numpy("int64", copy=True)
    mailbox_ramps = [ramps.get(row, {}) for row in limits.index]
    highest = map(max, limit.tolist(), (max(ramp.values(), default=0) for ramp in mailbox_ramps))
    if leads * (len(gaps) + 1) > sum(highest) * _MAX_DAYS or sum(gaps) > _MAX_DAYS:
        return None
    changes = [(day, place, ramp[day]) for place, ramp in enumerate(mailbox_ramps) for day in ramp]
    changes.sort(reverse=True)
    # One array per day: the number of emails sent before that day, by step and mailbox.
    history = [np.zeros((len(gaps) + 1, len(limit)), "int64")]
    sending_days: list[pd.Timestamp] = []
    for day in days:
        while changes and changes[-1][0] <= day:
            _, mailbox, new_limit = changes.pop()
            limit[mailbox] = new_limit
        if not changes and not limit.any():
            return None
        sent, left = history[-1].copy(), limit.copy()
        # Leads that started earlier are at later steps, so begin with the last step.
        for step in range(len(gaps), 0, -1):
            # A follow-up is due when its gap has passed since the previous email.
            days_before_gap = max(len(history) - gaps[step - 1], 0)
            previous_emails = history[days_before_gap][step - 1]
            emails = np.minimum(previous_emails - sent[step], left)
            sent[step] += emails
            left -= emails
        sent[0] += left
        history.append(sent)
        sending_days.append(day)
        if sent[-1].sum() >= leads:
            break
    else:
        return None
    counts = np.array(history)
    # No lead delays an earlier lead, so dropping the surplus leads changes no other email.
    before, after = counts[-2:, -1]
    rest = leads - int(before.sum())
    last = _divided(rest, (after - before).tolist()) if rest else np.zeros_like(after)
    counts = np.minimum(counts, before + last)
    totals = counts[1:].sum(axis=2)
    emails = np.diff(counts.sum(axis=1), axis=0)
    return _Schedule(pd.DatetimeIndex(sending_days), emails, totals[:, 0], totals[:, -1])


def _number_of_leads(leads: object) -> int:
    if isinstance(leads, Sized) and not isinstance(leads, str | bytes | Mapping):
        return len(leads)
    number = check_integer("leads", leads)
    if number < 0:
        raise InvalidInputError(f"{terms.argument('leads', number)} is negative. Pass 0 or more.")
    return number


def _mailbox_ids(mailboxes: pd.DataFrame) -> pd.Series[str]:
    return mailboxes["id"].astype(STR).fillna(mailboxes["email"].astype(STR))


def _with_limits(mailboxes: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return the mailboxes with a RangeIndex, and their daily limits as nullable integers."""
    names = [*_REQUIRED_COLUMNS, *(name for name in ("id", "status") if name in mailboxes.columns)]
    require_columns(mailboxes, names, "columns of mailboxes", _TAKES)
    # Concatenated frames have duplicate labels.
    mailboxes = mailboxes[names].reset_index(drop=True)
    if "id" not in names:
        mailboxes["id"] = mailboxes["email"]
    if "status" not in names:
        mailboxes["status"] = spec.ACTIVE_MAILBOX_STATUS
    limits = to_whole_numbers(mailboxes["daily_email_limit"], "daily_email_limit")
    # A limit above the maximum number of emails has no effect.
    return mailboxes, limits.clip(upper=_MAX_EMAILS)


def _repeat_addresses(mailboxes: pd.DataFrame, sends: np.ndarray[Any, Any]) -> Any:
    """Warn of sending rows with the address, else id, of an earlier one; return these rows."""
    texts = pa.array(mailboxes["email"].astype(STR), from_pandas=True)
    keys = email_keys(texts).to_pandas().fillna(_mailbox_ids(mailboxes)).where(sends)
    repeats = (keys.duplicated() & keys.notna()).to_numpy("bool")
    if repeats.any():
        first = mailboxes[repeats].iloc[0]
        warn(
            f"{plural(int(repeats.sum()), 'mailbox has', 'mailboxes have')} the address of another "
            f"row, such as {first['id']} ({first['email']}). Each address counts once, with the "
            "daily limit of its first row that can send. To choose the limit, keep one row per "
            "address."
        )
    return repeats


def _divided(leads: int, weights: Sequence[int]) -> list[int]:
    """Divide leads in proportion to weights; rows with the largest remainders get one more."""
    shares = [divmod(leads * weight, sum(weights)) for weight in weights]
    remaining = leads - sum(share for share, _ in shares)
    largest = sorted(range(len(weights)), key=lambda place: -shares[place][1])[:remaining]
    return [share + 1 if place in largest else share for place, (share, _) in enumerate(shares)]


def _sending_days(first: pd.Timestamp, freq: Any) -> Iterator[Any]:
    """Yield the days of a frequency."""
    try:
        offset = pd.tseries.frequencies.to_offset(freq)
        day = offset.rollforward(first)
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"{terms.argument('freq', freq)} is not a pandas frequency. Pass a frequency such as "
            "'B' or 'D'."
        ) from error
    for _ in range(_MAX_DAYS):
        yield day
        following = (day + offset).normalize()
        if following <= day:
            raise InvalidInputError(
                f"{terms.argument('freq', freq)} does not produce distinct days in order, but "
                "limits are per day. Pass 'B', 'D' or a longer frequency."
            )
        day = following


def _describe(mailboxes: pd.DataFrame, limits: pd.Series[Any]) -> str:
    """List mailboxes with their statuses and limits."""
    texts = mailboxes[["email", "id", "status"]].assign(limit=limits).astype(STR).fillna("none")
    named = [
        f"{email} (id {identity}, status {status}, limit {limit})"
        for email, identity, status, limit in texts.itertuples(index=False)
    ]
    more = f" and {len(named) - _MAX_NAMED:,} more" if len(named) > _MAX_NAMED else ""
    return f"{', '.join(named[:_MAX_NAMED])}{more}"
