"""Derive the outcomes of a request's rows from its response or error."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from outreach_frames import spec
from outreach_frames.common.text import excerpt, shorten
from outreach_frames.errors import (
    BadRequestError,
    OutreachError,
    ServiceError,
    StatusError,
    UnsafeLinkError,
    ValidationFailedError,
    ValidationProblem,
)
from outreach_frames.identity.keys import email_key, is_certain, profnet_url_key
from outreach_frames.leads import statuses

_EMAIL, _PROFNET_URL = spec.LEAD_IDENTIFIERS
_KEYS: Final = {_EMAIL: email_key, _PROFNET_URL: profnet_url_key}
_TOTAL, _TOTAL_ADDED, _DUPLICATE_EMAILS = (field.name for field in spec.ADD_LEADS_RESULT[:3])
# The name of an undocumented list becomes a status only if it matches this pattern.
_STATUS_PATTERN: Final = re.compile("[a-z][a-z0-9_]*")
# Drop underscores, so that no undocumented list is confused with a known status.
_KNOWN_WORDS: Final = frozenset(status.replace("_", "") for status in statuses.STATUSES)

_DETAIL_CHARACTERS: Final = 500
TOO_LARGE: Final = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
_SENT_BEFORE: Final = "The row was sent before, with an unknown outcome."
_LISTED_BY_WEAK_URL: Final = "The service lists a URL that does not certainly identify the person."
_MAY_HAVE_ACTED: Final = "The service may have added the lead nevertheless."

_NO_OUTCOME: Final = "The service's response lacks the outcome."


class RowOutcome(NamedTuple):
    """The status of a row, with its detail and error code."""

    status: str
    detail: str = ""
    error_code: str | None = None


NO_RESPONSE: Final = RowOutcome(statuses.UNKNOWN, "Sent, but no response was received.")
# The package's own sentences, which journals record: after a crash, no other report has them.
_RECORDED_SENTENCES: Final = (NO_RESPONSE.detail, _NO_OUTCOME, _MAY_HAVE_ACTED, _SENT_BEFORE)
_NOT_RECORDED: Final = "The service's message is only in the report of the run that received it."
# Other statuses and codes of the service may be texts, which could name a person.
_RECORDED_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def without_messages(outcome: RowOutcome) -> RowOutcome:
    """Return an outcome as journals record it, without texts of the service.

    >>> without_messages(RowOutcome("rejected", "Nina is odd.", "lead Nina is odd")).error_code
    """
    sentences = [sentence for sentence in _RECORDED_SENTENCES if sentence in outcome.detail]
    if outcome.detail != " ".join(sentences):
        sentences.append(_NOT_RECORDED)
    status = outcome.status if _RECORDED_WORD.fullmatch(outcome.status) else statuses.SKIPPED_OTHER
    code = outcome.error_code if _RECORDED_WORD.fullmatch(outcome.error_code or "") else None
    return RowOutcome(status, " ".join(sentences), code)


class ChunkOutcome(NamedTuple):
    """The outcomes of a request's rows, and the service's other messages."""

    rows: tuple[RowOutcome, ...]
    notes: tuple[str, ...]
    # The rows listed as already in the sequence by their email or certain profile URL.
    certain: frozenset[int] = frozenset()


def read_response(
    identifiers: Sequence[tuple[str | None, str | None]], response: object
) -> ChunkOutcome:
    """Derive each lead's outcome from a 2xx response's JSON and the sent (email, profnet_url).

    The status `added` needs proof. Candidates are the leads that no list of skipped leads contains.
    Candidates are `added` if `total` equals the number of sent leads, all listed leads were sent,
    and `total_added_to_sequence` equals the number of candidates; otherwise candidates are
    `unknown`. If more leads were added than there are candidates, skipped leads are `unknown` too.
    A lead listed only as a duplicate remains a candidate, because the service may have added it.
    Such a lead is `duplicate_in_request` only if no lead was added.

    >>> sent = [("ada@example.com", None), ("bo@example.com", None)]
    >>> response = {
    ...     "total": 2,
    ...     "total_added_to_sequence": 1,
    ...     "recently_contacted_and_skipped": [{"email": "ADA@example.com"}],
    ... }
    >>> [row.status for row in read_response(sent, response).rows]
    ['recently_contacted', 'added']
    >>> response = {"total": 2, "total_added_to_sequence": 1, "duplicate_emails": [sent[1][0]]}
    >>> [row.status for row in read_response(sent, response).rows]
    ['unknown', 'unknown']
    """
    sent = len(identifiers)
    if not isinstance(response, dict) or _TOTAL_ADDED not in response:
        unknown = RowOutcome(statuses.UNKNOWN, _NO_OUTCOME)
        note = f"The service's response is not a valid result: {_shown(response)}"
        return ChunkOutcome((unknown,) * sent, (note,))
    lists = _read_lists(identifiers, response)
    duplicates = {
        row for row, named in lists.named.items() if set(named) == {statuses.DUPLICATE_IN_REQUEST}
    }
    candidates = {row for row in range(sent) if row not in lists.named or row in duplicates}
    total, added = response.get(_TOTAL), response[_TOTAL_ADDED]
    count = added if type(added) is int else -1
    is_this_request = type(total) is int and total == sent
    problem = ""
    if not is_this_request:
        problem = (
            f"The service reports {_shown_number(total)} received leads, but {sent} were sent."
        )
    elif count != len(candidates) or lists.is_inconsistent:
        problem = (
            f"The service reports {_shown_number(added)} added leads, but its lists of skipped "
            f"leads leave {len(candidates)}."
        )
        if lists.is_inconsistent:
            problem += " Other entries match no sent lead, or several."
    unlisted = RowOutcome(statuses.UNKNOWN, problem) if problem else RowOutcome(statuses.ADDED)
    # Use the lists unless the counts contradict them.
    skipped = set(lists.named) if is_this_request and count <= len(candidates) else set()
    if count != 0:
        # The service may have added any of the candidates.
        skipped -= duplicates
    rows = []
    for row in range(sent):
        named = lists.named.get(row, {})
        unused = [*named]
        if row in skipped:
            status = unused.pop(0)
            rows.append(RowOutcome(status, named[status]))
        else:
            rows.append(unlisted)
        if unused:
            shown = next(filter(None, identifiers[row]))
            lists.notes.append(f"The service also lists {shown} as {', '.join(unused)}.")
    if problem:
        lists.notes.append(problem)
    return ChunkOutcome(tuple(rows), tuple(lists.notes), frozenset(lists.certain))


@dataclass(slots=True)
class _Lists:
    """What a response's lists of skipped leads say about each row."""

    # Per row, the status and detail from each list that names it; the first list's come first.
    named: dict[int, dict[str, str]] = field(default_factory=dict)
    # Whether any entry matches no sent lead, or more than one.
    is_inconsistent: bool = False
    # The rows listed as already in the sequence by their email or certain profile URL.
    certain: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def _read_lists(
    identifiers: Sequence[tuple[str | None, str | None]], response: Mapping[str, Any]
) -> _Lists:
    sent, lists = _SentLeads(identifiers), _Lists()
    for name in sorted(response, key=_rank):
        value, status = response[name], _status(name)
        if not value or name in (_TOTAL, _TOTAL_ADDED):
            continue
        if not status or not isinstance(value, list):
            lists.notes.append(f"The service also returned {name}: {_shown(value)}")
            continue
        unmatched: list[object] = []
        for entry in value:
            rows, has_unsent_fields = sent.rows_of(entry)
            if len(rows) != 1:
                unmatched.append(entry)
                continue
            (row,) = rows
            detail = f"The service lists the lead as {_shown(entry)}." if has_unsent_fields else ""
            if status not in (statuses.DUPLICATE_IN_REQUEST, *statuses.SKIPPED):
                detail = f"The service lists the lead in {name}. {detail}".rstrip()
            if status == statuses.ALREADY_IN_SEQUENCE and sent.is_certain(entry):
                lists.certain.add(row)
            known = lists.named.setdefault(row, {})
            known[status] = f"{known.get(status, '')} {detail}".strip()
        if unmatched:
            lists.is_inconsistent = True
            shown = "; ".join(map(_shown, unmatched))
            lists.notes.append(f"{name} has entries that match no sent lead, or several: {shown}")
    return lists


