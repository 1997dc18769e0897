"""Reading the body of a request that adds leads.

The interface leaves these open, so they are plain choices. Malformed (400) are: a body with no lead
at all, an unknown field anywhere, an `email` without an @ between two texts (placeholder text), a
`profnet_url` that is no URL with a host and a path, either of these with control characters or over
the length of a data value, and `custom_mailboxes` without `mailboxes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from outreach_frames import spec
from outreach_frames.sandbox.rules import bad_request, identifiers, read_json, read_object, url_key

EMAIL, PROFNET_URL = spec.LEAD_IDENTIFIERS


@dataclass(frozen=True, slots=True)
class Lead:
    """One lead of a request."""

    email: str | None
    profnet_url: str | None
    email_key: str | None
    url_key: str | None
    data: Mapping[str, str]
    overrides: frozenset[str]

    @property
    def keys(self) -> list[str]:
        """The keys that this lead is compared by."""
        return [key for key in (self.email_key, self.url_key) if key]

    @property
    def reference(self) -> dict[str, str | None]:
        """The lead as the lists of skipped leads show it."""
        return {EMAIL: self.email, PROFNET_URL: self.profnet_url}


@dataclass(frozen=True, slots=True)
class Submission:
    """A well-formed request."""

    leads: tuple[Lead, ...]
    custom_mailboxes: tuple[str, ...] | None


def read_submission(body: bytes) -> Submission:
    """Take the body of a request, or refuse it as malformed."""
    fields = read_object(read_json(body), "The body", [field.name for field in spec.ADD_LEADS_BODY])
    leads = fields.get(spec.LEADS_KEY)
    if not isinstance(leads, list):
        raise bad_request("leads must be an array")
    if not 1 <= len(leads) <= spec.MAX_LEADS_PER_REQUEST:
        raise bad_request(f"leads must hold 1 to {spec.MAX_LEADS_PER_REQUEST} leads")
    return Submission(
        tuple(_read_lead(lead, f"leads[{place}]") for place, lead in enumerate(leads)),
        _read_settings(fields["settings"]) if "settings" in fields else None,
    )


def _read_lead(value: object, where: str) -> Lead:
    lead = read_object(value, where, [field.name for field in spec.LEAD])
    email = _read_email(lead.get(EMAIL), where)
    profnet_url = _read_url(lead.get(PROFNET_URL), where)
    if email is None and profnet_url is None:
        raise bad_request(f"{where} has neither {EMAIL} nor {PROFNET_URL}")
    return Lead(
        **identifiers(email, profnet_url),
        data=_read_data(lead.get("data", {}), where),
        overrides=_read_overrides(lead.get("overrides", {}), f"{where}.overrides"),
    )


def _read_email(email: object, where: str) -> str | None:
    if email is None:
        return None
    if not _is_short_text(email) or not re.fullmatch(r"\s*[^\s@]+@[^\s@]+\s*", email):
        raise bad_request(f"{where}.{EMAIL} must be an email address or null")
    return email


def _read_url(url: object, where: str) -> str | None:
    if url is None:
        return None
    if not _is_short_text(url) or url_key(url) is None:
        raise bad_request(f"{where}.{PROFNET_URL} must be a profile URL or null")
    return url


def _is_short_text(value: object) -> TypeGuard[str]:
    """Whether this can be an identifier: SQLite reads a text only up to its first NUL."""
    return (
        isinstance(value, str)
        and len(value) <= spec.MAX_DATA_VALUE_LENGTH
        and not re.search(r"[\x00-\x08\x0e-\x1f\x7f]", value)
    )


def _read_overrides(value: object, where: str) -> frozenset[str]:
    """Take the overrides, and return the names of those that are true."""
    overrides = read_object(value, where, [field.name for field in spec.OVERRIDES])
    for name, flag in overrides.items():
        if not isinstance(flag, bool):
            raise bad_request(f"{where}.{name} must be true or false")
    return frozenset(name for name, flag in overrides.items() if flag)


def _read_data(data: object, where: str) -> Mapping[str, str]:
    if not isinstance(data, dict):
        raise bad_request(f"{where}.data must be an object")
    if len(data) > spec.MAX_DATA_FIELDS:
        raise bad_request(f"{where}.data has more than {spec.MAX_DATA_FIELDS} fields")
    for name, value in data.items():
        if len(name) > spec.MAX_DATA_NAME_LENGTH:
            raise bad_request(
                f"{where}.data has a name of more than {spec.MAX_DATA_NAME_LENGTH} characters"
            )
        if not re.fullmatch(spec.DATA_NAME_PATTERN, name):
            raise bad_request(
                f"{where}.data has a name that is not lowercase letters, digits and underscore,"
                f" beginning with a letter: {name!r}"
            )
        if not isinstance(value, str):
            raise bad_request(f"{where}.data.{name} must be a string")
        if len(value) > spec.MAX_DATA_VALUE_LENGTH:
            raise bad_request(
                f"{where}.data.{name} has more than {spec.MAX_DATA_VALUE_LENGTH} characters"
            )
    return data


def _read_settings(value: object) -> tuple[str, ...] | None:
    """Take the settings; what counts of them is the custom mailboxes, or None."""
    settings = read_object(value, "settings", [field.name for field in spec.ADD_LEADS_SETTINGS])
    distribution = settings.get("leads_distribution", spec.DEFAULT_LEADS_DISTRIBUTION)
    if distribution not in spec.LEADS_DISTRIBUTIONS:
        raise bad_request(
            f"settings.leads_distribution must be one of {', '.join(spec.LEADS_DISTRIBUTIONS)}"
        )
    mailboxes = settings.get(spec.MAILBOXES_KEY, [])
    if not isinstance(mailboxes, list) or not all(isinstance(item, str) for item in mailboxes):
        raise bad_request("settings.mailboxes must be an array of email addresses")
    if distribution != spec.MAILBOXES_LEADS_DISTRIBUTION:
        return None
    if not mailboxes:
        raise bad_request(f"settings.mailboxes is needed for {distribution}")
    return tuple(mailboxes)
