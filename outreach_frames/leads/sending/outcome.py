"""The outcome of each row of a request, by its response or by the error in place of one."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from outreach_frames import spec
from outreach_frames.client.response import excerpt
from outreach_frames.common.text import shorten
from outreach_frames.errors import (
    BadRequestError,
    OutreachError,
    ServiceError,
    UnsafeLinkError,
    ValidationFailedError,
    ValidationProblem,
)
from outreach_frames.identity.keys import email_key, is_certain, profnet_url_key
from outreach_frames.leads import statuses

_EMAIL, _PROFNET_URL = spec.LEAD_IDENTIFIERS
_KEYS: Final = {_EMAIL: email_key, _PROFNET_URL: profnet_url_key}
_TOTAL, _TOTAL_ADDED, _DUPLICATE_EMAILS = (field.name for field in spec.ADD_LEADS_RESULT[:3])
# A list that the interface does not show gives its name as a status only where it looks like one.
_STATUS_PATTERN: Final = re.compile("[a-z][a-z0-9_]*")
# Without their underscores, so that no list's name can be mistaken for one of these.
_KNOWN_WORDS: Final = frozenset(status.replace("_", "") for status in statuses.STATUSES)

_DETAIL_CHARACTERS: Final = 500
_SENT_BEFORE: Final = "It was sent before, with no known outcome."
_MAY_HAVE_ACTED: Final = "The service may have acted all the same."

# What may be wrong with an entry of a list, in the order of the notes.
_NOT_SENT: Final = "names what was not sent"
_SEVERAL: Final = "names as one lead what was sent as two"
_ONCE: Final = "names what was sent only once"


class RowOutcome(NamedTuple):
    """The outcome of one row."""

    status: str
    detail: str = ""
    error_code: str | None = None


class ChunkOutcome(NamedTuple):
    """The outcomes of the rows of one request, and what else the service said."""

    rows: tuple[RowOutcome, ...]
    notes: tuple[str, ...]


def read_response(
    identifiers: Sequence[tuple[str | None, str | None]], response: object
) -> ChunkOutcome:
    """Read the response to a request that added leads: one status for each lead.

    `added` needs proof. The leads that no list of skipped leads names are the candidates. All of
    them were added where the response is about this request (`total` is the number of leads sent,
    and every lead that it names was sent) and `total_added_to_sequence` is the number of
    candidates. Where it is any other number it is unknown which were added, so the candidates are
    `unknown`. Where it is larger, some of the skipped leads were added too, so those are `unknown`
    as well.

    A list of duplicates names what the service takes for the same person as another lead, though
    the plan sends everybody once. It may have added either one, or neither. So a lead that only
    such a list names remains a candidate, and is `duplicate_in_request` only where the counts leave
    room for that.

    Parameters
    ----------
    identifiers : sequence of (email, profnet_url)
        As sent, in order; no two have the same `email_key`, and each pair has at least one.
    response : object
        The JSON value of any 2xx.

    Returns
    -------
    ChunkOutcome
        One outcome for each lead, in order, and notes in words. Never more leads are `added` than
        the response says. A response that is not a success result makes all of them `unknown`.

    Notes
    -----
    Interface: POST /sequences/{id}/leads, "Add-leads success result".

    Examples
    --------
    >>> response = {
    ...     "total": 2,
    ...     "total_added_to_sequence": 1,
    ...     "recently_contacted_and_skipped": [{"email": "ADA@example.com"}],
    ... }
    >>> outcome = read_response([("ada@example.com", None), ("bo@example.com", None)], response)
    >>> [row.status for row in outcome.rows]
    ['recently_contacted', 'added']
    """
    sent = len(identifiers)
    if not isinstance(response, dict) or _TOTAL_ADDED not in response:
        lost = RowOutcome(statuses.UNKNOWN, "The service's response does not give its outcome.")
        note = f"The service's response makes no sense: {_shown(response)}"
        return ChunkOutcome((lost,) * sent, (note,))
    lists = _read_lists(identifiers, response)
    duplicates = {
        row for row, named in lists.named.items() if set(named) == {statuses.DUPLICATE_IN_REQUEST}
    }
    candidates = {row for row in range(sent) if row not in lists.named or row in duplicates}
    total, added = response.get(_TOTAL), response[_TOTAL_ADDED]
    count = added if type(added) is int else -1
    is_ours = type(total) is int and total == sent
    if not is_ours:
        problem = f"The service says that it got {_shown(total)} leads, and {sent} were sent."
    elif count != len(candidates) or lists.names_others:
        problem = _count_problem(added, len(candidates), len(duplicates), lists.names_others)
    else:
        problem = ""
    rest = RowOutcome(statuses.UNKNOWN, problem) if problem else RowOutcome(statuses.ADDED)
    # What a list says holds only where the counts leave room for it.
    believed = set(lists.named) if is_ours and count <= len(candidates) else set()
    if count not in {0, len(candidates) - len(duplicates)}:
        believed -= duplicates
    rows = []
    for row in range(sent):
        named = lists.named.get(row, {})
        also = [*named]
        if row in believed:
            status = also.pop(0)
            rows.append(RowOutcome(status, named[status]))
        else:
            rows.append(rest)
        if also:
            lists.notes.append(
                f"The service has {_name(identifiers[row])} as {rows[row].status}, and as "
                f"{', '.join(also)} too."
                if row in believed
                else f"The service has {_name(identifiers[row])} as {', '.join(also)}, which its "
                "counts contradict."
            )
    return ChunkOutcome(tuple(rows), (*lists.notes, *([problem] if problem else [])))


@dataclass(slots=True)
class _Lists:
    """What the lists of a response say.

    Attributes
    ----------
    named : dict of row to dict of status to detail
        The first list first.
    names_others : bool
        Whether they name leads that were not sent, or name several as one.
    notes : list of str
    """

    named: dict[int, dict[str, str]] = field(default_factory=dict)
    names_others: bool = False
    notes: list[str] = field(default_factory=list)


def _read_lists(
    identifiers: Sequence[tuple[str | None, str | None]], response: Mapping[str, Any]
) -> _Lists:
    sent, lists = _Sent(identifiers), _Lists()
    for name in sorted(response, key=_rank):
        value, status = response[name], _status(name)
        if not value or name in (_TOTAL, _TOTAL_ADDED):
            continue
        if not status or not isinstance(value, list):
            lists.notes.append(f"The service also says {name}: {_shown(value)}")
            continue
        odd: dict[str, list[object]] = {_NOT_SENT: [], _SEVERAL: [], _ONCE: []}
        for entry in value:
            rows, says_more = sent.rows_of(entry)
            if len(rows) != 1:
                odd[_SEVERAL if rows else _NOT_SENT].append(entry)
                lists.names_others = True
                continue
            (row,) = rows
            detail = f"The service lists it as {_shown(entry)}." if says_more else ""
            if status == statuses.DUPLICATE_IN_REQUEST:
                odd[_ONCE].append(entry)
            elif status not in statuses.SKIPPED:
                detail = f"The service lists it in {name}. {detail}".rstrip()
            known = lists.named.setdefault(row, {})
            known[status] = f"{known.get(status, '')} {detail}".strip()
        for problem, entries in odd.items():
            if entries:
                lists.notes.append(f"{name} {problem}: {'; '.join(map(_shown, entries))}")
    return lists


def _status(name: str) -> str:
    """Return the status that a list of the result gives its leads; nothing for another field."""
    if name == _DUPLICATE_EMAILS or re.fullmatch(spec.DUPLICATE_URLS_PATTERN, name):
        return statuses.DUPLICATE_IN_REQUEST
    if not name.endswith(spec.SKIPPED_SUFFIX):
        return ""
    status = statuses.status_of_list(name)
    if status in ("", *statuses.SKIPPED):
        return status
    is_free = status.replace("_", "") not in _KNOWN_WORDS
    own_word = _STATUS_PATTERN.fullmatch(status) and is_free
    return excerpt((status if own_word else name).encode(errors="replace"))


def _rank(name: str) -> int:
    """Sort the lists in the interface's order, fields that it does not know last."""
    status = _status(name)
    known = statuses.STATUSES
    return known.index(status) if status in known else len(known)


