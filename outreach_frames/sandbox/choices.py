"""Where the interface shows nothing, and what the sandbox does there: for its description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from outreach_frames import spec
from outreach_frames.sandbox import records, rules

Choice = tuple[str, dict[str, Any], str]

# What the sandbox takes for an address, and for a profile URL.
_EMAIL_RE: Final = r"^[^\s@\x00-\x1f\x7f\x85]+@[^\s@\x00-\x1f\x7f\x85]+$"
_URL_RE: Final = r"^(https?://)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+/[A-Za-z0-9][A-Za-z0-9/._~-]*$"

# The schemas of bodies, by their names.
_BODY_SCHEMAS: Final = ("AddLeads", "Lead", "Overrides", "PeopleSearch", "DailyEmailLimit")

_OPEN_VALUES: Final = {
    "PhoneNumber.type": records.PHONE_TYPES,
    "PhoneNumber.source": records.PHONE_SOURCES,
    "PhoneNumber.kind": records.PHONE_KINDS,
    "Activity.event_type": records.EVENT_TYPES,
    "Activity.sequence_type": records.SEQUENCE_TYPES,
}
# Whether these may be null, the interface does not say.
_SOMETIMES_NULL: Final = {
    "Company.total_funding": "number",
    "Company.latest_funding_stage": "string",
    "Company.latest_funding_date": "string",
    "CompanyLocation.state": "string",
}
_OPEN_FIELDS: Final = {
    "Error": "the interface does not show the format of its errors",
    "Company.locations": "texts, the headquarters first",
    "Company.technologies": "names",
    "Company.total_funding": "US dollars",
    "PeopleSearch.company_industries": "finds people by the industry that their companies show",
    "PeopleSearchResult._errors": "objects with code and message, where a fault asks for them",
    "LeadList.leads": "objects with an id, and fields that depend on the type of the list",
    "LeadList._errors": "objects with code, message and count",
    "LeadList._links": "the links of other pages too",
}


def choices() -> Iterator[Choice]:
    """Yield the places, what is added to their schemas, and the words; a place may come twice.

    >>> next(choices())
    ('AddLeads', {'additionalProperties': False}, 'other fields are refused (400)')
    """
    yield from _request_choices()
    for place, values in _OPEN_VALUES.items():
        yield place, {"examples": list(values)}, f"one of {', '.join(values)}"
    for place, words in _OPEN_FIELDS.items():
        yield place, {}, words
    for place, kind in _SOMETIMES_NULL.items():
        yield place, {"type": [kind, "null"]}, "null now and then"
    for search_filter in spec.FILTERS:
        if search_filter.suggestions:
            known = ", ".join(search_filter.suggestions)
            yield f"PeopleSearch.{search_filter.name}", {}, f"finds people by {known}"


def _request_choices() -> Iterator[Choice]:
    for name in _BODY_SCHEMAS:
        yield name, {"additionalProperties": False}, "other fields are refused (400)"
    yield "AddLeads.leads", {"minItems": 1}, "at least one lead"
    lowest, highest = rules.DAILY_EMAIL_LIMITS[0], rules.DAILY_EMAIL_LIMITS[-1]
    bounds = {"minimum": lowest, "maximum": highest}
    yield "DailyEmailLimit.daily_email_limit", bounds, f"from {lowest} to {highest}"
    pages = {"minimum": 1, "maximum": rules.MAX_PAGE}
    yield "PeopleSearch.page", pages, "in this range; a page after the last one is empty"
    for name, pattern in zip(spec.LEAD_IDENTIFIERS, (_EMAIL_RE, _URL_RE), strict=True):
        accepted = {"pattern": pattern, "maxLength": spec.MAX_DATA_VALUE_LENGTH}
        yield f"Lead.{name}", accepted, "anything else is refused (400), placeholder text too"
    custom = {"leads_distribution": {"const": spec.MAILBOXES_LEADS_DISTRIBUTION}}
    chosen = "without mailboxes this distribution is refused (400)"
    mailboxes = {"minItems": 1, "items": {"format": "email"}}
    needed = {"required": ["mailboxes"], "properties": {"mailboxes": mailboxes}}
    # Where they are not used, the sandbox does not look at them.
    yield "AddLeadsSettings.mailboxes", {"items": {"type": "string"}}, "ignored unless custom"
    yield (
        "AddLeadsSettings",
        {
            "additionalProperties": False,
            "if": {"properties": custom, "required": ["leads_distribution"]},
            "then": needed,
        },
        f"other fields are refused (400); {chosen}",
    )
