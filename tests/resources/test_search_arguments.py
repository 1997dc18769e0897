"""Search arguments are checked before any request, against the interface's tables."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames import spec
from outreach_frames.common.arguments import check_choice, check_id, check_ids, check_text
from outreach_frames.errors import InvalidInputError
from outreach_frames.resources.search_arguments import check_filters, check_page_size
from tests.filter_values import good_value


def test_wrong_types_are_an_error() -> None:
    """Text for a list, a list for text, and 1 for True are errors that name the right type."""
    table = pd.DataFrame({"a": ["a"]})
    for known in spec.FILTERS:
        wrong: dict[str, list[Any]] = {
            "string": [["some text"], True, ""],
            "boolean": ["true", 1, ["true"]],
            "array": ["some text", True, [], [""], [None], [5], ["some text", float("nan")]],
        }
        for value in (5, 1.5, {"a": 1}, b"a", table, pd.NA, *wrong[known.type]):
            with pytest.raises(InvalidInputError, match=known.name):
                check_filters({known.name: value})


@pytest.mark.parametrize(
    ("known", "value"),
    [
        *((known, "not-a-uuid") for known in spec.FILTERS if known.format == "uuid"),
        *((known, uuid.UUID(int=7).hex) for known in spec.FILTERS if known.format == "uuid"),
        *((known, "acme example") for known in spec.FILTERS if known.format == "domain"),
        *((known, "https://acme/") for known in spec.FILTERS if known.format == "domain"),
    ],
    ids=lambda value: value.name if isinstance(value, spec.Filter) else value,
)
def test_an_invalid_list_entry_is_an_error(known: spec.Filter, value: str) -> None:
    """Invalid UUIDs and email addresses as domains are errors that show the value."""
    with pytest.raises(InvalidInputError, match=f"{known.name}.*{value}"):
        check_filters({known.name: [value]})


@pytest.mark.parametrize("filters", [["person_name"], "person_name", 5])
def test_filters_that_are_not_a_mapping_are_an_error(filters: Any) -> None:
    """Filters that are not a mapping are an error."""
    with pytest.raises(InvalidInputError, match="dict"):
        check_filters(filters)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", "b"]),
        pd.Series(["a", "b"], dtype="string[pyarrow]"),
        pd.Series(["a", "b"], dtype=object),
        pd.Series(["a", "b"], dtype="category"),
        pd.Index(["a", "b"]),
        np.array(["a", "b"]),
        ("a", "b"),
        {"b", "a"},
        {"a": 1, "b": 2}.keys(),
        (letter for letter in "ab"),
        pd.Series(["a", "b"], index=[7, 7]),
    ],
    ids=lambda column: type(column).__name__,
)
def test_columns_are_lists_of_text(column: Any) -> None:
    """A text column of any dtype, an array, a set or a generator becomes a list of str."""
    values = check_filters({"company_names": column})["company_names"]
    assert values == ["a", "b"]
    assert {type(value) for value in values} == {str}


@given(st.dictionaries(st.sampled_from([known.name for known in spec.FILTERS]), st.none()))
def test_none_means_not_set(filters: dict[str, None]) -> None:
    """Filters of None are dropped from the request."""
    assert check_filters(filters) == {}


def test_the_body_has_the_interfaces_order() -> None:
    """The body lists filters in the interface's order, however they are passed."""
    names = [known.name for known in spec.FILTERS]
    given_backwards = {known.name: good_value(known) for known in reversed(spec.FILTERS)}
    assert list(check_filters(given_backwards)) == names


@pytest.mark.parametrize("size", [1, 100, np.int64(5)])
def test_the_bounds_of_page_size_are_valid(size: Any) -> None:
    """The minimum and maximum page sizes are valid."""
    assert check_page_size(size) == size


@pytest.mark.parametrize(
    "check",
    [
        lambda value: check_filters({"profnet_networks": value}),
        lambda value: check_filters({"person_name": [value]}),
        lambda value: check_filters({"person_title_exact_match": value}),
        lambda value: check_filters({"profnet_networks": {value: 1}}),
        lambda value: check_ids("emails", {value: 1}),
        lambda value: check_ids("emails", [value, None]),
        lambda value: check_text("user_email", [value]),
        lambda value: check_id("mailbox_id", [value]),
        lambda value: check_choice("status", [value], ["active"]),
    ],
)
def test_messages_show_no_personal_data(check: Callable[[str], object]) -> None:
    """Error messages do not repeat a wrong value that may be personal data."""
    with pytest.raises(InvalidInputError) as caught:
        check("ada@brightforge.example")
    assert "ada" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "acme.example",
        "https://www.acme.example/about?from=mail#team",
        "http://acme.example:8080",
        "www.ACME.example",
        " acme.example. ",
        "//acme.example",
    ],
)
def test_a_web_address_is_reduced_to_its_domain(text: str) -> None:
    """Domain filters accept web addresses and reduce them to the domain without ``www.``."""
    for known in (one for one in spec.FILTERS if one.format == "domain"):
        assert check_filters({known.name: [text]}) == {known.name: ["acme.example"]}
