"""The interface as data, held against the interface document's own tables, row by row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from outreach_frames import spec

DOCUMENT = Path(__file__).parents[2] / "shared" / "interface.md"

pytestmark = pytest.mark.skipif(
    not DOCUMENT.exists(), reason="the interface document is not beside this checkout"
)


def tables(heading: str) -> list[list[list[str]]]:
    """Return the tables of one chapter of the document, each as rows of cells, header left out."""
    text = DOCUMENT.read_text(encoding="utf-8")
    chapter = re.search(
        rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,3}} |\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert chapter, heading
    blocks = re.findall(r"(?:^\|.*\n)+", chapter[2], re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]
        for block in blocks
    ]


def fields(rows: list[list[str]]) -> list[list[str]]:
    """Give each field of a row such as "name, title | string" a row of its own."""
    return [[name.strip(), *row[1:]] for row in rows for name in row[0].split(",")]


RESOURCES = {
    "Link object": spec.LINK,
    "Sequence": spec.SEQUENCE,
    "Lead (element of the `leads` request array when adding leads)": spec.LEAD,
    "Add-leads settings object (optional)": spec.ADD_LEADS_SETTINGS,
    "Contact": spec.CONTACT,
    "Person (element of `results` in people search)": spec.PERSON,
    "Company (the `company` of a person)": spec.COMPANY,
    "Lead list": spec.LEAD_LIST,
    "Mailbox": spec.MAILBOX,
}


@pytest.mark.parametrize("heading", RESOURCES)
def test_a_resource_has_the_documents_fields_in_order(heading: str) -> None:
    """Each resource has exactly the fields of its table, in its order."""
    assert [field.name for field in RESOURCES[heading]] == [
        row[0] for row in fields(tables(heading)[0])
    ]


@pytest.mark.parametrize("heading", RESOURCES)
def test_a_field_has_the_documents_type(heading: str) -> None:
    """Each field's type, format and nullability are those of the document."""
    contact = heading == "Contact"
    for known, row in zip(RESOURCES[heading], fields(tables(heading)[0]), strict=True):
        written = " ".join(row[1:3] if contact else row[1:2])
        note = " ".join(row[1:])
        assert known.type in written, row
        assert written.startswith("array") == (known.type == "array"), row
        if contact:
            assert known.nullable == (row[2] == "yes"), row
            assert known.required == (row[3] == "yes"), row
        else:
            assert known.nullable == ("or null" in written), row
        if known.format in {"date", "uuid", "date-time"}:
            word = {"date-time": "time"}.get(known.format, known.format)
            assert word in note, row
        elif known.type == "string" and not known.format:
            assert not re.search(r"uuid|date-time|\bdate\b", note), row
        if known.constant and "constant" in note:
            assert f"constant {known.constant}" in note, row


def test_nested_fields_are_those_of_the_notes() -> None:
    """Every member of a nested object is named in the document's text, for each nested field."""
    people, companies = (
        tables("Person (element of `results` in people search)")[0],
        tables("Company (the `company` of a person)")[0],
    )
    for rows, resource in ((people, spec.PERSON), (companies, spec.COMPANY)):
        named = {row[0]: " ".join(row[1:]) for row in fields(rows)}
        for known in resource:
            for member in known.members if "headcount" not in known.name else ():
                if known.name != "company":
                    assert f"`{member.name}`" in named[known.name], (known.name, member.name)


def test_departments_and_job_functions_are_the_documents() -> None:
    """The 14 departments and the 194 job functions are exactly those of the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    listed = re.search(r"`department_headcount` keys: (.*)\.", text)
    assert listed is not None
    assert tuple(listed[1].split(", ")) == spec.DEPARTMENTS
    rows = tables("Company (the `company` of a person)")[1]
    assert {row[0]: tuple(row[1].split(", ")) for row in rows} == dict(spec.JOB_FUNCTIONS)
    assert sum(map(len, spec.JOB_FUNCTIONS.values())) == 194


def test_search_filters_are_the_documents() -> None:
    """The 30 filters and the two paging fields have the document's names, order and types."""
    rows = tables("POST /people/search")[0]
    known = [*spec.FILTERS, *spec.SEARCH_PAGING]
    assert len(spec.FILTERS) == 30
    assert [entry.name for entry in known] == [row[0] for row in rows]
    for entry, row in zip(known, rows, strict=True):
        assert row[1].startswith(entry.type), row
        assert not isinstance(entry, spec.Filter) or (entry.format == "uuid") == ("uuid" in row[1])
        assert not isinstance(entry, spec.Filter) or (entry.format == "domain") == (
            "domain string" in row[1]
        )


def test_every_excluding_filter_names_its_counterpart() -> None:
    """A filter with "exclude" in its name is the opposite of the filter without."""
    for entry in spec.FILTERS:
        counterpart = re.sub(r"exclude_", "", entry.name) if "exclude" in entry.name else ""
        assert entry.excludes == counterpart


