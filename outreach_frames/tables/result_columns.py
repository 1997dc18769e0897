"""Columns of the package's own tables, and columns that it adds to the interface's tables."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from outreach_frames.spec import ACTIVITY, Field

ASKED: Final = Field("asked", note="the id or address as you passed it")
FOUND: Final = Field(
    "found", "boolean", note="whether the service has the contact; missing if that is not known"
)
CONTACT_DETAIL: Final = Field("detail", note="why there is no contact")
OUTCOME: Final = Field("outcome", note="changed, differs, failed, unknown or not_sent")
DETAIL: Final = Field("detail", note="why the limit did not change, or the replaced limit")
PEOPLE_IN_FRAME: Final = Field(
    "people_in_frame", "integer", note="number of the company's distinct people in the frame"
)

_COMPANY: Final = Field("company", note="company name, with website, id or number if not unique")
_DEPARTMENT: Final = Field("department", note="department, as named in the interface")
_HEADCOUNT: Final = (
    Field("people", "integer", note="number of employees"),
    Field("share", "number", note="people divided by the sum of the company's rows, 0 to 1"),
    Field("company_id", note="id of the company"),
)
_PERSON_ID: Final = Field("person_id", note="id of the person, or profile URL if the id is missing")
_NAME: Final = Field("name", note="full name")

# Keys are the names of functions or attributes that return the tables.
RESULT_TABLES: Final[Mapping[str, tuple[Field, ...]]] = MappingProxyType(
    {
        "headcount": (_COMPANY, _DEPARTMENT, *_HEADCOUNT),
        "job_function_headcount": (
            _COMPANY,
            _DEPARTMENT,
            Field("job_function", note="job function, as named in the interface"),
            *_HEADCOUNT,
        ),
        "validate": (
            Field("row", "integer", note="position of the row in the frame, from 0"),
            Field("index", note="the row's index"),
            Field("column", note="column with the problem"),
            Field("field", note="field of the lead that is read from the column"),
            Field("code", note="kind of problem"),
            Field("message", note="problem, and what to do"),
        ),
        "report_rows": (
            Field("index", note="the row's index"),
            Field("status", note="outcome of the row"),
            Field("detail", note="reason for the status"),
            Field("error_code", note="the service's error code for a rejected row"),
            Field("earlier_run", "boolean", note="whether an earlier run recorded the outcome"),
            Field("chunk", "integer", note="number of the row's chunk, from 1"),
            Field("attempts", "integer", note="number of times the row was sent"),
            Field("sent_at", format="date-time", note="first time the row may have been added"),
        ),
        "report_activity": (
            Field("row", "integer", note="position of the row in the report, from 0"),
            Field("contact_id", note="id of the contact"),
            Field("email", note="the row's address"),
            *ACTIVITY,
        ),
        "report_summary": (
            Field("status", note="outcome of the rows"),
            Field("rows", "integer", note="number of rows"),
            Field(
                "earlier_run", "integer", note="number of these rows that an earlier run recorded"
            ),
        ),
        "account_people": (
            Field("account_row", "integer", note="position of the account's row, from 0"),
            Field("account_rank", "integer", note="rank of the person at the account, from 1"),
            Field("matched_seniority", note="first of person_seniorities that the person matches"),
        ),
        "accounts": (
            Field(
                "account_status",
                note="found, several, similar, nobody, invalid, duplicate_in_frame or missing",
            ),
            Field("account_people", "integer", note="number of people found at the account"),
            Field("account_total", "integer", note="number of matching people at the account"),
            Field("account_company_id", note="first person's company id"),
            Field("account_company_name", note="first person's company name"),
            Field("account_detail", note="reason for the status, or the companies found"),
        ),
        "accounts_summary": (
            Field("account_status", note="outcome of the accounts"),
            Field("accounts", "integer", note="number of accounts"),
            Field("people", "integer", note="number of people found at these accounts"),
        ),
        "match": (
            Field("match_row", "integer", note="position of the first matching row, from 0"),
            Field("match_index", note="index label of the first matching row"),
            Field("match_by", note="kind of key that matched"),
            Field("match_count", "integer", note="number of matching rows"),
        ),
        "filters": (
            Field("name", note="name of the filter"),
            Field("type", note="type of the filter's value"),
            Field("group", note="subject of the filter"),
            Field("values", "array", items="string", note="values of the sandbox"),
            Field("excludes", note="filter whose matches this filter excludes"),
            Field("meaning", note="the interface document's words; missing if it has none"),
            Field("example", note="a valid value"),
        ),
        "explain_search": (
            Field("filter", note="name of the filter"),
            Field("value", note="dropped value; missing if all values were dropped"),
            Field("people_without", "integer", note="number of people found without this value"),
            Field("people_alone", "integer", note="number of people found with this value alone"),
        ),
        "snapshots": (
            Field("date", format="date", note="day of the snapshot"),
            Field("people", "integer", note="number of people in the snapshot"),
            Field("filters", note="filters of the search"),
            Field("path", note="path of the snapshot's folder"),
        ),
        "changed": (
            _PERSON_ID,
            _NAME,
            Field("field", note="column whose value changed"),
            Field("before", note="value before, as text"),
            Field("after", note="value after, as text"),
        ),
        "employer_changes": (
            _PERSON_ID,
            _NAME,
            Field("company_before", note="employer before"),
            Field("company_after", note="employer after"),
            Field("title_before", note="job title before"),
            Field("title_after", note="job title after"),
            Field("profnet_url", note="profile URL in the later table, else in the earlier table"),
            Field("company_id_before", note="id of the employer before"),
            Field("company_id_after", note="id of the employer after"),
            Field(
                "current_position_start_date",
                format="date",
                note="start of the current position, in the later table",
            ),
        ),
        "headcount_change": (
            Field("company_id", note="id of the company"),
            Field("company", note="name of the company"),
            _DEPARTMENT,
            Field("before", "integer", note="employees before"),
            Field("after", "integer", note="employees after"),
            Field("change", "integer", note="after minus before"),
            Field("growth", "number", note="change divided by the earlier headcount"),
        ),
        "comparison_summary": (
            Field("item", note="kind of item"),
            Field("count", "integer", note="number of items"),
            Field("note", note="explanation of the count"),
        ),
        "forget": (
            Field("path", note="path of the file with people's data"),
            Field("kind", note="cache, journal, checkpoint, table or snapshot"),
            Field("rows", "integer", note="number of entries or rows"),
            Field("removed", "boolean", note="whether the people were removed"),
            Field("how", note="how to remove the people, or why the file was not read"),
        ),
        "columns": (
            Field("name", note="name of the column"),
            Field("label", note="words of the column in plots, unique within the table"),
            Field("dtype", note="dtype of the column"),
            Field("meaning", note="meaning of the column"),
            Field("group", note="object that has the column"),
        ),
    }
)

# Dtypes that a Field cannot express.
RESULT_DTYPES: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("validate", "index"): "dtype of the index",
        ("report_rows", "index"): "object",
        ("match", "match_index"): "dtype of the index",
        ("match", "match_by"): "category",
        ("snapshots", "filters"): "object",
        ("filters", "example"): "object",
    }
)
