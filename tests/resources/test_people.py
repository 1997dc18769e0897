"""People search returns everybody once, in order, and warns of missing people."""

from __future__ import annotations

import os
import signal
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import (
    BadRequestError,
    InvalidResponseError,
    OutreachWarning,
    ServerError,
    ServiceError,
)
from outreach_frames.sandbox import Sandbox
from tests.benchmarks import memory
from tests.conftest import PEOPLE
from tests.filter_values import good_value
from tests.resources.search_service import connected, numbers, person, result, service_of
from tests.scripted import Received, Reply, delayed, json, respond, scripted


def test_everybody_is_read_in_order(client: Client, sandbox: Sandbox) -> None:
    """Without a limit the frame has everybody once, in the service's order."""
    everybody = of.search_people(limit=None)
    assert len(everybody) == PEOPLE == everybody.attrs["total"]
    assert everybody["id"].is_unique
    pieces = of.search_people(limit=150, page_size=np.int64(7))
    pd.testing.assert_frame_equal(pieces, everybody.head(150))


@pytest.mark.parametrize("limit", [1, 99, 100, 101, 150])
def test_exactly_limit_people_are_read(client: Client, limit: int) -> None:
    """Exactly `limit` people are returned without a warning, and attrs has the total."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutreachWarning)
        frame = of.search_people(limit=limit)
    assert (len(frame), frame.attrs["total"]) == (limit, PEOPLE)


@pytest.mark.parametrize("options", [{}, {"limit": 1000}])
def test_only_the_default_limit_is_warned_of(options: dict[str, Any]) -> None:
    """The default limit warns of more people; the same number, if passed, does not."""
    with scripted(service_of(1100)) as service, connected(service):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert len(of.search_people(columns=["id"], **options)) == 1000
    expected = ["1,000 of 1,100 people were read. Pass limit=None to read all."]
    assert [str(one.message) for one in caught] == ([] if options else expected)


def test_only_needed_pages_are_requested() -> None:
    """A limit of 5 requests 5 people, and a limit of 150 requests two pages of 100."""
    with scripted(service_of(1000)) as service, connected(service):
        for limit, requests in ((5, [(1, 5)]), (150, [(1, 100), (2, 100)])):
            service.requests.clear()
            frame = of.search_people(limit=limit)
            assert numbers(frame) == list(range(1, limit + 1))
            assert [(r.json["page"], r.json["page_size"]) for r in service.requests] == requests


def test_every_filter_reaches_the_service_as_given() -> None:
    """The request's body has the filter and the paging fields only."""
    with scripted(service_of(1)) as service, connected(service):
        for known in spec.FILTERS:
            given = {known.name: good_value(known)}
            frame = of.search_people(given, columns=["id"])
            assert service.requests[-1].json == {**given, "page": 1, "page_size": 100}
            assert frame.attrs["filters"] == given


@pytest.mark.parametrize(
    ("headcount", "backend"),
    [("all", "numpy_nullable"), ("all", "pyarrow"), ("department", "pyarrow"), ("none", "pyarrow")],
)
def test_columns_and_dtypes_do_not_depend_on_the_data(
    client: Client, backend: Any, headcount: Any
) -> None:
    """Zero, one or all people give the same columns and dtypes."""
    options: dict[str, Any] = {"headcount": headcount, "dtype_backend": backend, "limit": None}
    many = of.search_people(**options)
    with pytest.warns(OutreachWarning, match="Nobody matches"):
        none = of.search_people(person_name="nobody has this name", **options)
    one = of.search_people(person_name=many["name"].iloc[0], **options)
    assert len(none) == 0
    assert len(one) >= 1
    pd.testing.assert_series_equal(none.dtypes, many.dtypes)
    pd.testing.assert_series_equal(one.dtypes, many.dtypes)
    expected = [
        name
        for name in spec.columns(spec.PERSON)
        if "_headcount_" not in name
        or headcount == "all"
        or (headcount == "department" and name.startswith("company_department_headcount_"))
    ]
    assert list(many.columns) == expected


def test_count_is_one_small_request(client: Client) -> None:
    """count_people requests one person and returns the service's total."""
    with scripted(service_of(12345)) as service, connected(service):
        assert of.count_people() == 12345
        assert [request.json["page_size"] for request in service.requests] == [1]


@pytest.mark.parametrize("total", [-1, None, "many", True, 1.5])
def test_an_invalid_total_is_an_error(total: Any) -> None:
    """A total that is not a valid count is an error."""
    with scripted(service_of(3, total=total)) as service, connected(service):
        with pytest.raises(InvalidResponseError, match="total"):
            of.count_people()


