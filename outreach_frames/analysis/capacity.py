"""Plan how many emails the mailboxes send per day, and how many leads they reach."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from heapq import heappop, heappush
from itertools import islice, pairwise
from typing import Any, Final, Literal, NamedTuple, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.analysis.companies import require_columns
from outreach_frames.common.arguments import check_day, check_integer, check_list, check_one_of
from outreach_frames.common.text import plural, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.keys import email_keys
from outreach_frames.tables.interchange import FrameLike, as_frame
from outreach_frames.tables.schema import frame_of_columns

Spread = Literal["by_limit", "evenly"]
# Maps daily limits and a number of emails to the number of emails per mailbox.
Quotas = Callable[[Sequence[int], int], list[int]]
LimitByDate = Mapping[str, int] | Mapping[date, int]
# The limits of a row from each day on.
Ramps = dict[int, dict[pd.Timestamp, int]]

CAPACITY: Final = (
    spec.Field("date", format="date", note="day on which the mailbox sends"),
    spec.Field("mailbox_id", note="id of the mailbox"),
    spec.Field("email", note="address that the mailbox sends from"),
    spec.Field("emails", "integer", note="emails that the mailbox sends on that day"),
    spec.Field(
        "leads_reached",
        "integer",
        note="leads that all of their emails were sent to by the end of that day",
    ),
    spec.Field(
        "leads_started",
        "integer",
        note="leads that at least one email was sent to by the end of that day",
    ),
)
_REQUIRED_COLUMNS: Final = ("id", "email", "status", "daily_email_limit")
_MAX_DAYS: Final = 36_525
_MAX_NAMED: Final = 20
# Keeps all sums far below the limit of 64-bit integers.
_MAX_EMAILS: Final = 10**15
# So many days that are all holidays end the search for a sending day.
_MAX_HOLIDAYS: Final = 1_000
_PLAIN_CONTAINS: Final = [kind.__contains__ for kind in (list, tuple, set, frozenset, dict)]


def sending_capacity(
    mailboxes: FrameLike,
    leads: int | Sized,
    *,
    emails_per_lead: int = 1,
    start: str | date | None = None,
    freq: str | pd.offsets.BaseOffset = "B",
    spread: Spread = "by_limit",
    email_days: Sequence[int] | None = None,
    ramp: LimitByDate | Mapping[str, LimitByDate] | None = None,
    holidays: Container[Any] | None = None,
) -> pd.DataFrame:
    """Plan on which days the mailboxes send a number of leads their emails.

    Parameters
    ----------
    mailboxes : DataFrame, also of Polars, DuckDB or Arrow
        Mailboxes, with the columns of `mailboxes`. Each active mailbox sends up to its daily limit.
    leads : int or DataFrame, also of Polars, DuckDB or Arrow
        The number of leads, or a frame with one row per lead.
    emails_per_lead : int
        Emails per lead, without waiting times. Any mailbox may send any of them.
    start : str or date, optional
        The first day to send on, as text YYYY-MM-DD or a date; by default today.
    freq : str or DateOffset
        The days to send on, as a pandas frequency: "B" (Monday to Friday), "D", or
        ``pd.offsets.CustomBusinessDay(weekmask="Mon Tue Wed Thu")``.
    spread : {"by_limit", "evenly"}
        by_limit: each mailbox sends in proportion to its limit; with constant limits, all finish on
        the same day. evenly: all mailboxes send the same number of emails (with email_days, to the
        same number of leads), and those with low limits take longer.
    email_days : list of int, optional
        The steps of the sequence, instead of emails_per_lead: the earliest day of each email, in
        sending days after the lead's first one, such as [0, 3, 7]. All emails of a lead come from
        the mailbox that started it. Follow-ups that are due go before new leads, in the order in
        which their leads started. A late email delays the following ones of its lead.
    ramp : dict, optional
        Limits that replace the mailboxes' own from a date on, as {date: limit} for all mailboxes,
        or {mailbox_id: {date: limit}}. Dates are text YYYY-MM-DD or date objects.
    holidays : list, set or calendar of dates, optional
        Days on which nothing is sent: dates, or an object that answers ``date in holidays``, such
        as one of the package holidays.

    Returns
    -------
    DataFrame
        One row per day and sending mailbox: date (datetime64), mailbox_id, email (str), emails
        (Int64), and two running counts over all mailboxes (Int64): leads_reached, the leads whose
        emails have all been sent by the end of that day, and leads_started, those with at least one
        email. emails_per_lead counts one lead after the other. Empty without leads.

    Raises
    ------
    InvalidInputError
        No mailbox is active with a daily limit, an argument is invalid or contradicts another, or
        sending would take more than 100 years.

    Warns
    -----
    OutreachWarning
        Some mailboxes cannot send: the warning names them, the reasons, and the days that they
        would save. Or several have the same address, which then counts once.

    Notes
    -----
    Interface: Mailbox, `status` and `daily_email_limit`. The plan ignores other emails of the
    mailboxes, and leads that leave the sequence because they answer.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     mailboxes = of.mailboxes(status="active")
    >>> plan = of.sending_capacity(mailboxes, leads=1_000, emails_per_lead=3, start="2026-03-02")
    >>> int(plan["emails"].sum()), int(plan["leads_reached"].iloc[-1])
    (3000, 1000)

    Three emails, the second after 3 sending days and the third after 7, from new mailboxes:

    >>> warming_up = {"2026-03-02": 10, "2026-03-09": 20, "2026-03-16": 40}
    >>> plan = of.sending_capacity(
    ...     mailboxes, leads=1_000, email_days=[0, 3, 7], ramp=warming_up, start="2026-03-02"
    ... )
    >>> print(plan.loc[plan["leads_started"] == 1_000, "date"].min().date())
    2026-03-10
    >>> print(plan["date"].max().date())
    2026-03-20
    """
    quotas_of = _SPREADS[check_one_of("spread", spread, _SPREADS)]
    each = check_integer("emails_per_lead", emails_per_lead)
    if each < 1:
        raise InvalidInputError(f"emails_per_lead={each} sends nothing. Pass 1 or more.")
    gaps = _gaps(email_days, each)
    # Without waiting times, each email is planned like a lead of its own.
    units = _number_of_leads(leads) * each
    emails = units * (len(gaps) + 1)
    if emails > _MAX_EMAILS:
        raise InvalidInputError(
            f"{emails:,} emails are more than can be planned. Pass fewer leads."
        )
    first = check_day("start", start)
    sending_days = partial(_sending_days, first, freq, _check_holidays(holidays, freq, first))
    table = as_frame(mailboxes, "mailboxes", "a frame from mailboxes()")
    mailboxes, limits = _with_limits(table)
    ramps = _ramps(ramp, mailboxes)
    statuses = mailboxes["status"].astype("str")
    rises = np.array([any(ramps.get(row, {}).values()) for row in mailboxes.index], dtype="bool")
    could_send = _are_positive(limits) | rises
    sends = could_send & statuses.eq(spec.ACTIVE_MAILBOX_STATUS).to_numpy("bool")
    if not sends.any():
        raise InvalidInputError(_no_sender(statuses))
    repeats = _repeat_addresses(mailboxes, sends)
    distinct = mailboxes.assign(daily_email_limit=limits)[~repeats]
    could_send, sends = could_send[~repeats], sends[~repeats]
    limits = distinct["daily_email_limit"].fillna(0).astype("int64")

    def schedule(who: np.ndarray[Any, Any], most: int) -> _Schedule | None:
        if gaps or ramps:
            days = islice(sending_days(), most)
            return _schedule_by_day(limits[who], ramps, quotas_of, units, gaps, days=days)
        return _schedule_by_quota(limits[who], quotas_of, units, most)

    plan = schedule(sends, _MAX_DAYS)
    if plan is None:
        fewest = max(_days(quotas_of, limits[sends], units)) if not (gaps or ramps) else None
        days = f"{fewest:,} days" if fewest else f"more than {_MAX_DAYS:,} days"
        raise InvalidInputError(
            f"Sending {emails:,} emails takes {days} at {limits[sends].sum():,} a day"
            f"{' and the limits of ramp' if ramps else ''}. Add mailboxes, raise their limits with "
            "set_daily_email_limit(), or pass fewer leads."
        )
    if emails and not sends.all():
        with_all = schedule(could_send, plan.days) or plan
        _warn_cannot_send(distinct[~sends], plan.days, with_all.days)
    dates = _dates(first, freq, max(plan.days, 2))
    if holidays is not None:
        dates = pd.DatetimeIndex([*islice(sending_days(), plan.days)], dtype=dates.dtype)
    senders = distinct[sends].iloc[plan.mailbox]
    ids, addresses = (senders[name].astype("str") for name in ("id", "email"))
    leads_reached, leads_started = plan.finished // each, -(-plan.started // each)
    values = [dates[plan.day], ids, addresses, plan.emails, leads_reached, leads_started]
    return frame_of_columns(CAPACITY, values)


def _gaps(email_days: Any, emails_per_lead: int) -> list[int]:
    """Return the sending days between the emails of a lead."""
    if email_days is None:
        return []
    is_list = isinstance(email_days, Iterable) and not isinstance(email_days, str | Mapping)
    days = [check_integer("email_days", day) for day in email_days] if is_list else []
    gaps = [later - earlier for earlier, later in pairwise(days)]
    if days[:1] != [0] or min(gaps, default=1) < 1:
        raise InvalidInputError(
            f"email_days={quoted(email_days)} is not a list of days that ascends from 0. Pass the "
            "earliest day of each email after the lead's first one, such as [0, 3, 7]."
        )
    if emails_per_lead != 1:
        raise InvalidInputError(
            f"emails_per_lead={emails_per_lead} does not go with email_days={quoted(days)}, which "
            "has a day per email. Pass only one of them."
        )
    return gaps


def _ramps(ramp: Any, mailboxes: pd.DataFrame) -> Ramps:
    """Return the limits by row and day."""
    if not isinstance(ramp, Mapping) or not any(
        isinstance(each, Mapping) for each in ramp.values()
    ):
        steps = _limits_by_day("ramp", {} if ramp is None else ramp)
        return dict.fromkeys(mailboxes.index, steps) if steps else {}
    rows = dict(zip(_mailbox_ids(mailboxes), mailboxes.index, strict=True))
    unknown = [key for key in ramp if key not in rows]
    if unknown:
        raise InvalidInputError(
            f"ramp has limits per mailbox, but {quoted(unknown[0])} is not the id of a mailbox in "
            f"the frame ({plural(len(unknown), 'such key')}). Pass ids of its column id."
        )
    return {rows[key]: _limits_by_day(f"ramp[{key!r}]", ramp[key]) for key in ramp}


def _limits_by_day(name: str, limits: Any) -> dict[pd.Timestamp, int]:
    if not isinstance(limits, Mapping):
        raise InvalidInputError(f"{name}={quoted(limits)} is not a dict. Pass {{date: limit}}.")
    # check_day reads None as today.
    days = [check_day(name, pd.NaT if day is None else day) for day in limits]
    values = [check_integer(name, value) for value in limits.values()]
    if min(values, default=0) < 0 or len(set(days)) < len(days):
        raise InvalidInputError(
            f"{name}={quoted(limits)} has a negative limit, or a date more than once. Pass one "
            "limit of 0 or more per date."
        )
    return {day: min(value, _MAX_EMAILS) for day, value in zip(days, values, strict=True)}


class _Schedule(NamedTuple):
    """The emails per day and mailbox, and how many leads started and finished by each day."""

    days: int
    day: np.ndarray[Any, Any]
    mailbox: np.ndarray[Any, Any]
    emails: np.ndarray[Any, Any]
    started: np.ndarray[Any, Any]
    finished: np.ndarray[Any, Any]


def _schedule_by_quota(
    limits: pd.Series[int], quotas_of: Quotas, emails: int, most: int
) -> _Schedule | None:
    """Send up to the limit until each mailbox's quota is sent, or return None if days run out."""
    days = _days(quotas_of, limits, emails)
    if max(days) > most:
        return None
    mailbox = np.arange(len(days)).repeat(days)
    day = np.concatenate([np.arange(number) for number in days])
    order = np.lexsort((mailbox, day))
    day, mailbox = day[order], mailbox[order]
    limit = limits.to_numpy("int64")[mailbox]
    quota = np.array(quotas_of(limits.tolist(), emails), dtype="int64")[mailbox]
    sent = np.minimum(limit, quota - day * limit)
    so_far = sent.cumsum()[np.searchsorted(day, day, side="right") - 1]
    return _Schedule(max(days), day, mailbox, sent, so_far, so_far)