class _Sent:
    """The leads of a request, by their normalised identifiers."""

    def __init__(self, identifiers: Sequence[tuple[str | None, str | None]]) -> None:
        self._rows: dict[str, dict[str, set[int]]] = {_EMAIL: {}, _PROFNET_URL: {}}
        for row, lead in enumerate(identifiers):
            for name, text in zip((_EMAIL, _PROFNET_URL), lead, strict=True):
                if text:
                    self._rows[name].setdefault(_key(name, text), set()).add(row)

    def rows_of(self, entry: object) -> tuple[Collection[int], bool]:
        """Return the rows that an entry names, and whether it says more than was sent."""
        if isinstance(entry, dict):
            names = [name for name, value in entry.items() if value]
            url = entry.get(_PROFNET_URL)
            if _EMAIL in names and isinstance(url, str) and self._is_weak(url):
                # Others may have a URL that says little: the address tells who is meant.
                names.remove(_PROFNET_URL)
            found = [self._find(name, entry[name]) for name in names]
        else:
            found = [rows for name in self._rows if (rows := self._find(name, entry))]
        hits = [rows for rows in found if rows]
        if not hits:
            return (), False
        common = set.intersection(*hits)
        return common or set.union(*hits), len(hits) < len(found)

    def _is_weak(self, url: str) -> bool:
        return bool(self._find(_PROFNET_URL, url)) and not is_certain(_key(_PROFNET_URL, url))

    def _find(self, name: str, value: object) -> set[int]:
        if name not in self._rows or not isinstance(value, str):
            return set()
        return self._rows[name].get(_key(name, value), set())