def _status(name: str) -> str:
    """Return the status of the leads in a response's list, or an empty text for other fields."""
    if name == _DUPLICATE_EMAILS or re.fullmatch(spec.DUPLICATE_URLS_PATTERN, name):
        return statuses.DUPLICATE_IN_REQUEST
    if not name.endswith(spec.SKIPPED_SUFFIX):
        return ""
    status = statuses.status_of_list(name)
    if status in ("", *statuses.SKIPPED):
        return status
    is_known = status.replace("_", "") in _KNOWN_WORDS
    is_usable = _STATUS_PATTERN.fullmatch(status) and not is_known
    return excerpt((status if is_usable else name).encode(errors="replace"))


def _rank(name: str) -> int:
    """Return a field's sort key: documented fields in order, undocumented fields last."""
    status = _status(name)
    known = statuses.STATUSES
    return known.index(status) if status in known else len(known)


class _SentLeads:
    """A request's rows by normalised identifier."""

    def __init__(self, identifiers: Sequence[tuple[str | None, str | None]]) -> None:
        self._identifiers = identifiers

    @cached_property
    def _rows(self) -> dict[str, dict[str, set[int]]]:
        """The rows by field and key; most responses list no lead."""
        rows: dict[str, dict[str, set[int]]] = {_EMAIL: {}, _PROFNET_URL: {}}
        for row, lead in enumerate(self._identifiers):
            for name, text in zip(rows, lead, strict=True):
                if text:
                    rows[name].setdefault(_key(name, text), set()).add(row)
        return rows

    def rows_of(self, entry: object) -> tuple[Collection[int], bool]:
        """Return the rows that match an entry, and whether the entry has unmatched fields."""
        if isinstance(entry, dict):
            names = [name for name, value in entry.items() if value]
            url = entry.get(_PROFNET_URL)
            if _EMAIL in names and isinstance(url, str) and self._is_weak(url):
                # Several people may share a weak URL, so the email decides.
                names.remove(_PROFNET_URL)
            rows_of_fields = [self._find(name, entry[name]) for name in names]
        else:
            rows_of_fields = [rows for name in self._rows if (rows := self._find(name, entry))]
        matches = [rows for rows in rows_of_fields if rows]
        if not matches:
            return (), False
        common = set.intersection(*matches)
        return common or set.union(*matches), len(matches) < len(rows_of_fields)

    def is_certain(self, entry: object) -> bool:
        """Return whether an entry has the email or certain profile URL of a sent lead."""
        fields: Mapping[str, Any] = (
            entry if isinstance(entry, dict) else dict.fromkeys(self._rows, entry)
        )
        email, url = (self._find(name, fields.get(name)) for name in self._rows)
        return bool(email) or (bool(url) and not self._is_weak(fields[_PROFNET_URL]))

    def _is_weak(self, url: str) -> bool:
        return bool(self._find(_PROFNET_URL, url)) and not is_certain(_key(_PROFNET_URL, url))

    def _find(self, name: str, value: object) -> set[int]:
        if name not in self._rows or not isinstance(value, str):
            return set()
        return self._rows[name].get(_key(name, value), set())


