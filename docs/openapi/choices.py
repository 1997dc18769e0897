"""The sandbox's choices where the interface document is silent, for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from outreach_frames import spec
from outreach_frames.sandbox import records, rules

Choice = tuple[str, dict[str, Any], str]

_EMAIL_RE: Final = r"^[^\s@\x00-\x1f\x7f\x85]+@[^\s@\x00-\x1f\x7f\x85]+$"
_URL_RE: Final = r"^(https?://)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+/[A-Za-z0-9][A-Za-z0-9/._~-]*$"

_BODY_SCHEMAS: Final = ("AddLeads", "Lead", "Overrides", "PeopleSearch", "DailyEmailLimit")

_OPEN_VALUES: Final = {
    "PhoneNumber.type": records.PHONE_TYPES,
    "PhoneNumber.source": records.PHONE_SOURCES,
    "PhoneNumber.kind": records.PHONE_KINDS,
    "Activity.event_type": records.EVENT_TYPES,
    "Activity.sequence_type": records.SEQUENCE_TYPES,
}
_SOMETIMES_NULL: Final = {
    "Company.total_funding": "number",
    "Company.latest_funding_stage": "string",
    "Company.latest_funding_date": "string",
    "CompanyLocation.state": "string",
}
_OPEN_FIELDS: Final = {
    "Error": "the interface document does not show the format of errors",
    "Company.locations": "texts, headquarters first",
    "Company.technologies": "names",
    "Company.total_funding": "US dollars",
    "PeopleSearch.company_industries": "matches the industry of a person's company",
    "PeopleSearchResult._errors": "objects with code and message, only when simulated by a fault",
    "LeadList.leads": "objects with an id and fields that depend on the list's type",
    "LeadList._errors": "objects with code, message and count",
    "LeadList._links": "also links to the next and previous page",
}


def choices() -> Iterator[Choice]:
    """Yield the schema path, the added keywords and the note of each choice; paths may repeat.

    >>> next(choices())
    ('AddLeads', {'additionalProperties': False}, 'other fields are rejected (400)')
    """
    yield from _request_choices()
    for place, values in _OPEN_VALUES.items():
        yield place, {"examples": list(values)}, f"one of {', '.join(values)}"
    for place, words in _OPEN_FIELDS.items():
        yield place, {}, words
    for place, kind in _SOMETIMES_NULL.items():
        yield place, {"type": [kind, "null"]}, "sometimes null"
    for search_filter in spec.FILTERS:
        if search_filter.suggestions:
            known = ", ".join(search_filter.suggestions)
            yield f"PeopleSearch.{search_filter.name}", {}, f"values that match people: {known}"


def _request_choices() -> Iterator[Choice]:
    for name in _BODY_SCHEMAS:
        yield name, {"additionalProperties": False}, "other fields are rejected (400)"
    yield "AddLeads.leads", {"minItems": 1}, "at least one lead"
    lowest, highest = rules.DAILY_EMAIL_LIMITS[0], rules.DAILY_EMAIL_LIMITS[-1]
    bounds = {"minimum": lowest, "maximum": highest}
    yield "DailyEmailLimit.daily_email_limit", bounds, f"from {lowest} to {highest}"
    pages = {"minimum": 1, "maximum": rules.MAX_PAGE}
    yield "PeopleSearch.page", pages, "only in this range; pages after the last page are empty"
    for name, pattern in zip(spec.LEAD_IDENTIFIERS, (_EMAIL_RE, _URL_RE), strict=True):
        accepted = {"pattern": pattern, "maxLength": spec.MAX_DATA_VALUE_LENGTH}
        yield f"Lead.{name}", accepted, "other values, such as placeholders, are rejected (400)"
    custom = {"leads_distribution": {"const": spec.MAILBOXES_LEADS_DISTRIBUTION}}
    needs_mailboxes = f"{spec.MAILBOXES_LEADS_DISTRIBUTION} without mailboxes is rejected (400)"
    mailboxes = {"minItems": 1, "items": {"format": "email"}}
    needed = {"required": ["mailboxes"], "properties": {"mailboxes": mailboxes}}
    unused = f"ignored unless leads_distribution is {spec.MAILBOXES_LEADS_DISTRIBUTION}"
    yield "AddLeadsSettings.mailboxes", {"items": {"type": "string"}}, unused
    yield (
        "AddLeadsSettings",
        {
            "additionalProperties": False,
            "if": {"properties": custom, "required": ["leads_distribution"]},
            "then": needed,
        },
        f"other fields are rejected (400); {needs_mailboxes}",
    )
