"""Add leads to a sequence: the check behind each 422 code, and the outcome of each lead.

Choices where the interface document is silent:

- success is a 200 response, sent after the leads were added;
- the limits on credits and on leads per sequence count every lead of the request;
- of leads with the same email or profile URL, only the first is processed;
- a lead counts as being in the sequence if the sequence has its email or profile URL;
- an added lead with an email becomes a contact, unless another contact has that email.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from outreach_frames import spec
from outreach_frames.sandbox.rules import email_key
from outreach_frames.sandbox.store import Row, Store, as_text, insert
from outreach_frames.sandbox.submission import EMAIL, Lead, Submission

MAX_LEADS_PER_SEQUENCE = 20_000

EMAIL_STAGES = frozenset({"email", "copywriter_email"})
COPYWRITER_STAGES = frozenset({"copywriter_email", "voice"})
PHONE_STAGES = frozenset({"phone_call"})
PROFNET_STAGES = frozenset({"copywriter_email", "profnet_visit", "profnet_invitation"})
VOICE_STAGES = frozenset({"voice"})


@dataclass(frozen=True, slots=True)
class Attempt:
    """A well-formed request and the account data that it is checked against."""

    submission: Submission
    sequence: Row
    user: Row
    mailboxes: Sequence[Row]
    new_leads: int  # leads that requests have added to the sequence

    @property
    def stages(self) -> frozenset[str]:
        """The kinds of the sequence's stages."""
        return frozenset(self.sequence["stages"])


def _invalid_sequence_status(attempt: Attempt) -> str:
    status = attempt.sequence["status"]
    return "" if spec.SEQUENCE_STATUSES[status] else f"The sequence is {status}"


def _missing_ai_credits(attempt: Attempt) -> str:
    count, user = len(attempt.submission.leads), attempt.user
    lacking = attempt.stages & COPYWRITER_STAGES and user["ai_credits"] < count
    return f"Not enough credits for {count} more leads: {user['email']}" if lacking else ""


def _require(stages: frozenset[str], ability: str, problem: str, attempt: Attempt) -> str:
    """Return the problem if the sequence has one of `stages` and the user lacks the ability."""
    lacking = attempt.stages & stages and not attempt.user[ability]
    return f"{problem}: {attempt.user['email']}" if lacking else ""


def _missing_lead_field(attempt: Attempt) -> str:
    leads = attempt.submission.leads
    needed = attempt.sequence["lead_fields"]
    missing = {name: sum(not lead.data.get(name) for lead in leads) for name in needed}
    if attempt.stages & EMAIL_STAGES and not attempt.sequence["conditional_logic"]:
        missing = {EMAIL: sum(lead.email is None for lead in leads), **missing}
    listed = ", ".join(f"{name} ({count} leads)" for name, count in missing.items() if count)
    return f"Lead fields are missing: {listed}" if listed else ""


def _missing_sender_field(attempt: Attempt) -> str:
    missing = [
        f"{name} of {attempt.user['email']}"
        for name in attempt.sequence["sender_fields"]
        if name not in attempt.user["sender_fields"]
    ]
    return f"Sender fields are empty: {', '.join(missing)}" if missing else ""


def _mailbox_unusable(attempt: Attempt) -> str:
    custom = attempt.submission.settings.custom_mailboxes
    if custom is None:
        own = [box for box in attempt.mailboxes if box["id"] in attempt.sequence["mailbox_ids"]]
        broken = [box["email"] for box in own if box["status"] != "active"]
    else:
        usable = {email_key(box["email"]) for box in attempt.mailboxes if box["status"] == "active"}
        broken = [email for email in custom if email_key(email) not in usable]
    return f"Mailboxes are not active or not connected: {', '.join(broken)}" if broken else ""


def _max_leads_threshold_reached(attempt: Attempt) -> str:
    room = attempt.sequence["room"]
    room = (MAX_LEADS_PER_SEQUENCE if room is None else room) - attempt.new_leads
    if len(attempt.submission.leads) <= room:
        return ""
    return f"A sequence holds at most {MAX_LEADS_PER_SEQUENCE} leads; there is room for {room} more"


def _other_validation_error(attempt: Attempt) -> str:
    return "The sequence is being edited in the web app" if attempt.sequence["locked"] else ""


