"""The contents of the reference pages: each public name under its task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.accessor import OutreachAccessor
from outreach_frames.accounts.result import AccountPeople
from outreach_frames.client.client import Client
from outreach_frames.history.result import PeopleComparison
from outreach_frames.leads.plan import SubmissionPlan
from outreach_frames.leads.sending.report import SubmissionReport

ACCESSOR: Final = "df.outreach."


@dataclass(frozen=True)
class Result:
    """A class that functions return and that analysts do not construct.

    `members` are its documented methods and properties, without the docstring's attributes.
    """

    made: type
    members: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """One page: its file's name, title, introduction and documented names."""

    page: str
    title: str
    intro: str
    names: tuple[str, ...]


# By the names that pages use.
RESULTS: Final[dict[str, Result]] = {
    "of.Client": Result(Client, ("close", "closed")),
    "AccountPeople": Result(AccountPeople, ("summary", "to_csv", "to_excel")),
    "SubmissionPlan": Result(SubmissionPlan, ("submit", "problems", "payloads", "frame")),
    "SubmissionReport": Result(
        SubmissionReport,
        (
            *("summary", "frame", "to_csv", "to_excel", "retry_unknown", "raise_for_error"),
            "recent_activity",
        ),
    ),
    "PeopleComparison": Result(
        PeopleComparison, ("headcount", "headline", "summary", "to_csv", "to_excel")
    ),
    "of.sandbox.Sandbox": Result(
        of.sandbox.Sandbox, ("advance", "faults", "leads", "set_response_rates", "stop")
    ),
}
# Documented methods of classes that analysts construct.
MEMBERS: Final[dict[str, tuple[str, ...]]] = {
    "of.widgets.PeopleSearch": ("search", "cancel", "save", "load"),
    "of.widgets.AddToSequence": ("cancel",),
}
# The descriptions of type aliases, which have no docstrings.
TYPES: Final[dict[str, str]] = {
    "of.FrameLike": "The type of accepted frames, for annotations: a pandas frame, or a table "
    "with Arrow's PyCapsule interface.",
    "of.PeopleFilters": "The type of a dict of filters, for annotations: a TypedDict of all "
    ":doc:`filters`.",
}

# The service's lists that no other page documents.
_OTHER_LISTS: Final = tuple(
    f"of.{one.listed.name}"
    for one in spec.LISTS
    if one not in (spec.LIST_SEQUENCES, spec.LIST_MAILBOXES)
)

TASKS: Final = (
    Task(
        "connecting",
        "Connect to an account",
        "Every function uses the last connection that was made, or the one passed as ``client=``. "
        "If there is no connection, functions call :py:obj:`of.connect` without arguments. It "
        "uses the profile that the environment names, else the address and token in the "
        "environment, else the profile ``default`` of :py:obj:`of.login`.",
        ("of.login", "of.connect", "of.logout", "of.check", "of.Client"),
    ),
    Task(
        "people",
        "Search people",
        "Up to 30 filters, one flat row per person. :doc:`filters` says what each filter takes, "
        ":doc:`columns` what the columns mean.",
        (
            "of.search_people",
            "of.count_people",
            "of.explain_search",
            "of.filters",
            "of.PeopleFilters",
            "of.save_filters",
            "of.load_filters",
        ),
    ),
    Task(
        "tables",
        "Make tables of people",
        "Methods of a frame of people, and functions that describe the frames. No method changes "
        "its frame.",
        (
            "df.outreach.brief",
            "df.outreach.companies",
            "df.outreach.headcount",
            "df.outreach.segments",
            "df.outreach.tenure",
            "df.outreach.experiences",
            "df.outreach.educations",
            "df.outreach.languages",
            "df.outreach.locations",
            "df.outreach.phone_numbers",
            "df.outreach.recent_activity",
            "df.outreach.unlist",
            "of.columns",
        ),
    ),
    Task(
        "frames",
        "Frames of other libraries",
        "Frames of Polars, DuckDB and Arrow are accepted wherever a frame is.",
        ("of.outreach", "of.FrameLike"),
    ),
    Task(
        "accounts",
        "From companies to people",
        "Find people at the companies of your own table, and match them with people that you "
        "know already.",
        (
            "df.outreach.find_people",
            "AccountPeople",
            "df.outreach.match",
            "df.outreach.without",
            "of.keys.email",
            "of.keys.domain",
            "of.keys.profnet_url",
            "of.keys.company_name",
        ),
    ),
    Task(
        "sequences",
        "Add leads to a sequence",
        "Add the rows of a frame to a sequence; every row has an outcome. :doc:`statuses` says "
        "what each outcome means and what to do.",
        (
            "of.sequences",
            "df.outreach.validate",
            "df.outreach.plan",
            "SubmissionPlan",
            "df.outreach.add_to_sequence",
            "df.outreach.report",
            "SubmissionReport",
            "of.last_report",
            "of.read_journal",
            "of.field_name",
        ),
    ),
    Task(
        "mailboxes",
        "Mailboxes and sending capacity",
        "How much the account's mailboxes send in a day, and how long a campaign takes.",
        ("of.mailboxes", "of.set_daily_email_limit", "of.sending_capacity"),
    ),
    Task(
        "contacts",
        "Contacts and lead lists",
        "People in the account.",
        ("of.contacts", "of.lead_list", *_OTHER_LISTS),
    ),
    Task(
        "history",
        "What changed over time",
        "Snapshots of a search, and the difference between two of them.",
        ("of.snapshot_people", "of.snapshots", "of.compare_people", "PeopleComparison"),
    ),
    Task(
        "files",
        "Files",
        "Write frames to files, read them back, and export searches that are too large for memory.",
        (
            "df.outreach.to_csv",
            "df.outreach.to_excel",
            "df.outreach.to_parquet",
            "of.read_prospects",
            "of.export_people",
        ),
    ),
    Task(
        "plots",
        "Plots",
        "Each function draws people, or a table of them, on matplotlib axes and returns the axes; "
        "all take ``ax=``. :doc:`The gallery </gallery/index>` shows them.",
        tuple(f"of.plots.{name}" for name in of.plots.__all__),
    ),
    Task(
        "widgets",
        "Widgets for notebooks",
        "Do the same by hand, and see the equivalent code. :doc:`Widgets </widgets/index>` shows "
        "them.",
        tuple(f"of.widgets.{name}" for name in of.widgets.__all__),
    ),
    Task(
        "sandbox",
        "Sandbox",
        "The whole service on your own machine, with invented people. :doc:`/how-to/faults` shows "
        "how to simulate faults, :doc:`/how-to/test-your-script` how to test your own code.",
        ("of.sandbox.serve", "of.sandbox.Sandbox", "of.sandbox.Fault"),
    ),
    Task(
        "personal_data",
        "Personal data on this machine",
        "Where people are stored, and how to remove them.",
        ("of.forget", "of.clear_cache"),
    ),
)


def thing(name: str) -> Any:
    """Return the documented object with this name on the pages.

    >>> thing("df.outreach.headcount").__name__
    'headcount'
    """
    if name in RESULTS:
        return RESULTS[name].made
    if name.startswith(ACCESSOR):
        return getattr(OutreachAccessor, name.removeprefix(ACCESSOR))
    found: Any = of
    for part in name.removeprefix("of.").split("."):
        found = getattr(found, part)
    return found