def _schedule_by_day(
    limits: pd.Series[int],
    ramps: Ramps,
    quotas_of: Quotas,
    leads: int,
    gaps: Sequence[int],
    *,
    days: Iterable[pd.Timestamp],
) -> _Schedule | None:
    """Send follow-ups, then to new leads, day by day, or return None if days run out."""
    limit_of = limits.tolist()
    quotas = [_MAX_EMAILS] * len(limit_of)
    steps = [ramps.get(row, {}) for row in limits.index]
    highest = map(max, limit_of, (max(step.values(), default=0) for step in steps))
    # Days without end need not be tried one by one.
    if leads * (len(gaps) + 1) > sum(highest) * _MAX_DAYS:
        return None
    changes = [(day, place, step[day]) for place, step in enumerate(steps) for day in step]
    changes.sort(reverse=True)
    mailboxes = [_MailboxLeads(gaps) for _ in limit_of]
    rows: list[tuple[int, int, int, int, int]] = []
    started = finished = 0
    for number, day in enumerate(days):
        while changes and changes[-1][0] <= day:
            _, place, limit_of[place] = changes.pop()
        if number == 0 and quotas_of is _evenly:
            quotas = quotas_of(limit_of, leads)
        due = [one.send_due(number, limit) for one, limit in zip(mailboxes, limit_of, strict=True)]
        room = [
            min(limit - sent, quota - one.started)
            for limit, sent, quota, one in zip(limit_of, due, quotas, mailboxes, strict=True)
        ]
        new = room if started + sum(room) <= leads else _by_limit(room, leads - started)
        for one, count in zip(mailboxes, new, strict=True):
            one.start(number, count)
        started += sum(new)
        finished = sum(one.finished for one in mailboxes)
        sent = enumerate(map(sum, zip(due, new, strict=True)))
        rows += [(number, place, emails, started, finished) for place, emails in sent if emails]
        if finished == leads:
            break
    if finished < leads:
        return None
    table = np.array(rows, dtype="int64").reshape(-1, 5)
    return _Schedule(rows[-1][0] + 1 if rows else 0, *table.T)


