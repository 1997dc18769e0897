"""The network's name is translated in documented keys only."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.client.request import NetworkName

NAME = "bluebook"

RECEIVED = [
    "profnet_url",
    "company_profnet_url",
    "school_profnet_url",
    "duplicate_profnet_urls",
]
NOT_KNOWN = ["bluebook", "bluebook_urls", "my_bluebook_url", "bluebook_url_2", "note"]

on_wire = [name.replace("profnet", NAME) for name in RECEIVED]
tricky = st.sampled_from(
    [*on_wire, *(f'"{name}":' for name in on_wire), '\\"bluebook_url"', "\\", '"', ":"]
)
texts = tricky | st.text(max_size=8) | st.lists(tricky, max_size=3).map("".join)
keys = st.sampled_from([*on_wire, *NOT_KNOWN]) | texts
documents = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


def renamed(value: Any) -> Any:
    """Rename the documented keys of a value recursively."""
    if isinstance(value, list):
        return [renamed(item) for item in value]
    if isinstance(value, dict):
        known = dict(zip(on_wire, RECEIVED, strict=True))
        return {known.get(key, key): renamed(item) for key, item in value.items()}
    return value


@given(documents, st.sampled_from([(",", ":"), (", ", " : "), (",\n", "\t:\r\n ")]), st.booleans())
def test_only_documented_keys_are_translated(
    value: Any, separators: tuple[str, str], ascii_only: bool
) -> None:
    """Translating the bytes gives the same as renaming the parsed keys, in any formatting."""
    body = json.dumps(value, separators=separators, ensure_ascii=ascii_only).encode()
    assert json.loads(NetworkName(NAME).incoming(body)) == renamed(value)
