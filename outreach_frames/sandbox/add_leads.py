"""Add leads to a sequence: the problems behind each 422 code, and the outcome of each lead.

Choices where the interface document is silent:

- success is a 200 response, sent after the leads were added;
- the limits on credits and on leads per sequence count every lead of the request;
- of leads with the same email or profile URL, only the first is processed;
- a lead counts as being in the sequence if the sequence has its email or profile URL;
- an added lead with an email becomes a contact, unless another contact has that email.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from outreach_frames import spec
from outreach_frames.sandbox.rules import email_key
from outreach_frames.sandbox.store import Account, Row, Store
from outreach_frames.sandbox.submission import EMAIL, Lead, Submission

MAX_LEADS_PER_SEQUENCE = 20_000

EMAIL_STAGES = frozenset({"email", "copywriter_email"})
COPYWRITER_STAGES = frozenset({"copywriter_email", "voice"})
PHONE_STAGES = frozenset({"phone_call"})
PROFNET_STAGES = frozenset({"copywriter_email", "profnet_visit", "profnet_invitation"})
VOICE_STAGES = frozenset({"voice"})


# By code: the stages that need an ability of the user, and the problem of a user without it.
_NEEDED_ABILITIES: Mapping[str, tuple[frozenset[str], str, str]] = {
    "missing_feature_copywriter": (COPYWRITER_STAGES, "copywriter", "No access to the copywriter"),
    "missing_feature_dialer": (PHONE_STAGES, "dialer", "No dialer configured"),
    "missing_profnet_account": (
        PROFNET_STAGES,
        "profnet_account",
        "No professional-network account connected",
    ),
    "missing_voice_clone": (VOICE_STAGES, "voice_clone", "No usable voice clone"),
}


def _find_problems(
    account: Account, sequence: Row, submission: Submission
) -> Iterator[tuple[str, str]]:
    """Yield the code and the message of each reason why the request cannot be completed."""
    user = account.users[sequence["created_by_user_id"]]
    count, stages, status = len(submission.leads), set(sequence["stages"]), sequence["status"]
    if not spec.SEQUENCE_STATUSES[status]:
        yield "invalid_sequence_status", f"The sequence is {status}"
    if stages & COPYWRITER_STAGES and user["ai_credits"] < count:
        yield "missing_ai_credits", f"Not enough credits for {count} more leads: {user['email']}"
    for code, (stages_in_need, ability, problem) in _NEEDED_ABILITIES.items():
        if stages & stages_in_need and not user[ability]:
            yield code, f"{problem}: {user['email']}"
    if missing := _missing_lead_fields(sequence, submission.leads):
        yield "missing_lead_field", f"Lead fields are missing: {', '.join(missing)}"
    if empty := [name for name in sequence["sender_fields"] if name not in user["sender_fields"]]:
        yield "missing_sender_field", f"{user['email']} has empty fields: {', '.join(empty)}"
    if unusable := _unusable_mailboxes(account, sequence, submission):
        problem = "Mailboxes are not active or not connected"
        yield "mailbox_unusable", f"{problem}: {', '.join(unusable)}"
    room = MAX_LEADS_PER_SEQUENCE if sequence["room"] is None else sequence["room"]
    room -= len(account.leads_in(sequence["id"]))
    if count > room:
        most = f"A sequence holds at most {MAX_LEADS_PER_SEQUENCE} leads"
        yield "max_leads_threshold_reached", f"{most}; there is room for {room} more"
    if sequence["locked"]:
        yield "other_validation_error", "The sequence is being edited in the web app"


def _missing_lead_fields(sequence: Row, leads: Sequence[Lead]) -> list[str]:
    """Return the fields that the sequence needs and some leads lack, with the leads' number."""
    counts = {
        name: sum(not lead.data.get(name) for lead in leads) for name in sequence["lead_fields"]
    }
    if EMAIL_STAGES.intersection(sequence["stages"]) and not sequence["conditional_logic"]:
        counts = {EMAIL: sum(lead.email is None for lead in leads), **counts}
    return [f"{name} ({count} leads)" for name, count in counts.items() if count]


def _unusable_mailboxes(account: Account, sequence: Row, submission: Submission) -> list[str]:
    """Return the emails of the sending mailboxes that are not active."""
    custom = submission.settings.custom_mailboxes
    if custom is None:
        return [box["email"] for box in sequence["senders"] if box["status"] != "active"]
    boxes = account.mailboxes.values()
    usable = {email_key(box["email"]) for box in boxes if box["status"] == "active"}
    return [email for email in custom if email_key(email) not in usable]


# The lists of skipped leads in the order of their checks; a lead goes to the first match.
SKIP_LISTS = tuple(
    field.name for field in spec.ADD_LEADS_RESULT if field.name.endswith(spec.SKIPPED_SUFFIX)
)


EXCLUDED, RECENT, HERE, DRAFT, ACTIVE = SKIP_LISTS
# The days after which a contact is no longer recent.
RECENT_DAYS = 90


def add_leads(
    store: Store, sequence: Row, submission: Submission, now: str
) -> tuple[int, dict[str, Any]]:
    """Add leads and contacts; return the response's status and body."""
    account = store.account
    problems = _find_problems(account, sequence, submission)
    errors = [{"error_code": code, "message": message} for code, message in problems]
    if errors:
        return 422, {spec.VALIDATION_ERRORS_KEY: errors}
    kept, duplicates = _drop_duplicates(submission.leads)
    skipped: dict[str, list[dict[str, str | None]]] = {name: [] for name in SKIP_LISTS}
    # Find all lists first, because adding a lead changes them.
    lists = [_find_skip_list(lead, store, sequence["id"]) for lead in kept]
    for lead, name in zip(kept, lists, strict=True):
        if name is not None:
            skipped[name].append(lead.reference)
            continue
        since = {"added_at": now, "added_day": store.days}
        account.add_lead(sequence["id"], lead.email, lead.profnet_url, data=lead.data, **since)
        if lead.email:
            account.add_contact(lead.contact)
    return 200, {
        "total": len(submission.leads),
        "total_added_to_sequence": lists.count(None),
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


def _find_skip_list(lead: Lead, store: Store, sequence_id: str) -> str | None:
    """Return the name of the list that skips the lead, or None to add the lead."""
    account = store.account
    places = {place for key in lead.keys for place in account.places.get(key, ())}
    if store.days >= RECENT_DAYS:
        places.discard(RECENT)
    names = {HERE if place == sequence_id else _list_of(account, place) for place in places}
    for name in SKIP_LISTS:
        is_overridden = lead.overrides.get(spec.CHECK_OVERRIDES.get(name, ""), False)
        if name in names and not is_overridden:
            return name
    return None


def _list_of(account: Account, place: str) -> str | None:
    """Return the name of the list of leads that are in a sequence already, or in a list."""
    if place in SKIP_LISTS:
        return place
    status = account.sequences[place]["status"]
    return {"draft": DRAFT, "active": ACTIVE, "paused": ACTIVE}.get(status)