@pytest.mark.parametrize(
    "told",
    [
        {"total_pages": -1},
        {"total_pages": 10**9},
        {"total": -1, "total_pages": 10**9},
        {"total": 0},
        {"total": None, "total_pages": None},
        {"total": "250", "total_pages": "3"},
        {"total_pages": 1},
        {"total": None},
    ],
)
def test_wrong_totals_lose_nobody_and_end(told: dict[str, int]) -> None:
    """With a wrong total or number of pages everybody is read, and reading ends."""
    with scripted(service_of(250, **told)) as service, connected(service):
        assert numbers(of.search_people(limit=None)) == list(range(1, 251))
        assert len(service.requests) < 100  # the number of pages that workers read ahead is random


@pytest.mark.parametrize("limit", [None, 150, 30])
def test_smaller_pages_lose_nobody(limit: int | None) -> None:
    """If pages have fewer people than requested, the remaining people are read from later pages."""

    def capped(request: Received) -> Reply:
        page = request.json["page"]
        numbers = range(25 * (page - 1) + 1, min(25 * page, 190) + 1)
        return result([person(number) for number in numbers], total=190, total_pages=2)

    with scripted(capped) as service, connected(service):
        with warnings.catch_warnings():
            warnings.simplefilter("error", OutreachWarning)
            frame = of.search_people(limit=limit)
    assert numbers(frame) == list(range(1, (limit or 190) + 1))


def test_the_last_pages_total_is_used() -> None:
    """If the total changes while pages are read together, the last page's total is used."""
    with scripted(
        lambda request: service_of(500, total=500 + request.json["page"])(request)
    ) as service:
        with connected(service, workers=1), pytest.warns(OutreachWarning, match="counts 55"):
            frame = of.search_people(page_size=10, limit=None)
        last = max(request.json["page"] for request in service.requests)
    assert frame.attrs["total"] == 500 + last


@pytest.mark.parametrize("told", [{"total_pages": 10**9}, {"total": None, "total_pages": None}])
def test_a_service_that_ignores_the_page_ends(told: dict[str, Any]) -> None:
    """If every page is the same, everybody is kept once and reading ends."""
    same = result([person(number) for number in range(1, 101)], **told)
    with scripted(lambda request: same) as service, connected(service):
        with pytest.warns(OutreachWarning, match="of the people twice"):
            assert numbers(of.search_people(limit=None)) == list(range(1, 101))
        assert len(service.requests) < 20


def test_a_cap_is_named(tmp_path: Path) -> None:
    """A last page that repeats, or a 400 on a later page, leads to smaller searches."""

    def repeat(request: Received) -> Reply:
        page = min(request.json["page"], 3)
        return script(replace(request, body=b'{"page": %d, "page_size": 100}' % page))

    def refuse(request: Received) -> Reply:
        return script(request) if request.json["page"] <= 3 else json({}, 400)

    script = service_of(1000)
    with scripted(repeat) as service, connected(service):
        with pytest.warns(OutreachWarning) as warned:
            assert len(of.search_people(limit=None)) == 300
    (text,) = [str(one.message) for one in warned]
    assert text.startswith("The service counts 1,000 people but repeated a page after 300: it")
    with scripted(refuse) as service, connected(service):
        with pytest.raises(BadRequestError, match=r"limits the results .*pass split_by=") as caught:
            of.search_people(limit=None)
    partial = caught.value.partial
    assert partial is not None
    assert len(partial) == 300
    hint = "300 rows had been read. The exception's .partial has them; in a notebook, "
    assert caught.value.__notes__ == [f"{hint}sys.last_value.partial."]
    with scripted(refuse) as service, connected(service, cache=tmp_path / "cache"):
        with pytest.raises(BadRequestError) as caught:
            of.search_people(limit=None)
    assert caught.value.__notes__[0].endswith("Repeat the call to continue from the cache.")


def test_larger_pages_than_requested_are_read() -> None:
    """If pages have more people than requested, everybody is read once."""

    def large(request: Received) -> Reply:
        return service_of(600)(replace(request, body=request.body.replace(b"100", b"300")))

    with scripted(large) as service, connected(service):
        assert numbers(of.search_people(limit=10**30)) == list(range(1, 601))


def test_a_total_that_grows_is_followed() -> None:
    """People who are added during reading are read too."""
    script = service_of(350)

    def growing(request: Received) -> Reply:
        reply = script(request)
        if request.json["page"] == 1:
            return service_of(350, total=200, total_pages=2)(request)
        return reply

    with scripted(growing) as service, connected(service):
        assert numbers(of.search_people(limit=None)) == list(range(1, 351))


def test_a_repeated_person_is_kept_once() -> None:
    """A person on two pages is kept once, at the first place, with a warning."""

    def drifting(request: Received) -> Reply:
        page = request.json["page"]
        start = 1 + 100 * (page - 1) - (page > 1)
        people = [person(number) for number in range(start, start + 100)]
        return result(people, page=page, total=200, total_pages=2)

    with scripted(drifting) as service, connected(service):
        with pytest.warns(OutreachWarning, match="returned 1 of the people twice"):
            frame = of.search_people(limit=None)
    assert numbers(frame) == list(range(1, 200))


