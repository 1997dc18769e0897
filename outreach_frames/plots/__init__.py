"""Plot people, companies, submissions and sending days on matplotlib Axes."""

from __future__ import annotations

from outreach_frames.plots.headcounts import companies, headcount, headcount_change
from outreach_frames.plots.people_bars import segments
from outreach_frames.plots.sending_bars import capacity, outcomes

__all__ = [
    "capacity",
    "companies",
    "headcount",
    "headcount_change",
    "outcomes",
    "segments",
]


def __dir__() -> list[str]:
    return __all__
