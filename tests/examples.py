"""How many examples a property is tried on: more where the profile is `thorough`."""

from __future__ import annotations

from hypothesis import settings


def share_of_examples(share: float) -> settings:
    """Take a share of the profile's examples, where one of them takes long or next to nothing."""
    return settings(max_examples=max(1, round(settings().max_examples * share)))
