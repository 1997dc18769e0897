"""Widgets for notebooks that search people, add leads and change mailboxes, and write the code.

>>> import outreach_frames as of
>>> with of.connect("sandbox", cache=None) as client:
...     builder = of.widgets.PeopleSearch({"person_seniorities": ["vp"]}, client=client)
>>> builder.filters
{'person_seniorities': ['vp']}
"""

from __future__ import annotations

from outreach_frames.widgets.add_to_sequence.widget import AddToSequence
from outreach_frames.widgets.mailbox_limits.widget import MailboxLimits
from outreach_frames.widgets.people_search.widget import PeopleSearch

__all__ = ["AddToSequence", "MailboxLimits", "PeopleSearch"]


def __dir__() -> list[str]:
    return __all__
