"""JSON in the forms that services send, and the many forms of error bodies."""

from __future__ import annotations

import math
import re
import socket
import ssl
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.response import (
    load_json,
    read_body,
    root_message,
    status_error,
    timed_out,
    unreachable,
)
from outreach_frames.errors import (
    BadRequestError,
    InvalidResponseError,
    OutreachWarning,
    StatusError,
    ValidationFailedError,
)
from tests.client.connection import connected
from tests.scripted import json, scripted

READABLE = {
    b'{"a": "\xc3\xa9"}': {"a": "é"},
    b'\xef\xbb\xbf{"a": 1}': {"a": 1},
    b"[1e999, -Infinity]": [math.inf, -math.inf],
    b'["\\ud83d", "\\ud83d\\ude00"]': ["?", "😀"],
    b"null": None,
    b"9223372036854775807": 2**63 - 1,
    b'{"a": 1, "a": 2}': {"a": 2},
}

UNREADABLE = [
    b"",
    b"<html>",
    b"[1] [2]",
    b"\xff\xfe[\x00]\x00",
    b'"\xff"',
    b"1" * 5000,
    b"[" * 100_000,
    b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
]


@pytest.mark.parametrize("body", READABLE)
def test_json_variants_are_read(body: bytes) -> None:
    """JSON, and unambiguous variants of it, are parsed."""
    assert load_json(body) == READABLE[body]


@pytest.mark.parametrize("body", UNREADABLE, ids=lambda body: repr(body[:12]))
def test_invalid_json_is_one_kind_of_error(body: bytes) -> None:
    """Invalid JSON is one short error of ours that shows its beginning and has no cause."""
    with pytest.raises(InvalidResponseError, match="not valid JSON") as caught:
        load_json(body)
    assert len(str(caught.value)) < 400
    assert caught.value.__context__ is None


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(body: bytes) -> None:
    """Any bytes give a value that can be serialised, or our own error."""
    try:
        value = load_json(body)
    except InvalidResponseError:
        return
    msgspec.json.encode(value)


OTHER_WORDS = ("error_description", "msg", "errorMessage", "description", "reason")
SAID: list[tuple[Any, str]] = [
    ({"error": "Because."}, "Because."),
    ({"message": "Because.", "detail": "More."}, "More."),
    ({"title": "Invalid", "detail": " "}, "Invalid"),
    ({"detail": "Because."}, "Because."),
    ({"error": {"code": "unavailable", "message": "Because."}}, "Because."),
    ({"error": {"code": "no"}}, "no"),
    ({"error": {"status": {}}}, "{'status': {}}"),
    (["One.", "Two."], "One; Two."),
    ({"_errors": [{"detail": "One.", "code": "a"}, {"title": "Two"}, None]}, "One; Two"),
    (
        {"errors": [{"detail": "No.", "source": {"parameter": "page[size]"}}]},
        "No, parameter page[size]",
    ),
    ({"_errors": [{"code": 7, "source": {"pointer": "/leads/3/email"}}]}, "7, at /leads/3/email"),
    ({"_errors": [{"code": "a", "source": {"header": "Accept"}}]}, "a, header Accept"),
    ({"_errors": [{"code": "a", "source": "/leads"}]}, "a"),
    (
        {"_errors": [{"code": f"c{number}"} for number in range(5)]},
        "c0; c1; c2; 5 different errors in total",
    ),
    *(({name: "Because.", "error": "no"}, "Because.") for name in OTHER_WORDS),
    ({"errors": {"email": ["is odd", "is old"], "name": []}}, "is odd, at email; is old, at email"),
    ({"errors": {"email": "is odd"}}, "is odd, at email"),
    ({"errors": {"message": "Because.", "code": "x"}}, "Because."),
    ({"detail": [{"loc": ["body", "leads", 3], "msg": "Odd."}]}, "Odd, at /leads/3"),
    ({"detail": [{"loc": ["query", "page"], "msg": "Odd"}]}, "Odd, parameter page"),
    ({}, ""),
    (None, ""),
]


@pytest.mark.parametrize(("body", "said"), SAID)
def test_the_services_own_words_are_shown(body: Any, said: str) -> None:
    """The message shows the service's words, whatever form the error's body has."""
    error = status_error(spec.LIST_SEQUENCES, "GET /x", 400, msgspec.json.encode(body), redact=str)
    assert str(error).startswith("The service cannot read the request: ")
    assert str(error).endswith(f". (GET /x: 400{', ' + said if said else ''})")


def test_an_error_shows_the_filter_and_its_value() -> None:
    """The place of an error is shown after long words, with a filter's name and value."""
    source = {"pointer": "/company_crm_a_urls/1"}
    errors = [{"detail": "Not supported " * 99, "source": source}, {"code": "x"}]
    values = ["https://a.example", "https://b.example"]
    with scripted([json({"_errors": errors}, 400)]) as service:
        with connected(service, network_name="crm_a") as client:
            with pytest.raises(BadRequestError) as caught:
                of.search_people(company_profnet_urls=values, client=client)
    place = "/company_crm_a_urls/1 (company_profnet_urls='https://b.example')"
    assert f"…, at {place}; x)" in str(caught.value)
    assert caught.value.pointers == ("/company_crm_a_urls/1",)


