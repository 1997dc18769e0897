"""Prospects, sequences and mailboxes of a sales-outreach service as pandas DataFrames.

>>> import outreach_frames as of
>>> with of.connect("sandbox", cache=None):
...     people = of.search_people(person_seniorities=["vp"], limit=10)
>>> len(people)
10
"""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING

import pandas as _pd

from outreach_frames.client.client import Client
from outreach_frames.client.connect import connect, login, logout
from outreach_frames.errors import OutreachError, OutreachWarning
from outreach_frames.leads.planning.syntax import field_name
from outreach_frames.resources.contacts import contacts
from outreach_frames.resources.filters import explain_search, filters
from outreach_frames.resources.lead_lists import lead_list
from outreach_frames.resources.mailboxes import mailboxes, set_daily_email_limit
from outreach_frames.resources.people import count_people, search_people
from outreach_frames.resources.people_filters import PeopleFilters
from outreach_frames.resources.saved_filters import load_filters, save_filters
from outreach_frames.resources.sequences import sequences

if TYPE_CHECKING:
    from outreach_frames import keys, plots, sandbox, widgets
    from outreach_frames.accessor import OutreachAccessor
    from outreach_frames.analysis.capacity import sending_capacity
    from outreach_frames.analysis.interface_columns import columns
    from outreach_frames.export.people import export_people
    from outreach_frames.files.read import read_prospects
    from outreach_frames.history.compare import compare_people
    from outreach_frames.history.snapshots import snapshot_people, snapshots
    from outreach_frames.leads.sending.report import last_report
    from outreach_frames.leads.sending.rows import read_journal
    from outreach_frames.personal_data import clear_cache, forget
    from outreach_frames.service_check import check
    from outreach_frames.tables.interchange import FrameLike

    __version__: str

__all__ = [
    "Client",
    "FrameLike",
    "OutreachError",
    "OutreachWarning",
    "PeopleFilters",
    "check",
    "clear_cache",
    "columns",
    "compare_people",
    "connect",
    "contacts",
    "count_people",
    "explain_search",
    "export_people",
    "field_name",
    "filters",
    "forget",
    "keys",
    "last_report",
    "lead_list",
    "load_filters",
    "login",
    "logout",
    "mailboxes",
    "outreach",
    "plots",
    "read_journal",
    "read_prospects",
    "sandbox",
    "save_filters",
    "search_people",
    "sending_capacity",
    "sequences",
    "set_daily_email_limit",
    "snapshot_people",
    "snapshots",
    "widgets",
]

# Modules to import on first use, because their libraries are slow to import.
_LAZY_MODULES = frozenset({"keys", "plots", "sandbox", "widgets"})
_LAZY_MEMBERS = {
    "FrameLike": "tables.interchange",
    "check": "service_check",
    "clear_cache": "personal_data",
    "columns": "analysis.interface_columns",
    "compare_people": "history.compare",
    "export_people": "export.people",
    "forget": "personal_data",
    "last_report": "leads.sending.report",
    "read_journal": "leads.sending.rows",
    "read_prospects": "files.read",
    "sending_capacity": "analysis.capacity",
    "snapshot_people": "history.snapshots",
    "snapshots": "history.snapshots",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return importlib.metadata.version("outreach-frames")
    if name in _LAZY_MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LAZY_MEMBERS:
        module = importlib.import_module(f"{__name__}.{_LAZY_MEMBERS[name]}")
        return vars(module)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def outreach(frame: FrameLike) -> OutreachAccessor:
    """Return the methods of `df.outreach` for a frame of pandas or of another library.

    Parameters
    ----------
    frame : FrameLike
        A frame of pandas or Polars, a DuckDB relation, an Arrow table, or another object with
        Arrow's PyCapsule interface. The frame is read a single time, rows keep the order of that
        reading, and the frame is not changed.

    Returns
    -------
    OutreachAccessor
        The methods of `df.outreach`. Frames that they return are pandas frames, and row positions
        refer to `frame`. A pandas frame keeps its index; other frames are indexed by row number.

    Raises
    ------
    InvalidInputError
        The object is not a frame or cannot be read; collect a lazy frame first.

    Notes
    -----
    In other libraries' frames, text and categories become str, integers Int64, other numbers
    Float64, booleans boolean, dates and times datetime64; lists keep Arrow types. Convert results
    back with `pl.from_pandas` or `duckdb.from_df`.

    Examples
    --------
    >>> import polars as pl
    >>> import outreach_frames as of
    >>> leads = pl.DataFrame({"email": ["anna@x.example", "ben@"]})
    >>> list(of.outreach(leads).validate()["code"])
    ['invalid_email']
    """
    from outreach_frames.accessor import OutreachAccessor  # noqa: PLC0415

    return OutreachAccessor(frame)


class _Accessor:
    """Imports the methods of `df.outreach` on first use; without a frame, it has them for help."""

    __call__ = staticmethod(outreach)

    def __getattr__(self, name: str) -> object:
        from outreach_frames.accessor import OutreachAccessor  # noqa: PLC0415

        return getattr(OutreachAccessor, name)

    def __dir__(self) -> list[str]:
        from outreach_frames.accessor import OutreachAccessor  # noqa: PLC0415

        return [name for name in vars(OutreachAccessor) if not name.startswith("_")]


_pd.api.extensions.register_dataframe_accessor("outreach")(_Accessor())  # type: ignore[type-var]
