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
_SENT_BEFORE: Final = "It was sent before, with no known outcome."
_MAY_HAVE_ACTED: Final = "The service may have acted all the same."


class NextStep(Enum):
    """How a run goes on."""

    GO_ON = "with the next request, unless several in a row were refused alike"
    SEARCH = "with parts of these rows, to find the field that some of them lack"
    DOUBT = "with the next request, unless there was doubt several times in a row"
    STOP = "not at all"


MISSING_LEAD_FIELD: Final = "missing_lead_field"

# What a 422 means for the run, by its error codes: nearly all are about the sequence or the
# account. The interface's list is not exhaustive: an unknown code may be about this request's leads
# alone, so the run goes on, and stops after a few such refusals in a row.
THEN_BY_CODE: Final[Mapping[str, NextStep]] = MappingProxyType(
    dict.fromkeys(spec.ADD_LEADS_ERRORS, NextStep.STOP)
    | {MISSING_LEAD_FIELD: NextStep.SEARCH, "other_validation_error": NextStep.DOUBT}
)
# Of several codes, the first of these decides.
_ORDER: Final = (NextStep.STOP, NextStep.SEARCH, NextStep.DOUBT)


@dataclass(frozen=True, slots=True)
class Classification:
    """What became of the rows of a request, and how the run goes on."""

    outcome: RowOutcome
    then: NextStep
    notes: tuple[str, ...] = ()


def classify(error: OutreachError) -> Classification:
    """Say what an error in place of a response means.

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
    """Say what an error means for rows that were sent before with no known outcome.

    They stay `unknown`: whatever keeps them from being added now need not have kept the earlier
    send from it. A sequence may need a field today that it did not need then.

    >>> classify_resend(BadRequestError("No.", may_have_acted=False)).outcome.status
    'unknown'
    """
    classification = classify(error)
    outcome = replace(
        classification.outcome,
        status=statuses.UNKNOWN,
        detail=f"{classification.outcome.detail} {_SENT_BEFORE}",
    )
    return replace(classification, outcome=outcome)


def reclassify_resent(outcome: RowOutcome) -> RowOutcome:
    """Say what a response means for a row that was sent before with no known outcome.

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
        return replace(outcome, status=statuses.PRESENT)
    suffix = spec.SKIPPED_SUFFIX if outcome.status in statuses.SKIPPED else ""
    detail = f"It is skipped now ({outcome.status}{suffix}). {outcome.detail}".rstrip()
    return replace(outcome, status=statuses.UNKNOWN, detail=f"{detail} {_SENT_BEFORE}")


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
    return RowOutcome(status, f"{shorten(str(error), _DETAIL_CHARACTERS)} {advice}".strip())
