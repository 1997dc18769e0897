"""Validate the body of a request that adds leads.

Choices where the interface document is silent: a 400 rejects a body without leads, unknown fields,
an `email` without an @ between two texts, a `profnet_url` without host and path, an `email` or
`profnet_url` with control characters or longer than a data value, and `custom_mailboxes` without
`mailboxes`. The contact of an added lead copies those data fields that contacts have too.
"""

from __future__ import annotations

import uuid
from functools import cached_property
from typing import Annotated, Any
from urllib.parse import quote

from msgspec import Meta, Struct, field

from outreach_frames import spec
from outreach_frames.sandbox.rules import email_key, lead_keys, url_key

EMAIL, PROFNET_URL = spec.LEAD_IDENTIFIERS

# Control characters are excluded: SQLite cuts a text at its first NUL.
_CLEAN = r"(?s)^(?!.*[\x00-\x08\x0e-\x1f\x7f])"
Identifier = Annotated[str, Meta(max_length=spec.MAX_DATA_VALUE_LENGTH, pattern=_CLEAN)]
Email = Annotated[
    str,
    Meta(max_length=spec.MAX_DATA_VALUE_LENGTH, pattern=rf"{_CLEAN}\s*[^\s@]+@[^\s@]+\s*\Z"),
]
DataName = Annotated[
    str, Meta(max_length=spec.MAX_DATA_NAME_LENGTH, pattern=rf"^{spec.DATA_NAME_PATTERN}\Z")
]
DataValue = Annotated[str, Meta(max_length=spec.MAX_DATA_VALUE_LENGTH)]
Data = Annotated[dict[DataName, DataValue], Meta(max_length=spec.MAX_DATA_FIELDS)]
Distribution = Annotated[str, Meta(pattern=rf"^({'|'.join(spec.LEADS_DISTRIBUTIONS)})\Z")]

# The fields of a contact that are copied from a lead's data.
_CONTACT_DATA = "name first_name last_name title location time_zone company_name company_domain"
_URI_CHARACTERS = "!#$%&'()*+,/:;=?@~"


class Lead(Struct, forbid_unknown_fields=True, dict=True):
    """A lead of a request."""

    email: Email | None = None
    profnet_url: Identifier | None = None
    data: Data = {}
    overrides: dict[str, bool] = {}

    def __post_init__(self) -> None:
        if self.email is None and self.profnet_url is None:
            raise ValueError(f"a lead needs {EMAIL} or {PROFNET_URL}")
        if self.profnet_url is not None and url_key(self.profnet_url) is None:
            raise ValueError(f"{PROFNET_URL} must be a profile URL or null")
        unknown = self.overrides.keys() - spec.OVERRIDE_NAMES
        if unknown:
            raise ValueError(f"unknown overrides: {', '.join(sorted(unknown))}")

    @cached_property
    def keys(self) -> dict[str, str]:
        """The identifiers by their normalised keys."""
        return lead_keys(self.email, self.profnet_url)

    @property
    def reference(self) -> dict[str, str | None]:
        """The lead as an item of a list of skipped leads."""
        return {EMAIL: self.email, PROFNET_URL: self.profnet_url}

    @property
    def contact(self) -> dict[str, Any]:
        """The lead as a contact without activity; equal emails give equal ids."""
        url = (self.profnet_url or "").strip()
        if url and "://" not in url:
            url = f"https://{url}"
        return {
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, email_key(self.email or ""))),
            EMAIL: self.email and self.email.strip(),
            **{name: self.data.get(name) or None for name in _CONTACT_DATA.split()},
            PROFNET_URL: quote(url, _URI_CHARACTERS) or None,
            "owner": None,
            "last_contacted_at": None,
            "phone_numbers": [],
            "recent_activity": [],
        }


class Settings(Struct, forbid_unknown_fields=True):
    """The settings of a request."""

    leads_distribution: Distribution = spec.DEFAULT_LEADS_DISTRIBUTION
    mailboxes: list[str] = []

    def __post_init__(self) -> None:
        if self.custom_mailboxes == []:
            raise ValueError(f"mailboxes is needed for {self.leads_distribution}")

    @property
    def custom_mailboxes(self) -> list[str] | None:
        """The mailboxes, or None if the distribution does not use them."""
        is_custom = self.leads_distribution == spec.MAILBOXES_LEADS_DISTRIBUTION
        return self.mailboxes if is_custom else None


class Submission(Struct, forbid_unknown_fields=True):
    """The body of a request that adds leads."""

    leads: Annotated[list[Lead], Meta(min_length=1, max_length=spec.MAX_LEADS_PER_REQUEST)]
    settings: Settings = field(default_factory=Settings)