@dataclass
class _MailboxLeads:
    """The leads that one mailbox started, in runs of consecutive leads at the same step."""

    gaps: Sequence[int]
    started: int = 0
    finished: int = 0
    # Heaps of (day, first lead, leads, step), and of the same without the day once it has come.
    waiting: list[tuple[int, int, int, int]] = field(default_factory=list)
    due: list[tuple[int, int, int]] = field(default_factory=list)

    def send_due(self, day: int, limit: int) -> int:
        """Send the follow-ups that are due, those of the earliest leads first, and count them."""
        while self.waiting and self.waiting[0][0] <= day:
            heappush(self.due, heappop(self.waiting)[1:])
        left = limit
        while self.due and left:
            first, leads, step = heappop(self.due)
            sent = min(leads, left)
            if sent < leads:
                heappush(self.due, (first + sent, leads - sent, step))
            self._schedule_next(day, first, sent, step)
            left -= sent
        return limit - left

    def start(self, day: int, leads: int) -> None:
        """Send the first email to new leads."""
        if leads:
            self._schedule_next(day, self.started, leads, 0)
            self.started += leads

    def _schedule_next(self, day: int, first: int, leads: int, step: int) -> None:
        if step == len(self.gaps):
            self.finished += leads
        else:
            heappush(self.waiting, (day + self.gaps[step], first, leads, step + 1))


