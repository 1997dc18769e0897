"""The number of examples per property test; the profile `thorough` raises it."""

from __future__ import annotations

from hypothesis import settings


def share_of_examples(share: float) -> settings:
    """Return settings with a share of the profile's examples, for slow or simple properties."""
    return settings(max_examples=max(1, round(settings().max_examples * share)))
