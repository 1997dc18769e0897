"""Tables for the gallery with any number of categories, some with awkward names."""

from __future__ import annotations

import numpy as np
import pandas as pd

from outreach_frames import spec
from outreach_frames.leads.statuses import STATUSES

_WORDS = (
    "Bright",
    "North",
    "Clear",
    "Stone",
    "Harbour",
    "Silver",
    "Maple",
    "Iron",
    "Blue",
    "Swift",
)
_KINDS = ("forge", "wind", "field", "works", "line", "gate", "bridge", "leaf", "mark", "port")
_LONG = "The Long Established Industrial Machinery and Agricultural Equipment Company of Europe"
_AWKWARD = (_LONG, "Fish & $hips $5", "Müller_& Söhne\nGmbH", "Ünïted {%s} <b>Ltd</b>")


def names(number: int) -> list[str]:
    """Return this many names of companies; every tenth is awkward."""
    plain = [f"{word}{kind}" for kind in _KINDS for word in _WORDS]
    return [
        _AWKWARD[(place // 10) % len(_AWKWARD)] + (f" {place}" if place > 40 else "")
        if place % 10 == 3
        else f"{plain[place % 100]}{f' {place // 100 + 1}' if place >= 100 else ''}"
        for place in range(number)
    ]


def sizes(number: int) -> np.ndarray:
    """Return this many counts, a few large and many small, as for companies and segments."""
    return (50_000 / np.arange(1, number + 1) ** 1.1).astype(int) + 1


def companies(number: int) -> pd.DataFrame:
    """Return tidy headcounts of this many companies."""
    random = np.random.default_rng(7)
    departments = spec.DEPARTMENTS
    shares = random.dirichlet(np.linspace(0.2, 4, len(departments)), number)
    people = (shares * sizes(number)[:, None]).astype(int)
    totals = np.maximum(people.sum(axis=1, keepdims=True), 1)
    return pd.DataFrame(
        {
            "company": pd.array(np.repeat(names(number), len(departments)), dtype="str"),
            "department": pd.array(np.tile(departments, number), dtype="str"),
            "people": pd.array(people.ravel(), dtype="Int64"),
            "share": pd.array((people / totals).ravel(), dtype="Float64"),
            "company_id": pd.array(np.repeat(np.arange(number), len(departments)), dtype="str"),
        }
    )


def departments(number: int) -> pd.DataFrame:
    """Return tidy headcounts of one company with this many departments."""
    people = sizes(number)
    return pd.DataFrame(
        {
            "company": pd.array(["Brightforge"] * number, dtype="str"),
            "department": pd.array(
                [spec.DEPARTMENTS[n] if n < 14 else f"team_{n}" for n in range(number)], dtype="str"
            ),
            "people": pd.array(people, dtype="Int64"),
            "share": pd.array(people / max(people.sum(), 1), dtype="Float64"),
        }
    )


def job_functions(number: int) -> pd.DataFrame:
    """Return tidy headcounts of one company with this many job functions."""
    known = [
        (department, function)
        for department, functions in spec.JOB_FUNCTIONS.items()
        for function in functions
    ]
    chosen = [known[n] if n < len(known) else ("product", f"task_{n}") for n in range(number)]
    table = departments(number).assign(
        department=pd.array([department for department, _ in chosen], dtype="str"),
    )
    table.insert(2, "job_function", pd.array([function for _, function in chosen], dtype="str"))
    return table


def segments(number: int) -> pd.DataFrame:
    """Return a table with this many segments."""
    people = sizes(number)
    industries: list[str | None] = [*names(number)]
    if number > 2:
        industries[2] = None
    return pd.DataFrame(
        {
            "company_industry": pd.array(industries, dtype="str"),
            "people": pd.array(people, dtype="Int64"),
            "companies": pd.array(people // 3 + 1, dtype="Int64"),
            "share": pd.array(people / max(people.sum(), 1), dtype="Float64"),
            "median_employees": pd.array(people * 1.5, dtype="Float64"),
        }
    )


def company_sizes(number: int) -> pd.DataFrame:
    """Return a table of segments with this many sizes of companies."""
    ranges = ["1-10", "11-50", "51-200", "201-500", "501-1,000", "1,001-5,000", "5,001-10,000"]
    labels = [ranges[n] if n < 7 else f"{n},001-{n},999" for n in range(number)]
    table = segments(number).rename(columns={"company_industry": "company_size"})
    return table.assign(company_size=pd.array(labels, dtype="str"))


def outcomes(number: int) -> pd.DataFrame:
    """Return a summary with this many statuses."""
    statuses = [STATUSES[n] if n < len(STATUSES) else f"in_list_{n}" for n in range(number)]
    return pd.DataFrame({"status": statuses, "rows": sizes(number)})


def sending_days(number: int) -> pd.DataFrame:
    """Return sending days of this many mailboxes."""
    days = pd.bdate_range("2026-11-23", periods=min(max(number, 3), 400))
    limits = np.maximum(120 // np.arange(1, number + 1), 5)
    table = pd.DataFrame(
        [
            {"date": day, "email": f"person.number.{n}@team-{n % 7}.example", "emails": limit}
            for day in days
            for n, limit in enumerate(limits)
        ],
        columns=["date", "email", "emails"],
    )
    table["leads_finished"] = table["emails"].cumsum()
    # The last lead starts on the middle day.
    table["leads_started"] = (2 * table["leads_finished"]).clip(upper=table["leads_finished"].max())
    return table


def changes(number: int) -> pd.DataFrame:
    """Return headcount changes of this many companies."""
    table = companies(number).rename(columns={"people": "before"}).drop(columns="share")
    random = np.random.default_rng(11)
    change = (table["before"] * pd.Series(random.normal(0.05, 0.2, len(table)))).round()
    table["change"] = change.astype("Int64")
    table["after"] = table["before"] + table["change"]
    return table