def _number_of_leads(leads: object) -> int:
    if isinstance(leads, Sized) and not isinstance(leads, str | bytes | Mapping):
        return len(leads)
    number = check_integer("leads", leads)
    if number < 0:
        raise InvalidInputError(f"leads={number} is negative. Pass 0 or more.")
    return number


def _mailbox_ids(mailboxes: pd.DataFrame) -> pd.Series[str]:
    return mailboxes["id"].astype("str").fillna(mailboxes["email"].astype("str"))


def _with_limits(mailboxes: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return the mailboxes with a RangeIndex, and their limits as integers or missing."""
    require_columns(
        mailboxes, _REQUIRED_COLUMNS, "columns of mailboxes", "a frame from mailboxes()"
    )
    # Concatenated frames of several accounts have duplicate labels.
    mailboxes = mailboxes.reset_index(drop=True)
    ids = _mailbox_ids(mailboxes)
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


def _check_holidays(holidays: Any, freq: Any, first: pd.Timestamp) -> Container[date]:
    """Return a container of dates; plain collections are read, as text may stand for dates."""
    if holidays is None:
        return ()
    if isinstance(freq, pd.offsets.CustomBusinessDay) or str(freq).lstrip("0123456789") == "C":
        raise InvalidInputError(
            f"freq={freq!r} is a custom business day, which has its own holidays. Pass holidays "
            "with another frequency, such as 'B', or pass all of them in freq."
        )
    contains = getattr(type(holidays), "__contains__", None)
    is_plain = contains in _PLAIN_CONTAINS or (contains is None and isinstance(holidays, Iterable))
    if is_plain or hasattr(holidays, "dtype") or hasattr(holidays, "columns"):
        days = check_list("holidays", [*holidays] if isinstance(holidays, dict) else holidays)
        days = [pd.Timestamp(day) if isinstance(day, np.datetime64) else day for day in days]
        return {check_day("holidays", pd.NaT if day is None else day).date() for day in days}
    try:
        _ = first.date() in holidays
    except TypeError as error:
        raise InvalidInputError(
            f"holidays={quoted(holidays)} does not answer `date in holidays`. Pass dates, or a "
            "calendar of the package holidays."
        ) from error
    return cast("Container[date]", holidays)


def _sending_days(first: pd.Timestamp, freq: Any, holidays: Container[Any]) -> Iterator[Any]:
    """Yield the sending days, without end."""
    before, number, skipped = 0, 32, 0
    while True:
        for day in _dates(first, freq, number)[before:]:
            if day.date() not in holidays:
                skipped = 0
                yield day
            elif (skipped := skipped + 1) == _MAX_HOLIDAYS:
                raise InvalidInputError(
                    f"{skipped:,} days in a row, up to {day:%Y-%m-%d}, are holidays. Pass fewer."
                )
        before, number = number, number * 2


def _dates(first: pd.Timestamp, freq: Any, number: int) -> pd.DatetimeIndex:
    """Return the first days of a frequency."""
    try:
        offset = pd.tseries.frequencies.to_offset(freq)
        dates = pd.date_range(first, periods=number, freq=offset).normalize()
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