def _key(name: str, text: str) -> str:
    """Return an identifier's normalised key, or its stripped text if it has no key."""
    return _KEYS[name](text) or text.strip()


def _shown(value: object) -> str:
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deeply to show)"
    return excerpt(text.encode(errors="replace"))


def _shown_number(value: object) -> str:
    """Return a number as text; a text in its place is quoted."""
    return f'"{_shown(value)}"' if isinstance(value, str) else _shown(value)


class NextStep(Enum):
    """How a run continues after an error; of several steps, the first in this order applies."""

    STOP = "send no further request"
    FIND_FIELD = "send parts of these rows to find the missing field"
    FIND_ROWS = "send parts of these rows to find the refused ones"
    CONTINUE = "send the next request, unless several consecutive requests failed"


MISSING_LEAD_FIELD: Final = "missing_lead_field"

# The next step per error code of status 422. Nearly all codes concern the sequence or the account.
# An undocumented code may concern only this request's leads, so the run continues after it.
NEXT_STEP_BY_CODE: Final[Mapping[str, NextStep]] = MappingProxyType(
    dict.fromkeys(spec.ADD_LEADS_ERRORS, NextStep.STOP)
    | {
        MISSING_LEAD_FIELD: NextStep.FIND_FIELD,
        "other_validation_error": NextStep.CONTINUE,
    }
)


class Classification(NamedTuple):
    """The common outcome of a request's rows, and the run's next step."""

    outcome: RowOutcome
    next_step: NextStep
    notes: tuple[str, ...] = ()