def test_pages_that_arrive_out_of_order_are_put_in_order() -> None:
    """People are in the service's order, whichever page arrives first."""
    script = service_of(600)

    def late(request: Received) -> Reply:
        return delayed(0.02 * (7 - request.json["page"]), script(request))

    with scripted(late) as service, connected(service, workers=6):
        assert numbers(of.search_people(limit=None)) == list(range(1, 601))


def test_reported_errors_are_warned_of_once() -> None:
    """`_errors` of all pages are in .attrs, and one warning names the first."""

    def complaining(request: Received) -> Reply:
        page = request.json["page"]
        found = {"results": [person(page)], "_pagination": {"total": 2, "total_pages": 2}}
        return json({**found, "_errors": [{"reason": f"page {page}"}]})

    with scripted(complaining) as service, connected(service):
        with pytest.warns(OutreachWarning, match="page 1") as caught:
            frame = of.search_people(limit=None, page_size=1)
    assert frame.attrs["errors"] == [{"reason": "page 1"}, {"reason": "page 2"}]
    assert len(caught) == 1


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("failure", [json({}, status=400), respond(b"<html>")])
def test_an_error_loses_no_page_before_it(workers: int, failure: Reply) -> None:
    """`.partial` and the message cover the people before the failed page, also within a batch."""
    script = service_of(500)

    def reply(request: Received) -> Reply:
        return failure if request.json["page"] == 48 else script(request)

    with scripted(reply) as service, connected(service, workers=workers, max_wait=0):
        with pytest.raises(ServiceError) as caught:
            of.search_people(page_size=10, limit=None)
    assert caught.value.partial is not None
    assert numbers(caught.value.partial) == list(range(1, 471))
    assert "page 48 of 50, after 470 people were read" in str(caught.value)
    assert any("470 rows" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("cached", [False, True])
def test_a_broken_page_of_a_batch_is_requested_again(cached: bool, tmp_path: Path) -> None:
    """A response that breaks once in a batch is requested again and is not cached."""
    script = service_of(500)
    seen: list[int] = []

    def reply(request: Received) -> Reply:
        seen.append(request.json["page"])
        broken = request.json["page"] == 48 and seen.count(48) == 1
        return respond(b'{"results": [') if broken else script(request)

    cache = tmp_path / "cache" if cached else None
    with scripted(reply) as service, connected(service, workers=1, max_wait=0, cache=cache):
        for _ in range(2):
            frame = of.search_people(page_size=10, limit=None)
            assert numbers(frame) == list(range(1, 501))
    assert seen.count(48) == (2 if cached else 3)
    assert len(seen) == (51 if cached else 101)


def test_a_first_error_has_an_empty_frame() -> None:
    """A failure on the first page raises an error with an empty partial frame."""
    with scripted(lambda request: json({}, status=501)) as service:
        with connected(service, max_wait=0), pytest.raises(ServerError) as caught:
            of.search_people()
    assert caught.value.partial is not None
    assert list(caught.value.partial.columns) == list(spec.columns(spec.PERSON))


def test_ctrl_c_ends_a_long_read() -> None:
    """Ctrl-C during 400 pages raises promptly, with the people read so far."""
    script = service_of(40_000)

    def slow(request: Received) -> Reply:
        if request.json["page"] == 20:
            os.kill(os.getpid(), signal.SIGINT)
        return delayed(0.05, script(request))

    with scripted(slow) as service, connected(service):
        with pytest.raises(KeyboardInterrupt) as caught:
            of.search_people(limit=None)
        assert numbers(caught.value.partial)[:100] == list(range(1, 101))  # type: ignore[attr-defined]
        asked = len(service.requests)
        time.sleep(0.3)
        assert len(service.requests) <= asked + 4


@pytest.mark.parametrize("name", ["page", "page_size"])
def test_paging_fields_are_not_filters(client: Client, name: str) -> None:
    """page and page_size as filters are errors that name the right arguments."""
    with pytest.raises(of.OutreachError, match="limit="):
        of.search_people({name: 5})


@pytest.mark.parametrize(
    "arguments",
    [
        {"person_title": ["CEO"]},
        *({"limit": value} for value in (0, -5, True, 2.5, "10")),
        *({"page_size": value} for value in (0, -1, 101, True, 1.0, "10")),
        {"headcount": "some"},
        {"headcount": None},
        {"dtype_backend": "numpy"},
    ],
    ids=str,
)
def test_bad_arguments_send_nothing(arguments: dict[str, Any]) -> None:
    """An invalid argument is an error that names it, before any request."""
    with scripted([]) as service, connected(service):
        with pytest.raises(of.OutreachError, match=next(iter(arguments))):
            of.search_people(**arguments)
        assert service.requests == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_large_search_needs_little_more_than_its_frame() -> None:
    """The peak memory of a search for 100,000 people is less than three times the frame's size."""
    peak, frame = memory.peak_and_frame(memory.PEOPLE)
    assert peak < 3 * frame