def _key(name: str, text: str) -> str:
    """Return the normalised form of an identifier, or the text itself where it has none."""
    return _KEYS[name](text) or text.strip()


def _count_problem(added: object, candidates: int, duplicates: int, names_others: bool) -> str:
    """Say why the counts do not prove that all candidates were added."""
    listed = f" ({duplicates} of them as a duplicate of something)" if duplicates else ""
    also = " It names leads that were not sent." if names_others else ""
    return (
        f"The service says {_shown(added)} added, and {candidates} leads are in none of its lists "
        f"of skipped leads{listed}.{also}"
    )


def _name(lead: tuple[str | None, str | None]) -> str:
    return next(text for text in lead if text)


def _shown(value: object) -> str:
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(something too deeply nested to show)"
    return excerpt(text.encode(errors="replace"))


class NextStep(Enum):
    """How a run continues."""

    GO_ON = "with the next request, unless several in a row were refused alike"
    SEARCH = "with parts of these rows, to find the field that some of them lack"
    DOUBT = "with the next request, unless there was doubt several times in a row"
    STOP = "not at all"


MISSING_LEAD_FIELD: Final = "missing_lead_field"

# What a 422 means for the run, by its error codes: nearly all are about the sequence or the
# account. The interface's list is not exhaustive: an unknown code may be about this request's leads
# alone, so the run continues, and stops after a few such refusals in a row.
THEN_BY_CODE: Final[Mapping[str, NextStep]] = MappingProxyType(
    dict.fromkeys(spec.ADD_LEADS_ERRORS, NextStep.STOP)
    | {MISSING_LEAD_FIELD: NextStep.SEARCH, "other_validation_error": NextStep.DOUBT}
)
# Of several codes, the first of these decides.
_ORDER: Final = (NextStep.STOP, NextStep.SEARCH, NextStep.DOUBT)


class Classification(NamedTuple):
    """The outcome of each row of a request, and how the run continues."""

    outcome: RowOutcome
    then: NextStep
    notes: tuple[str, ...] = ()


