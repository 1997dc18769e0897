"""Row statuses and their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from outreach_frames import spec

ADDED: Final = "added"
PRESENT: Final = "present"
DUPLICATE_IN_FRAME: Final = "duplicate_in_frame"
DUPLICATE_IN_REQUEST: Final = "duplicate_in_request"
INVALID: Final = "invalid"
REJECTED: Final = "rejected"
UNKNOWN: Final = "unknown"
NOT_SENT: Final = "not_sent"
# Only in reports of dry runs.
WOULD_SEND: Final = "would_send"

ALREADY_IN_SEQUENCE: Final = "already_in_sequence"
IN_EXCLUSION_LIST: Final = "in_exclusion_list"

# The statuses of documented lists of skipped leads; undocumented lists follow the same rule.
SKIPPED: Final = tuple(
    field.name.removesuffix(spec.SKIPPED_SUFFIX)
    for field in spec.ADD_LEADS_RESULT
    if field.name.endswith(spec.SKIPPED_SUFFIX)
)

# In journals, in place of the name of an undocumented list that is no simple word.
SKIPPED_OTHER: Final = "skipped"

# The order of a summary: in the sequence, skipped, failed, to send.
STATUSES: Final = (
    ADDED,
    PRESENT,
    DUPLICATE_IN_FRAME,
    DUPLICATE_IN_REQUEST,
    *SKIPPED,
    INVALID,
    REJECTED,
    UNKNOWN,
    NOT_SENT,
    WOULD_SEND,
)

# Statuses outside IN_SEQUENCE and FAILED have the kind "skipped", apart from WOULD_SEND.
KINDS: Final = ("added", "skipped", "failed")
DRY_RUN_KINDS: Final = (*KINDS, WOULD_SEND)
IN_SEQUENCE: Final = frozenset({ADDED, PRESENT})
# Leads with these statuses are or may be in the sequence.
MAY_BE_IN_SEQUENCE: Final = IN_SEQUENCE | {UNKNOWN, ALREADY_IN_SEQUENCE}
FAILED: Final = frozenset({INVALID, REJECTED, UNKNOWN, NOT_SENT})

# A later run resends rows with these statuses and, only on request, `unknown` rows.
RETRYABLE: Final = frozenset({REJECTED, NOT_SENT})


def status_of_list(name: str) -> str:
    """Return the status of the leads in a list of skipped leads.

    >>> status_of_list("recently_contacted_and_skipped")
    'recently_contacted'
    """
    return name.removesuffix(spec.SKIPPED_SUFFIX)


# The override that skips the check of a status.
OVERRIDE_OF_STATUS: Final = {
    status_of_list(name): override for name, override in spec.CHECK_OVERRIDES.items()
}


def kind_of(status: str) -> str:
    """Return the kind of a status: added, skipped, failed, or would_send in a dry run.

    >>> kind_of("present"), kind_of("recently_contacted"), kind_of("unknown")
    ('added', 'skipped', 'failed')
    """
    if status == WOULD_SEND:
        return WOULD_SEND
    if status in IN_SEQUENCE:
        return "added"
    return "failed" if status in FAILED else "skipped"


def count_kinds(counts: Mapping[str, int]) -> dict[str, int]:
    """Add up the numbers of rows per kind of status.

    >>> count_kinds({"added": 2, "invalid": 1, "unknown": 1})
    {'added': 2, 'skipped': 0, 'failed': 2}
    """
    kinds = dict.fromkeys(KINDS, 0)
    for status, rows in counts.items():
        kinds[kind_of(status)] += rows
    return kinds