# The check per 422 code; each check returns the problem, or an empty text.
CHECKS: Mapping[str, Callable[[Attempt], str]] = {
    "invalid_sequence_status": _invalid_sequence_status,
    "missing_ai_credits": _missing_ai_credits,
    "missing_feature_copywriter": partial(
        _require, COPYWRITER_STAGES, "copywriter", "No access to the copywriter"
    ),
    "missing_feature_dialer": partial(_require, PHONE_STAGES, "dialer", "No dialer configured"),
    "missing_profnet_account": partial(
        _require, PROFNET_STAGES, "profnet_account", "No professional-network account connected"
    ),
    "missing_voice_clone": partial(_require, VOICE_STAGES, "voice_clone", "No usable voice clone"),
    "missing_lead_field": _missing_lead_field,
    "missing_sender_field": _missing_sender_field,
    "mailbox_unusable": _mailbox_unusable,
    "max_leads_threshold_reached": _max_leads_threshold_reached,
    "other_validation_error": _other_validation_error,
}

# The lists of skipped leads in the order of their checks; a lead goes to the first match.
SKIP_LISTS = tuple(
    field.name for field in spec.ADD_LEADS_RESULT if field.name.endswith(spec.SKIPPED_SUFFIX)
)


def add_leads(
    store: Store, sequence: Row, submission: Submission, now: str
) -> tuple[int, dict[str, Any]]:
    """Add leads and contacts in one transaction; return the response's status and body."""
    with store.connection:
        store.connection.execute("BEGIN IMMEDIATE")
        attempt = Attempt(
            submission,
            sequence,
            store.user(sequence["created_by_user_id"]),
            store.mailboxes(),
            store.count_leads(sequence["id"]),
        )
        reasons = {code: check(attempt) for code, check in CHECKS.items()}
        errors = [
            {"error_code": code, "message": reason} for code, reason in reasons.items() if reason
        ]
        if errors:
            return 422, {spec.VALIDATION_ERRORS_KEY: errors}
        kept, duplicates = _drop_duplicates(submission.leads)
        known = _known_keys(store, sequence["id"], [key for lead in kept for key in lead.keys])
        skipped: dict[str, list[dict[str, str | None]]] = {name: [] for name in SKIP_LISTS}
        added = []
        for lead in kept:
            name = _find_skip_list(lead, known)
            if name is None:
                added.append(lead)
            else:
                skipped[name].append(lead.reference)
        since = {"added_at": now, "added_day": store.world()["days"]}
        rows = (
            {"sequence_id": sequence["id"], **lead.columns, "data": as_text(lead.data), **since}
            for lead in added
        )
        insert(store.connection, "leads", rows)
        store.add_contacts(
            (lead.columns["email_key"], lead.contact) for lead in added if lead.email
        )
    return 200, {
        "total": len(submission.leads),
        "total_added_to_sequence": len(added),
        **duplicates,
        **skipped,
    }


def _drop_duplicates(leads: Sequence[Lead]) -> tuple[list[Lead], dict[str, list[str]]]:
    """Drop repeated leads; return the remaining leads and the repeated emails and URLs."""
    first: dict[str, str] = {}
    repeated: dict[str, str] = {}
    kept = []
    for lead in leads:
        known = lead.keys.keys() & first.keys()
        if not known:
            kept.append(lead)
        repeated |= {key: first[key] for key in known}
        for key, text in lead.keys.items():
            first.setdefault(key, text)
    emails = {key: text for key, text in repeated.items() if key == email_key(text)}
    return kept, {
        "duplicate_emails": list(emails.values()),
        "duplicate_profnet_urls": [text for key, text in repeated.items() if key not in emails],
    }


def _known_keys(store: Store, sequence_id: str, keys: Sequence[str]) -> dict[str, set[str]]:
    """Return the matching keys per list of skipped leads."""
    here, draft, active = set(), set(), set()
    for key, row in store.known("leads JOIN sequences ON sequences.id = sequence_id", keys):
        if row["sequence_id"] == sequence_id:
            here.add(key)
        elif row["status"] == "draft":
            draft.add(key)
        elif row["status"] in {"active", "paused"}:
            active.add(key)
    excluded, recent = (
        {key for key, _ in store.known(table, keys)}
        for table in ("exclusion_list", "recently_contacted")
    )
    return dict(zip(SKIP_LISTS, (excluded, recent, here, draft, active), strict=True))


def _find_skip_list(lead: Lead, known: Mapping[str, set[str]]) -> str | None:
    """Return the name of the list that skips the lead, or None to add the lead."""
    for name in SKIP_LISTS:
        overridden = lead.overrides.get(spec.CHECK_OVERRIDES.get(name, ""))
        if not overridden and any(key in known[name] for key in lead.keys):
            return name
    return None