def classify(error: OutreachError) -> Classification:
    """Classify a request's error: refused, certainly not processed, or unknown.

    >>> classification = classify(ServiceError("The connection broke."))
    >>> classification.outcome.status, classification.next_step.name
    ('unknown', 'CONTINUE')
    """
    match error:
        case ValidationFailedError():
            return _refused(error)
        case (
            BadRequestError()
            | ServiceError(
                status_code=HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                | HTTPStatus.UNAVAILABLE_FOR_LEGAL_REASONS
            )
        ):
            return Classification(_outcome(statuses.REJECTED, error), NextStep.FIND_ROWS)
        case ServiceError(may_have_acted=True):
            # Stop after a redirect: the next request would be redirected too.
            is_redirect = isinstance(error, UnsafeLinkError)
            next_step = NextStep.STOP if is_redirect else NextStep.CONTINUE
            return Classification(_outcome(statuses.UNKNOWN, error, _MAY_HAVE_ACTED), next_step)
    return Classification(_outcome(statuses.NOT_SENT, error), NextStep.STOP)


def pointed_leads(error: OutreachError, size: int) -> dict[int, str] | None:
    """Return the service's words for the leads of a refused request that it points at.

    The keys are the leads' places in the request. None means that it points elsewhere, too.

    >>> pointed_leads(BadRequestError("No.", reasons={"/leads/3/email": "Odd."}), 5)
    {3: 'Odd. (/leads/3/email)'}
    >>> pointed_leads(BadRequestError("No.", reasons={"/settings": "Odd."}), 5) is None
    True
    """
    words_of_lead: dict[int, str] = {}
    reasons = error.reasons if isinstance(error, StatusError) else {}
    for pointer, words in reasons.items():
        place = re.fullmatch(rf"/{spec.LEADS_KEY}/(\d{{1,9}})(/.*)?", pointer)
        if place is None or int(place[1]) >= size:
            return None
        detail = f"{words} ({pointer})"
        words_of_lead[int(place[1])] = f"{words_of_lead.get(int(place[1]), '')} {detail}".strip()
    return {number: shorten(text, _DETAIL_CHARACTERS) for number, text in words_of_lead.items()}


def resent_outcome(outcome: RowOutcome) -> RowOutcome:
    """Return the outcome of a resent row without a result: the first send may have succeeded.

    >>> resent_outcome(RowOutcome("rejected", "No.")).status
    'unknown'
    """
    detail = f"{outcome.detail} {_SENT_BEFORE}"
    return outcome._replace(status=statuses.UNKNOWN, detail=detail)


def reclassify_resent(outcome: RowOutcome, *, is_certain: bool) -> RowOutcome:
    """Return the outcome of a resent row; a skip does not prove that the first send failed.

    A lead that is already in the sequence is `present` only if the entry is certain: several people
    may share a weak URL.

    >>> reclassify_resent(RowOutcome("already_in_sequence"), is_certain=True).status
    'present'
    >>> reclassify_resent(RowOutcome("already_in_sequence"), is_certain=False).status
    'unknown'
    """
    if outcome.status in {statuses.ADDED, statuses.UNKNOWN}:
        return outcome
    is_present = outcome.status == statuses.ALREADY_IN_SEQUENCE
    if is_present and is_certain:
        return outcome._replace(status=statuses.PRESENT)
    suffix = spec.SKIPPED_SUFFIX if outcome.status in statuses.SKIPPED else ""
    skipped = f"Skipped this time ({outcome.status}{suffix})."
    parts = (skipped, outcome.detail, _LISTED_BY_WEAK_URL if is_present else "", _SENT_BEFORE)
    return outcome._replace(status=statuses.UNKNOWN, detail=" ".join(filter(None, parts)))


def _refused(error: ValidationFailedError) -> Classification:
    steps = list(NextStep)
    problems = sorted(error.validation_errors, key=lambda problem: steps.index(_next_step(problem)))
    notes = tuple(dict.fromkeys(map(_text, problems)))
    if not problems:
        return Classification(_outcome(statuses.REJECTED, error), NextStep.CONTINUE)
    detail, code = shorten("; ".join(notes), _DETAIL_CHARACTERS), problems[0].error_code or None
    outcome = RowOutcome(statuses.REJECTED, detail, code)
    return Classification(outcome, _next_step(problems[0]), notes)


def _next_step(problem: ValidationProblem) -> NextStep:
    return NEXT_STEP_BY_CODE.get(problem.error_code, NextStep.CONTINUE)


def _text(problem: ValidationProblem) -> str:
    return f"{problem.error_code}: {problem.message}" if problem.error_code else problem.message


def _outcome(status: str, error: OutreachError, advice: str = "") -> RowOutcome:
    return RowOutcome(status, f"{shorten(str(error), _DETAIL_CHARACTERS)} {advice}".strip())
