"""What a success answer says of each lead that was sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from outreach_frames import spec
from outreach_frames.client.response import excerpt
from outreach_frames.leads import statuses
from outreach_frames.tables.keys import email_key, profnet_url_key

_EMAIL, _PROFNET_URL = spec.LEAD_IDENTIFIERS
_TOTAL, _TOTAL_ADDED, _DUPLICATE_EMAILS = (field.name for field in spec.ADD_LEADS_RESULT[:3])
# What a service's list must not be taken for: these words are the package's own.
_OWN_WORDS: Final = frozenset(statuses.STATUSES) - {
    statuses.DUPLICATE_IN_REQUEST,
    *statuses.SKIPPED,
}


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """What became of one row."""

    status: str
    detail: str = ""
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class ChunkOutcome:
    """What became of the rows of one request, and what the service said that no row explains."""

    rows: tuple[RowOutcome, ...]
    notes: tuple[str, ...]


def read_answer(
    identifiers: Sequence[tuple[str | None, str | None]], answer: object
) -> ChunkOutcome:
    """Read the answer to a request that added leads: one status for each lead.

    A lead that a list of skipped leads names has that list's status. `added` needs a proof: the
    leads that were added are among those that no such list names (the candidates), and there are
    `total_added_to_sequence` of them. So when that number is the number of candidates, all of them
    were added, whatever else the answer names; when it is any other number, nobody can say which,
    and they are `unknown`. `total` must be the number of leads sent, else the answer is about
    something else.

    A list of duplicates names what the service took for the same as another lead, though the plan
    sends everything once. It may have added the one or the other, or neither, so a lead that only
    such a list names remains a candidate: it is `duplicate_in_request`, and proves nothing for the
    rest. An entry that fits no lead, or two, rules nobody out.

    Parameters
    ----------
    identifiers : sequence of (email, profnet_url)
        As sent, in order; at least one in each pair, no two addresses alike by `email_key`.
    answer : object
        The JSON value of any 2xx.

    Returns
    -------
    ChunkOutcome
        One outcome for each lead, in order, and notes in words. Never more leads are `added` than
        the answer says. An answer that is no success result makes all of them `unknown`.

    Notes
    -----
    Interface: POST /sequences/{id}/leads, "Add-leads success result".

    Examples
    --------
    >>> answer = {
    ...     "total": 2,
    ...     "total_added_to_sequence": 1,
    ...     "recently_contacted_and_skipped": [{"email": "ADA@example.com"}],
    ... }
    >>> outcome = read_answer([("ada@example.com", None), ("bo@example.com", None)], answer)
    >>> [row.status for row in outcome.rows]
    ['recently_contacted', 'added']
    """
    sent = len(identifiers)
    if not isinstance(answer, dict) or _TOTAL_ADDED not in answer:
        lost = RowOutcome(statuses.UNKNOWN, "The service's answer does not say what became of it.")
        return ChunkOutcome(
            (lost,) * sent, (f"The service's answer makes no sense: {_shown(answer)}",)
        )
    named, notes = _read_lists(identifiers, answer)
    candidates = {
        row for row in range(sent) if set(named.get(row, ())) <= {statuses.DUPLICATE_IN_REQUEST}
    }
    problem = _count_problem(answer, sent, candidates, named)
    if problem:
        notes.append(problem)
    rest = RowOutcome(statuses.UNKNOWN, problem) if problem else RowOutcome(statuses.ADDED)
    rows = []
    for row in range(sent):
        if row not in named:
            rows.append(rest)
            continue
        status, *others = named[row]
        rows.append(RowOutcome(status, named[row][status]))
        if others:
            lead = _name(identifiers[row])
            notes.append(f"The service has {lead} as {status}, and as {', '.join(others)} too.")
    return ChunkOutcome(tuple(rows), tuple(notes))


def _read_lists(
    identifiers: Sequence[tuple[str | None, str | None]], answer: Mapping[str, Any]
) -> tuple[dict[int, dict[str, str]], list[str]]:
    """Return status and detail that the lists give each row, the first list first, and notes."""
    by_email = {email_key(email): row for row, (email, _) in enumerate(identifiers) if email}
    by_url = {profnet_url_key(url): row for row, (_, url) in enumerate(identifiers) if url}
    named: dict[int, dict[str, str]] = {}
    notes = []
    for name in sorted(answer, key=_rank):
        value, status = answer[name], _status(name)
        if not value or name in (_TOTAL, _TOTAL_ADDED):
            continue
        if not status or not isinstance(value, list):
            notes.append(f"The service also says {name}: {_shown(value)}")
            continue
        strays: list[object] = []
        torn: list[object] = []
        again: list[object] = []
        for entry in value:
            rows, exactly = _rows_of(entry, by_email, by_url)
            if len(rows) != 1:
                (torn if rows else strays).append(entry)
                continue
            (row,) = rows
            detail = "" if exactly else f"The service lists it as {_shown(entry)}."
            if status == statuses.DUPLICATE_IN_REQUEST:
                again.append(entry)
            elif status not in statuses.SKIPPED:
                detail = f"The service lists it in {name}. {detail}".rstrip()
            known = named.setdefault(row, {})
            known[status] = f"{known.get(status, '')} {detail}".strip()
        for entries, problem in (
            (strays, "names what was not sent"),
            (torn, "names as one lead what was sent as two"),
            (again, "names what was sent only once"),
        ):
            if entries:
                notes.append(f"{name} {problem}: {'; '.join(map(_shown, entries))}")
    return named, notes


def _status(name: str) -> str:
    """Return the status that a list of the result gives its leads; nothing for another field."""
    if name == _DUPLICATE_EMAILS or re.fullmatch(spec.DUPLICATE_URLS_PATTERN, name):
        return statuses.DUPLICATE_IN_REQUEST
    if not name.endswith(spec.SKIPPED_SUFFIX):
        return ""
    status = statuses.status_of_list(name)
    return excerpt((name if status in _OWN_WORDS else status).encode(errors="replace"))


def _rank(name: str) -> int:
    """Put the lists in the interface's order, and the fields that it does not know behind."""
    status = _status(name)
    known = statuses.STATUSES
    return known.index(status) if status in known else len(known)