def test_an_error_about_a_lead_shows_no_value() -> None:
    """The place of an error in a lead is its JSON pointer only, because values are personal."""
    errors = [{"detail": "No.", "source": {"pointer": "/leads/0/person_name"}}]
    leads = [{"email": "ada@x.example", "person_name": "Ada"}]
    with scripted([json({"_errors": errors}, 400)]) as service, connected(service) as client:
        with pytest.raises(BadRequestError) as caught:
            client._session.write(spec.ADD_LEADS, path={"id": "s"}, body={"leads": leads})
    assert str(caught.value).endswith("400, No, at /leads/0/person_name)")
    assert caught.value.pointers == ("/leads/0/person_name",)


def test_errors_beside_results_are_sentences() -> None:
    """A warning shows each distinct error beside the results, and the frame keeps all errors."""
    source = {"pointer": "/person_seniorities/0"}
    error = {"status": "400", "code": "x", "detail": "Not supported.", "source": source}
    paging = {"page": 1, "page_size": 100, "total_pages": 1, "total": 0}
    page = {"results": [], "_pagination": paging, "_errors": [error, error]}
    with scripted([json(page)]) as service, connected(service) as client:
        with pytest.warns(OutreachWarning) as warned:
            found = of.search_people(person_seniorities=["Boss"], client=client)
    words = "Not supported, at /person_seniorities/0 (person_seniorities='Boss')"
    (text,) = [str(one.message) for one in warned if "reported 2 errors" in str(one.message)]
    assert text.endswith(f": {words}")
    assert found.attrs["errors"] == [error, error]


def certificate_fault(code: int) -> ssl.SSLCertVerificationError:
    """Return the fault of a certificate that cannot be verified, with OpenSSL's code."""
    fault = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED]")
    fault.verify_code = code
    return fault


FAULTS: list[tuple[Exception, bool, str]] = [
    (socket.gaierror(-2, "Name or service not known"), False, "There is no host x.example: "),
    (socket.gaierror(-2, "Name or service not known"), True, "The proxy does not answer: "),
    (ConnectionRefusedError(111, "refused"), True, "The proxy does not answer: "),
    (ConnectionRefusedError(111, "refused"), False, "Nothing answers at https://x.example: "),
    (OSError("Tunnel connection failed: 407"), True, "The proxy refuses the connection"),
    (certificate_fault(10), False, "cannot be verified: it has expired .* clock of this computer"),
    (certificate_fault(20), False, "cannot be verified: check the address, or pass .* verify="),
    (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]"), False, "No secure connection"),
]


@pytest.mark.parametrize(("fault", "by_proxy", "words"), FAULTS, ids=str)
def test_a_failed_connection_names_its_cause(fault: Exception, by_proxy: bool, words: str) -> None:
    """The error of a failed connection names the host, the proxy or the certificate."""
    outer = OSError(fault)
    error = unreachable(
        "GET /x",
        "https://x.example",
        outer,
        root_message(outer),
        by_proxy=by_proxy,
        has_proxy=by_proxy,
        may_have_acted=False,
    )
    assert re.search(words, error.summary)
    assert str(error).startswith(f"{error.summary} (GET /x: ")


def test_a_connection_that_is_not_made_in_time_names_an_unused_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A time-out before anything was sent may need a proxy; one of a slow service does not."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    for has_proxy, may_have_acted in ((False, False), (True, False), (False, True)):
        error = timed_out("GET /x", 30, has_proxy=has_proxy, may_have_acted=may_have_acted)
        is_named = "HTTPS_PROXY is set, but not used" in str(error)
        assert is_named == (not has_proxy and not may_have_acted)


def test_a_body_that_is_not_json_is_quoted() -> None:
    """Text and HTML are shown in shortened form."""
    error = status_error(spec.LIST_SEQUENCES, "GET /x", 502, b"<h1>Bad\nGateway</h1>", redact=str)
    assert str(error).endswith("(GET /x: 502, <h1>Bad Gateway</h1>)")
    assert len(str(status_error(spec.LIST_SEQUENCES, "GET /x", 502, b"x" * 9999, redact=str))) < 400


@pytest.mark.parametrize("entries", [None, "text", {"a": 1}, 5, [], [[]]])
def test_malformed_validation_errors_are_accepted(entries: Any) -> None:
    """A 422 is a ValidationError, whatever form its reasons have."""
    body = msgspec.json.encode({"validation_errors": entries})
    error = status_error(spec.LIST_SEQUENCES, "POST /x", 422, body, redact=str)
    assert isinstance(error, ValidationFailedError)
    assert all(isinstance(problem.message, str) for problem in error.validation_errors)
    assert bool(error.validation_errors) is (entries not in (None, []))


def test_a_deeply_nested_error_is_read() -> None:
    """Messages nested a thousand levels deep are omitted; those near the surface are shown."""
    deep = '{"error":' * 1000 + '"far"' + "}" * 1000
    for status, kind in ((422, ValidationFailedError), (400, StatusError)):
        body = f'{{"validation_errors": [{{"error_code": "near", "message": {deep}}}]}}'.encode()
        error = status_error(spec.LIST_SEQUENCES, "POST /x", status, body, redact=str)
        assert isinstance(error, kind)
        assert error.status_code == status


def test_many_validation_errors_are_kept() -> None:
    """All validation errors of a response are read, also of one with thousands."""
    problems = [{"error_code": f"code_{number}", "message": "x" * 50} for number in range(5_000)]
    body = msgspec.json.encode({"status": 422, "validation_errors": problems})
    read = read_body("POST /x", 422, [body])
    error = status_error(spec.LIST_SEQUENCES, "POST /x", 422, read, redact=str)
    assert isinstance(error, ValidationFailedError)
    codes = [one.error_code for one in error.validation_errors]
    assert codes == [one["error_code"] for one in problems]
