"""What it means for rows, and for the run, that the request they were in was not completed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from outreach_frames import spec
from outreach_frames.common.text import shorten
from outreach_frames.errors import (
    BadRequestError,
    OutreachError,
    ServiceError,
    UnsafeLinkError,
    ValidationFailedError,
    ValidationProblem,
)
from outreach_frames.leads import statuses
from outreach_frames.leads.sending.outcome import RowOutcome

_DETAIL_CHARACTERS: Final = 500


class NextStep(Enum):
    """How a run goes on."""

    GO_ON = "with the next request"
    SPLIT = "with the same rows, in one request for each set of fields that leads bring"
    DOUBT = "with the next request, unless there was doubt several times in a row"
    STOP = "not at all"


MISSING_LEAD_FIELD: Final = "missing_lead_field"

# What a 422 means for the run, by its error codes: nearly all are about the sequence or the
# account. The interface's list is not exhaustive. A code that nobody knows may be about this
# request's leads alone, so it costs no more than a few refused requests to go on.
THEN_BY_CODE: Final[Mapping[str, NextStep]] = MappingProxyType(
    dict.fromkeys(spec.ADD_LEADS_ERRORS, NextStep.STOP)
    | {MISSING_LEAD_FIELD: NextStep.SPLIT, "other_validation_error": NextStep.DOUBT}
)
# Of several codes, the first of these decides.
_ORDER: Final = (NextStep.STOP, NextStep.SPLIT, NextStep.DOUBT)


@dataclass(frozen=True, slots=True)
class Classification:
    """What became of the rows of a request, and how the run goes on."""

    outcome: RowOutcome
    then: NextStep
    notes: tuple[str, ...] = ()


def classify(error: OutreachError) -> Classification:
    """Say what an error in place of an answer means.

    Parameters
    ----------
    error : OutreachError
        What sending the request raised.

    Returns
    -------
    Verdict
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
        case UnsafeLinkError():
            # A redirect: the next request would meet the same.
            return Classification(_outcome(statuses.UNKNOWN, error), NextStep.STOP)
        case ServiceError(may_have_acted=True):
            return Classification(_outcome(statuses.UNKNOWN, error), NextStep.DOUBT)
    return Classification(_outcome(statuses.NOT_SENT, error), NextStep.STOP)


def classify_resend(error: OutreachError) -> Classification:
    """Say what an error means for rows that were sent before with no known outcome.

    Whatever keeps them from being added now may not have kept the earlier send from it, so they
    stay `unknown`; unless it is about the leads themselves, which have not changed.
    """
    classification = classify(error)
    if classification.then in {NextStep.GO_ON, NextStep.SPLIT}:
        return classification
    return replace(classification, outcome=replace(classification.outcome, status=statuses.UNKNOWN))


def reclassify_resent(outcome: RowOutcome) -> RowOutcome:
    """Say what an answer means for a row that was sent before with no known outcome.

    >>> reclassify_resent(RowOutcome("already_in_sequence")).status
    'present'
    """
    if outcome.status in {statuses.ADDED, statuses.UNKNOWN}:
        return outcome
    if outcome.status == statuses.ALREADY_IN_SEQUENCE:
        return replace(outcome, status=statuses.PRESENT)
    caveat = "It was sent before, with no known outcome."
    return replace(outcome, detail=f"{outcome.detail} {caveat}".strip())


def _refused(error: ValidationFailedError) -> Classification:
    problems = sorted(
        error.validation_errors,
        key=lambda problem: _ORDER.index(_then(problem)),
    )
    notes = tuple(map(_text, problems))
    if not problems:
        return Classification(_outcome(statuses.REJECTED, error), NextStep.DOUBT)
    outcome = RowOutcome(
        statuses.REJECTED,
        shorten("; ".join(notes), _DETAIL_CHARACTERS),
        problems[0].error_code or None,
    )
    return Classification(outcome, _then(problems[0]), notes)


def _then(problem: ValidationProblem) -> NextStep:
    return THEN_BY_CODE.get(problem.error_code, NextStep.DOUBT)


def _text(problem: ValidationProblem) -> str:
    return f"{problem.error_code}: {problem.message}" if problem.error_code else problem.message


def _outcome(status: str, error: OutreachError, advice: str = "") -> RowOutcome:
    return RowOutcome(status, shorten(f"{error} {advice}".strip(), _DETAIL_CHARACTERS))
