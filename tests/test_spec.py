"""Compare the interface in `spec` with the facts of the interface document."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from outreach_frames import spec

# The names, types and limits of the interface document, without its sentences.
FACTS_FILE = Path(__file__).with_name("interface_facts.json")
Fact = dict[str, Any]
FACTS: Fact = json.loads(FACTS_FILE.read_text(encoding="utf-8"))

RESOURCES = {
    "Link object": spec.LINK,
    "Sequence": spec.SEQUENCE,
    "Lead": spec.LEAD,
    "Add-leads settings object": spec.ADD_LEADS_SETTINGS,
    "Add-leads success result": spec.ADD_LEADS_RESULT,
    "Contact": spec.CONTACT,
    "Phone number": spec.PHONE_NUMBER,
    "Activity item": spec.ACTIVITY,
    "Person": spec.PERSON,
    "Company": spec.COMPANY,
    "Pagination object": spec.PAGINATION,
    "Search result": spec.PEOPLE_SEARCH_RESULT,
    "Lead list": spec.LEAD_LIST,
    "Mailbox": spec.MAILBOX,
}

# Formats that the document states for every field; it states other formats only sometimes.
STATED_FORMATS = {"date", "date-time", "uuid", "domain"}


def check(known: spec.Field | spec.Filter, fact: Fact) -> None:
    """Compare one field with its fact; properties missing from the fact must be unset."""
    assert known.name == fact["name"]
    assert known.type == fact.get("type", known.type), fact
    if "format" in fact or known.format in STATED_FORMATS:
        assert known.format == fact.get("format"), fact
    values = list(known.values) if isinstance(known, spec.Field) else []
    if values != list(spec.SEQUENCE_STATUSES):  # a separate chapter lists these
        assert values == fact.get("values", []), fact
    if isinstance(known, spec.Filter):
        return
    assert known.nullable == fact.get("nullable", False), fact
    assert known.required == fact.get("required", False), fact
    assert known.constant == fact.get("constant", ""), fact
    assert (known.maximum or 0) == fact.get("maximum", known.maximum or 0), fact
    if "type" in fact:
        assert known.items == fact.get("items"), fact
    if known.members == spec.LEAD_REFERENCE:
        check_all(known.members, FACTS["Lead"][: len(fact["members"])])
    elif "members" in fact:
        check_all(known.members, fact["members"])


def check_all(known: tuple[spec.Field | spec.Filter, ...], facts: list[Fact]) -> None:
    """Compare fields with their facts, in order."""
    assert [field.name for field in known] == [fact["name"] for fact in facts]
    for field, fact in zip(known, facts, strict=True):
        check(field, fact)


@pytest.mark.parametrize("heading", RESOURCES)
def test_a_resource_has_the_documents_fields(heading: str) -> None:
    """Each resource has exactly the document's fields, in order, with their types and formats."""
    check_all(RESOURCES[heading], FACTS[heading])


@pytest.mark.parametrize("endpoint", spec.ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_an_endpoint_has_the_documents_parameters(endpoint: spec.Endpoint) -> None:
    """Each operation has the document's query parameters, body and error statuses."""
    facts = FACTS["Endpoints"][endpoint.label]
    check_all(endpoint.query, facts["query"])
    check_all(endpoint.body, facts["body"])
    assert [status for status in facts["statuses"] if status >= 400] == list(endpoint.refusals)


def test_operations_equal_the_documents() -> None:
    """The eight operations and their error statuses are those of the document."""
    assert [endpoint.label for endpoint in spec.ENDPOINTS] == list(FACTS["Endpoints"])
    assert [status for endpoint in spec.ENDPOINTS for status in endpoint.refusals] == FACTS[
        "Error statuses"
    ]


def test_departments_and_job_functions_equal_the_documents() -> None:
    """The 14 departments and 194 job functions are those of the document."""
    assert list(spec.DEPARTMENTS) == FACTS["Departments"]
    assert {
        department: list(functions) for department, functions in spec.JOB_FUNCTIONS.items()
    } == FACTS["Job functions"]
    assert sum(map(len, spec.JOB_FUNCTIONS.values())) == 194


def test_there_are_30_filters() -> None:
    """People search has 30 filters, and only those of ids and domains have a format."""
    facts = {fact["name"]: fact for fact in FACTS["Endpoints"][spec.SEARCH_PEOPLE.label]["body"]}
    assert len(spec.FILTERS) == 30
    for entry in spec.FILTERS:
        assert entry.format == facts[entry.name].get("format", ""), entry


def test_every_excluding_filter_names_its_counterpart() -> None:
    """A filter with "exclude" in its name is the opposite of the filter without it."""
    for entry in spec.FILTERS:
        counterpart = re.sub(r"exclude_", "", entry.name) if "exclude" in entry.name else ""
        assert entry.excludes == counterpart


def test_overrides_errors_and_statuses_equal_the_documents() -> None:
    """Overrides, error codes and sequence statuses are those of the document's tables."""
    assert [field.name for field in spec.OVERRIDES] == FACTS["Overrides"]
    assert set(spec.CHECK_OVERRIDES.values()) == set(FACTS["Overrides"])
    assert list(spec.ADD_LEADS_ERRORS) == FACTS["Error codes"]
    assert dict(spec.SEQUENCE_STATUSES) == FACTS["Sequence statuses"]
    assert list(spec.SEQUENCE_STATUSES) == list(FACTS["Sequence statuses"])


def test_the_duplicate_urls_are_found_under_the_documents_name() -> None:
    """The list of duplicate URLs has the neutral name, which matches the pattern for its names."""
    names = [fact["name"] for fact in FACTS["Add-leads success result"]]
    found = [name for name in names if re.fullmatch(spec.DUPLICATE_URLS_PATTERN, name)]
    assert found == [f"duplicate_{spec.NETWORK_NAME}_urls"]


def test_defaults_equal_the_documents() -> None:
    """By default leads are distributed over the sequence's senders."""
    distribution = FACTS["Add-leads settings object"][0]
    assert distribution["values"][0] == spec.DEFAULT_LEADS_DISTRIBUTION
    assert distribution["values"][1] == spec.MAILBOXES_LEADS_DISTRIBUTION


def test_limits_equal_the_documents() -> None:
    """Each number of the document's table of limits is in spec."""
    assert FACTS["Limits"] == {
        "Leads per request": [spec.MAX_LEADS_PER_REQUEST],
        "Data fields per lead": [spec.MAX_DATA_FIELDS],
        "Data field name length": [spec.MAX_DATA_NAME_LENGTH],
        "Data field value length": [spec.MAX_DATA_VALUE_LENGTH],
        "Data field name format": [],
        "Data field types": [],
        "Contact ids per request": [spec.MAX_CONTACT_IDS],
        "Page size": [spec.MAX_MAILBOX_PAGE_SIZE],
        "page_size": [
            spec.MIN_SEARCH_PAGE_SIZE,
            spec.MAX_SEARCH_PAGE_SIZE,
            spec.DEFAULT_SEARCH_PAGE_SIZE,
        ],
        spec.RETRY_AFTER_HEADER: [],
    }


def test_the_facts_have_no_sentences() -> None:
    """The stored facts are names, words and numbers, not sentences."""
    headings = {*FACTS, *FACTS["Endpoints"], *FACTS["Limits"]}
    texts = set(re.findall(r'"([^"]*)"', FACTS_FILE.read_text(encoding="utf-8")))
    assert {text for text in texts if " " in text} <= headings
