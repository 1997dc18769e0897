"""Notebook widgets that search people, add leads and show the Python code."""

from __future__ import annotations

from outreach_frames.widgets.add_to_sequence.widget import AddToSequence
from outreach_frames.widgets.people_search.widget import PeopleSearch

__all__ = ["AddToSequence", "PeopleSearch"]


def __dir__() -> list[str]:
    return __all__