def classify(error: OutreachError) -> Classification:
    """Classify an error in place of a response.

    Parameters
    ----------
    error : OutreachError
        What sending the request raised.

    Returns
    -------
    Classification
        `rejected` where the service refused these leads, `not_sent` where it certainly did
        nothing and others may do better, `unknown` where it may have acted.

    Examples
    --------
    >>> classification = classify(ServiceError("The connection broke."))
    >>> classification.outcome.status, classification.then.name
    ('unknown', 'DOUBT')
    """
    match error:
        case ValidationFailedError():
            return _refused(error)
        case BadRequestError():
            return Classification(_outcome(statuses.REJECTED, error), NextStep.GO_ON)
        case ServiceError(status_code=HTTPStatus.REQUEST_ENTITY_TOO_LARGE):
            return Classification(
                _outcome(statuses.REJECTED, error, "A smaller chunk_size may help."), NextStep.GO_ON
            )
        case ServiceError(may_have_acted=True):
            # After a redirect the next request would meet the same.
            then = NextStep.STOP if isinstance(error, UnsafeLinkError) else NextStep.DOUBT
            return Classification(_outcome(statuses.UNKNOWN, error, _MAY_HAVE_ACTED), then)
    return Classification(_outcome(statuses.NOT_SENT, error), NextStep.STOP)


def classify_resend(error: OutreachError) -> Classification:
    """Classify an error for rows that were sent before with no known outcome.

    They stay `unknown`: whatever keeps them from being added now need not have kept the earlier
    send from it. A sequence may need a field today that it did not need then.

    >>> classify_resend(BadRequestError("No.", may_have_acted=False)).outcome.status
    'unknown'
    """
    classification = classify(error)
    outcome = classification.outcome
    detail = f"{outcome.detail} {_SENT_BEFORE}"
    return classification._replace(outcome=outcome._replace(status=statuses.UNKNOWN, detail=detail))


def reclassify_resent(outcome: RowOutcome) -> RowOutcome:
    """Return the outcome of a row that was sent before with no known outcome.

    A row that is skipped for any other reason than being there may be there, too: the earlier send
    may have added it before that reason came up.

    >>> reclassify_resent(RowOutcome("already_in_sequence")).status
    'present'
    >>> reclassify_resent(RowOutcome("recently_contacted")).status
    'unknown'
    """
    if outcome.status in {statuses.ADDED, statuses.UNKNOWN}:
        return outcome
    if outcome.status == statuses.ALREADY_IN_SEQUENCE:
        return outcome._replace(status=statuses.PRESENT)
    suffix = spec.SKIPPED_SUFFIX if outcome.status in statuses.SKIPPED else ""
    detail = f"It is skipped now ({outcome.status}{suffix}). {outcome.detail}".rstrip()
    return outcome._replace(status=statuses.UNKNOWN, detail=f"{detail} {_SENT_BEFORE}")


def _refused(error: ValidationFailedError) -> Classification:
    problems = sorted(error.validation_errors, key=lambda problem: _ORDER.index(_then(problem)))
    notes = tuple(map(_text, problems))
    if not problems:
        return Classification(_outcome(statuses.REJECTED, error), NextStep.DOUBT)
    detail, code = shorten("; ".join(notes), _DETAIL_CHARACTERS), problems[0].error_code or None
    return Classification(RowOutcome(statuses.REJECTED, detail, code), _then(problems[0]), notes)


def _then(problem: ValidationProblem) -> NextStep:
    return THEN_BY_CODE.get(problem.error_code, NextStep.DOUBT)


def _text(problem: ValidationProblem) -> str:
    return f"{problem.error_code}: {problem.message}" if problem.error_code else problem.message


def _outcome(status: str, error: OutreachError, advice: str = "") -> RowOutcome:
    return RowOutcome(status, f"{shorten(str(error), _DETAIL_CHARACTERS)} {advice}".strip())