def _rows_of(
    entry: object, by_email: Mapping[str, int], by_url: Mapping[str, int]
) -> tuple[set[int], bool]:
    """Find the rows that an entry names, and whether it says nothing beyond what was sent."""
    fields = entry if isinstance(entry, dict) else {_EMAIL: entry, _PROFNET_URL: entry}
    rows, unused = set(), 0
    for name, value in fields.items():
        row = None
        if name == _EMAIL and isinstance(value, str):
            row = by_email.get(email_key(value))
        elif name == _PROFNET_URL and isinstance(value, str):
            row = by_url.get(profnet_url_key(value))
        if row is not None:
            rows.add(row)
        elif value:
            unused += 1
    return rows, not unused or not isinstance(entry, dict)


def _count_problem(
    answer: Mapping[str, Any], sent: int, candidates: set[int], named: Iterable[int]
) -> str:
    """Say why the counts prove nothing; nothing where they prove that all candidates were added."""
    total, added = answer.get(_TOTAL), answer[_TOTAL_ADDED]
    if type(total) is not int or total != sent:
        return f"The service says that it got {_shown(total)} leads, and {sent} were sent."
    if type(added) is not int or added != len(candidates):
        twice = len(candidates.intersection(named))
        duplicates = f" ({twice} of them as a duplicate of something)" if twice else ""
        return (
            f"The service says {_shown(added)} added, and {len(candidates)} leads are in none of "
            f"its lists of skipped leads{duplicates}."
        )
    return ""


def _name(lead: tuple[str | None, str | None]) -> str:
    return next(text for text in lead if text)


def _shown(value: object) -> str:
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(something too deeply nested to show)"
    return excerpt(text.encode(errors="replace"))
