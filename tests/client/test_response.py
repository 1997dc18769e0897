"""JSON in the forms that services send, and the many forms of error bodies."""

from __future__ import annotations

import math
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames import spec
from outreach_frames.client.response import load_json, read_body, status_error
from outreach_frames.errors import InvalidResponseError, StatusError, ValidationFailedError

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


def test_nan_is_read() -> None:
    """NaN is read as a float."""
    assert math.isnan(load_json(b'{"lat": NaN}')["lat"])


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
    orjson.dumps(value)


SAID: list[tuple[Any, str]] = [
    ({"error": "Because."}, "Because."),
    ({"message": "Because.", "detail": "More."}, "Because."),
    ({"detail": "Because."}, "Because."),
    ({"error": {"code": "unavailable", "message": "Because."}}, "Because."),
    ({"error": {"code": "no"}}, '{"error":{"code":"no"}}'),
    (["One.", "Two."], '["One.","Two."]'),
    ({}, ""),
    (None, ""),
]


@pytest.mark.parametrize(("body", "said"), SAID)
def test_the_services_own_words_are_shown(body: Any, said: str) -> None:
    """The message shows the service's words, whatever form the error's body has."""
    error = status_error(spec.LIST_SEQUENCES, "GET /x", 400, orjson.dumps(body), redact=str)
    assert str(error).startswith("The service cannot read the request: ")
    assert str(error).endswith(f". (GET /x: 400{', ' + said if said else ''})")


def test_a_body_that_is_not_json_is_quoted() -> None:
    """Text and HTML are shown in shortened form."""
    error = status_error(spec.LIST_SEQUENCES, "GET /x", 502, b"<h1>Bad\nGateway</h1>", redact=str)
    assert str(error).endswith("(GET /x: 502, <h1>Bad Gateway</h1>)")
    assert len(str(status_error(spec.LIST_SEQUENCES, "GET /x", 502, b"x" * 9999, redact=str))) < 400


@pytest.mark.parametrize("entries", [None, "text", {"a": 1}, 5, [], [[]]])
def test_malformed_validation_errors_are_accepted(entries: Any) -> None:
    """A 422 is a ValidationError, whatever form its reasons have."""
    body = orjson.dumps({"validation_errors": entries})
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
    body = orjson.dumps({"status": 422, "validation_errors": problems})
    read = read_body("POST /x", 422, [body])
    error = status_error(spec.LIST_SEQUENCES, "POST /x", 422, read, redact=str)
    assert isinstance(error, ValidationFailedError)
    codes = [one.error_code for one in error.validation_errors]
    assert codes == [one["error_code"] for one in problems]
