"""Translate the network's name in field names: `profnet` in this package, another on the wire."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from outreach_frames import spec
from outreach_frames.errors import ConfigurationError

# The bodies of endpoints do not describe the leads in their arrays, so add the leads' fields.
_SENT = (*spec.LEAD, *(field for endpoint in spec.ENDPOINTS for field in endpoint.body))
_RECEIVED = tuple(endpoint.result for endpoint in spec.ENDPOINTS)


class NetworkName:
    """Translates field names in requests and responses, but no values."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise ConfigurationError(
                "network_name must be lowercase letters, digits and underscores, beginning with a "
                "letter, because it is part of field names."
            )
        self.name = name
        self._to_wire = {
            field.name: self._spelled(field.name)
            for field in _SENT
            if self._spelled(field.name) != field.name
        }
        self._from_wire = {
            self._spelled(field).encode(): field.encode()
            for resource in _RECEIVED
            for field in _names(resource)
            if self._spelled(field) != field
        }
        keys = b"|".join(re.escape(name) for name in self._from_wire)
        # An unescaped quote delimits a string, and only keys are followed by a colon.
        self._keys = re.compile(rb'(?<!\\)"(' + keys + rb')"(?=\s*:)')

    def _spelled(self, field: str) -> str:
        return field.replace(spec.NETWORK_NAME, self.name)

    @property
    def translates(self) -> bool:
        """Whether any field name differs on the wire."""
        return bool(self._to_wire)

    def outgoing(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Translate the field names of a body and its leads, but not of the leads' data."""
        return {self._to_wire.get(key, key): self._leads(value) for key, value in body.items()}

    def _leads(self, value: Any) -> Any:
        if not self._to_wire or not isinstance(value, list | tuple):
            return value
        return [
            {self._to_wire.get(key, key): inner for key, inner in item.items()}
            if isinstance(item, Mapping)
            else item
            for item in value
        ]

    def incoming(self, body: bytes) -> bytes:
        """Translate the documented keys of a JSON response."""
        if not self._from_wire:
            return body
        return self._keys.sub(lambda key: b'"' + self._from_wire[key[1]] + b'"', body)


def _names(fields: tuple[spec.Field, ...]) -> Iterator[str]:
    for field in fields:
        yield field.name
        yield from _names(field.members)
