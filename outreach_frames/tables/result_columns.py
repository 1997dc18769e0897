"""The columns that the package adds to the interface's, and those of its own tables."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from outreach_frames.spec import Field

ASKED: Final = Field("asked", note="the id or address as it was given")
FOUND: Final = Field("found", "boolean", required=True, note="whether the service has the contact")
OUTCOME: Final = Field("outcome", note="changed, differs, failed, unknown or not_sent")
DETAIL: Final = Field("detail", note="why, where the limit did not change")
PEOPLE_IN_FRAME: Final = Field(
    "people_in_frame", "integer", note="rows of the frame that work at the company"
)

_COMPANY: Final = Field("company", note="name of the company, with more where several have it")
_DEPARTMENT: Final = Field("department", note="department, as the interface names it")
_HEADCOUNT: Final = (
    Field("people", "integer", note="employees there"),
    Field("share", "number", note="part of all the company's employees at that level, 0 to 1"),
    Field("company_id", note="id of the company"),
)
_PERSON_ID: Final = Field("person_id", note="id of the person, or profile URL where there is none")
_NAME: Final = Field("name", note="full name")

# By the name of the function, or of the attribute of the object that has the table.
RESULT_TABLES: Final[Mapping[str, tuple[Field, ...]]] = MappingProxyType(
    {
        "headcount": (_COMPANY, _DEPARTMENT, *_HEADCOUNT),
        "job_function_headcount": (
            _COMPANY,
            _DEPARTMENT,
            Field("job_function", note="job function, as the interface names it"),
            *_HEADCOUNT,
        ),
        "validate": (
            Field("row", "integer", note="position of the row in the frame, from 0"),
            Field("index", note="the row's index"),
            Field("column", note="column that has the problem"),
            Field("field", note="field of the lead that it would be"),
            Field("code", note="kind of problem"),
            Field("message", note="what is wrong, and what to do"),
        ),
        "report_rows": (
            Field("index", note="the row's index"),
            Field("status", note="what became of the row"),
            Field("detail", note="why"),
            Field("error_code", note="the service's code, where it refused the row"),
            Field("chunk", "integer", note="number of the request that had the row, from 0"),
            Field("attempts", "integer", note="how many times the row was sent"),
        ),
        "report_summary": (
            Field("status", note="what became of the rows"),
            Field("rows", "integer", note="how many rows"),
        ),
        "account_people": (
            Field("account_row", "integer", note="position of the account in its frame, from 0"),
            Field("account_rank", "integer", note="rank of the person at the account, from 1"),
        ),
        "accounts": (
            Field("account_status", note="found, nobody, invalid, duplicate_in_frame or not_sent"),
            Field("account_people", "integer", note="people found at the account"),
            Field("account_total", "integer", note="people whom the service has there"),
            Field("account_company_id", note="id of the company of the first person"),
            Field("account_company_name", note="name of that company"),
            Field("account_detail", note="why, or which companies were found"),
        ),
        "accounts_summary": (
            Field("account_status", note="what became of the accounts"),
            Field("accounts", "integer", note="how many accounts"),
            Field("people", "integer", note="people found at them"),
        ),
        "match": (
            Field("match_row", "integer", note="position of the row that matches, from 0"),
            Field("match_index", note="index of the row that matches"),
            Field("match_by", note="key by which it matches"),
            Field("match_count", "integer", note="how many rows match"),
        ),
        "filters": (
            Field("name", note="name of the filter"),
            Field("type", note="type of its value"),
            Field("group", note="what it is about"),
            Field("values", "array", items="string", note="values that it is known to take"),
            Field("excludes", note="filter that it is the opposite of"),
        ),
        "explain_search": (
            Field("filter", note="name of the filter"),
            Field("value", note="the value that is left out; missing where all are"),
            Field("people_without", "integer", note="people whom the search finds without it"),
        ),
        "snapshots": (
            Field("date", format="date", note="day of the snapshot"),
            Field("people", "integer", note="people in it"),
            Field("filters", note="the search"),
            Field("path", note="folder of the snapshot"),
        ),
        "changed": (
            _PERSON_ID,
            _NAME,
            Field("field", note="column that has another value"),
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
        ),
        "headcount_change": (
            Field("company_id", note="id of the company"),
            Field("company", note="name of the company"),
            _DEPARTMENT,
            Field("before", "integer", note="employees before"),
            Field("after", "integer", note="employees after"),
            Field("change", "integer", note="after less before"),
            Field("growth", "number", note="the change as a share of before"),
        ),
        "comparison_summary": (
            Field("item", note="what is counted"),
            Field("count", "integer", note="how many"),
            Field("note", note="how to read it"),
        ),
        "forget": (
            Field("path", note="file that holds the person"),
            Field("kind", note="cache, journal, checkpoint or export"),
            Field("rows", "integer", note="how many entries or rows"),
            Field("removed", "boolean", note="whether they were removed"),
        ),
        "columns": (
            Field("name", note="name of the column"),
            Field("dtype", note="its dtype"),
            Field("meaning", note="what it says"),
            Field("group", note="what it is about"),
        ),
    }
)

# Columns whose dtype is not that of a field.
RESULT_DTYPES: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("validate", "index"): "that of the index",
        ("report_rows", "index"): "object",
        ("match", "match_index"): "that of the index",
        ("match", "match_by"): "category",
        ("snapshots", "filters"): "object",
    }
)