def test_overrides_errors_and_statuses_are_the_documents() -> None:
    """Overrides, error codes and sequence statuses are those of their tables."""
    lead = tables("Lead (element of the `leads` request array when adding leads)")
    assert [field.name for field in spec.OVERRIDES] == [row[0] for row in lead[1]]
    assert set(spec.CHECK_OVERRIDES.values()) == {field.name for field in spec.OVERRIDES}
    assert list(spec.ADD_LEADS_ERRORS) == [row[0] for row in tables("Errors")[1]]
    statuses = {row[0]: row[1].startswith("yes") for row in tables("States and transitions")[0]}
    assert dict(spec.SEQUENCE_STATUSES) == statuses


def test_the_add_leads_result_is_the_documents() -> None:
    """The result of adding leads has the document's properties; one is printed under two names."""
    rows = tables("Add-leads success result")[0]
    for known, row in zip(spec.ADD_LEADS_RESULT, rows, strict=True):
        assert known.name == row[0] or known.name in row[2]
        assert row[1].startswith(known.type)
        assert known.name == row[0] or re.fullmatch(spec.DUPLICATE_URLS_PATTERN, row[0])


def test_the_request_body_of_adding_leads_is_the_documents() -> None:
    """The body of adding leads has the document's two fields."""
    rows = tables("POST /sequences/{id}/leads")[0]
    assert [(known.name, known.required) for known in spec.ADD_LEADS_BODY] == [
        (row[0], row[2] == "yes") for row in rows
    ]


def test_enumerations_are_in_the_documents_notes() -> None:
    """Closed lists hold exactly the values that the document's notes give."""
    mailbox = {row[0]: row[2] for row in tables("Mailbox")[0]}
    assert ", ".join(spec.EMAIL_PROVIDERS) == mailbox["email_provider"]
    assert ", ".join(spec.MAILBOX_STATUSES) == mailbox["status"]
    lead_list = {row[0]: row[3] for row in tables("Lead list")[0]}
    assert ", ".join(spec.LEAD_LIST_STATUSES) == lead_list["status"]
    assert ", ".join(spec.LEAD_LIST_TYPES) == lead_list["type"]
    for known in spec.LEAD_LIST_OPTIONS:
        assert f"`{known.name}`" in lead_list["options"]
    settings = {row[0]: row[2] for row in tables("Add-leads settings object (optional)")[0]}
    for value in spec.LEADS_DISTRIBUTIONS:
        assert f"`{value}`" in settings["leads_distribution"]


def test_limits_are_the_documents() -> None:
    """Every number of the Limits table is the one in spec."""
    limits = {row[0]: (row[1], row[2]) for row in tables("Limits")[0]}
    assert str(spec.MAX_LEADS_PER_REQUEST) in limits["Leads per request"][0]
    assert str(spec.MAX_DATA_FIELDS) in limits["Data fields per lead"][0]
    assert str(spec.MAX_DATA_NAME_LENGTH) in limits["Data field name length"][0]
    assert str(spec.MAX_DATA_VALUE_LENGTH) in limits["Data field value length"][0]
    assert str(spec.MAX_CONTACT_IDS) in limits["Contact ids per request"][0]
    assert str(spec.MAX_MAILBOX_PAGE_SIZE) in limits["Page size"][0]
    assert limits["page_size"][0] == (
        f"{spec.MIN_SEARCH_PAGE_SIZE} to {spec.MAX_SEARCH_PAGE_SIZE}, "
        f"default {spec.DEFAULT_SEARCH_PAGE_SIZE}"
    )
    assert spec.RETRY_AFTER_HEADER in limits


def test_endpoints_are_the_documents_and_take_its_query_parameters() -> None:
    """The eight operations and all their query parameters are those of the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [endpoint.label for endpoint in spec.ENDPOINTS] == re.findall(
        r"^### ((?:GET|POST|PATCH) /.*)$", text, re.MULTILINE
    )
    for endpoint in spec.ENDPOINTS:
        chapter = text.split(f"### {endpoint.label}\n")[1].split("\n### ")[0]
        for parameter in endpoint.query:
            assert f"`{parameter.name}`" in chapter, (endpoint.label, parameter.name)


def test_a_search_result_has_the_documents_properties() -> None:
    """The response of a people search and its pagination have the document's properties."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for known in spec.PEOPLE_SEARCH_RESULT:
        assert f"`{known.name}` ({'required' if known.required else 'optional'}" in text
    for known in spec.PAGINATION:
        assert f"`{known.name}`" in text.split("### Pagination object")[1].split("###")[0]


def test_phone_numbers_and_activities_have_the_documents_fields() -> None:
    """Phone numbers and activity items have the fields of the document's sentences."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for start, members in (
        ("Phone number: ", spec.PHONE_NUMBER),
        ("Activity item: ", spec.ACTIVITY),
    ):
        sentence = text.split(start)[1].split("\n")[0]
        assert re.findall(r"`(\w+)`", sentence) == [member.name for member in members]
