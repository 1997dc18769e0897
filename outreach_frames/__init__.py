"""Prospects, sequences and mailboxes of a sales-outreach service as pandas DataFrames.

>>> import outreach_frames as of
>>> with of.connect("sandbox", cache=None):
...     people = of.search_people(person_seniorities=["vp"], limit=10)
>>> len(people)
10
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from outreach_frames import accessor as _accessor  # noqa: F401 - registers df.outreach
from outreach_frames.connection import connect
from outreach_frames.contacts import contacts
from outreach_frames.errors import OutreachError
from outreach_frames.export import read_prospects
from outreach_frames.lead_lists import lead_list
from outreach_frames.leads.names import field_name
from outreach_frames.mailboxes import mailboxes, set_daily_email_limit
from outreach_frames.people import count_people, search_people
from outreach_frames.presets import load_filters, save_filters
from outreach_frames.sequences import sequences

if TYPE_CHECKING:
    from types import ModuleType

    from outreach_frames import plots, sandbox, widgets

__all__ = [
    "OutreachError",
    "connect",
    "contacts",
    "count_people",
    "field_name",
    "lead_list",
    "load_filters",
    "mailboxes",
    "plots",
    "read_prospects",
    "sandbox",
    "save_filters",
    "search_people",
    "sequences",
    "set_daily_email_limit",
    "widgets",
]

_LAZY = frozenset({"plots", "sandbox", "widgets"})


def __getattr__(name: str) -> ModuleType:
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})
