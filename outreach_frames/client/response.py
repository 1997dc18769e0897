"""Read responses: JSON to values, failures to exceptions."""

from __future__ import annotations

import codecs
import http.client
import json
import os
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from outreach_frames import spec
from outreach_frames.client.error_bodies import (
    describe_errors,
    read_entries,
    read_errors,
)
from outreach_frames.client.options import CA_BUNDLE_VARIABLE, PROXY_VARIABLE
from outreach_frames.common import terms
from outreach_frames.common.text import beginning, duration, quoted
from outreach_frames.errors import (
    AuthenticationError,
    BadRequestError,
    ConnectionFailedError,
    InvalidResponseError,
    NotFoundError,
    RateLimitedError,
    RequestTimeoutError,
    ServerError,
    ServiceError,
    StatusError,
    UnsafeLinkError,
    ValidationFailedError,
    ValidationProblem,
)

MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_ERROR_BYTES = 1024 * 1024
MAX_VALUES = 1_000_000

# Environment variables of other programs, which the client does not use.
_OTHER_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
_OTHER_BUNDLES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
_TUNNEL = "Tunnel connection failed:"
# The codes of OpenSSL for certificates that are not valid yet and that have expired.
_WRONG_TIMES = (9, 10)

_CHECK_ADDRESS = "Check the service's address, which was passed or set in OUTREACH_BASE_URL."
_NOT_ACCEPTED = (
    "The service does not accept the token, which was passed or set in OUTREACH_API_KEY. Log in "
    "again with {login}."
)

# Statuses that prove that the service did not act, with their exceptions and advice. Other statuses
# may come from a proxy that stopped waiting while the service acted.
_STATUSES: dict[int, tuple[type[StatusError], str]] = {
    400: (BadRequestError, "The service cannot read the request: check the arguments."),
    401: (AuthenticationError, _NOT_ACCEPTED),
    402: (StatusError, "The account lacks credits, or its plan does not include this."),
    403: (
        AuthenticationError,
        "The service refuses this: check what the account and the token may do.",
    ),
    404: (NotFoundError, ""),
    405: (
        StatusError,
        "The service does not support this request: check the service's address.",
    ),
    413: (StatusError, "The request is too large."),
    422: (ValidationFailedError, "The service rejected the request: check the values."),
    425: (StatusError, "The service is not ready: try again later."),
    451: (StatusError, "The service may not process this for legal reasons."),
    429: (RateLimitedError, "Too many requests: try again later, or with fewer workers."),
}
_OTHER = (
    StatusError,
    "The service reports an error: check the arguments and the service's address.",
)
_SERVER_ERROR = (ServerError, "The service failed: try again later.")


def read_body(label: str, status: int, chunks: Iterable[bytes]) -> bytes:
    """Read the body of a successful response, or the first part of an error response."""
    is_good = status < 300
    read, size = [], 0
    for chunk in chunks:
        read.append(chunk)
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise too_large(label, status, f"{MAX_BODY_BYTES:,} bytes")
        if size > MAX_ERROR_BYTES and not is_good:
            break
    body = b"".join(read)
    if not is_good:
        return body[:MAX_ERROR_BYTES]
    # Only a body with more bytes can have too many values; a parsed value takes up to 250 bytes.
    if len(body) > MAX_VALUES and sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise too_large(label, status, f"{MAX_VALUES:,} values")
    return body


def load_json(body: bytes) -> Any:
    """Return the value of a JSON body, or raise InvalidResponseError.

    >>> load_json(b'{"limit": 50}')
    {'limit': 50}
    """
    try:
        return msgspec.json.decode(body)
    except (ValueError, RecursionError):
        pass
    # The slower parser accepts a byte order mark, NaN, lone surrogates and floats that overflow.
    try:
        value = json.loads(body.removeprefix(codecs.BOM_UTF8).decode())
        # Lone surrogates become "?", because tables and files cannot hold them.
        return json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError):
        pass
    raise InvalidResponseError(
        f"The response is not valid JSON; {beginning(body)}. {_CHECK_ADDRESS}"
    )


def load_optional(body: bytes) -> Any:
    """Return the value of a JSON body, or None if the body is empty."""
    return load_json(body) if body else None


def load_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body, or raise InvalidResponseError."""
    value = load_json(body)
    if not isinstance(value, dict):
        error = InvalidResponseError(
            f"The response is not a JSON object; {beginning(body)}. {_CHECK_ADDRESS}"
        )
        error.is_readable = True
        raise error
    return value


def require_object(body: bytes) -> bytes:
    """Return a body with the brackets of a JSON object, or raise InvalidResponseError.

    >>> require_object(b'{"results": []}')
    b'{"results": []}'
    """
    text = body.removeprefix(codecs.BOM_UTF8).strip()
    if not (text.startswith(b"{") and text.endswith(b"}")):
        load_object(body)
    return body


def status_error(
    endpoint: spec.Endpoint,
    label: str,
    status: int,
    body: bytes,
    retry_after: float | None = None,
    *,
    redact: Callable[[str], str],
    filters: Mapping[str, Any] = MappingProxyType({}),
    documented: Callable[[str], str] = str,
) -> StatusError:
    """Return the exception for an error status.

    `redact` removes the token from its texts. `filters` are those of the request, and `documented`
    translates the names of fields that were sent.
    """
    kind, advice = _STATUSES.get(status, _SERVER_ERROR if status >= 500 else _OTHER)
    value: Any = body.decode(errors="replace")
    with suppress(InvalidResponseError):
        value = load_json(body)
    invalid = value.get(spec.VALIDATION_ERRORS_KEY) if isinstance(value, dict) else None
    problems = [] if invalid is None else read_entries(invalid)
    errors = [problem.with_code() for problem in problems] or read_errors(value)
    reason = describe_errors(errors, filters, documented=documented, redact=redact)
    message = (
        _not_found(endpoint, label)
        if kind is NotFoundError
        else advice.format(login=terms.function("login"))
    )
    facts: dict[str, Any] = {
        "request": label,
        "status_code": status,
        "reason": reason,
        "retry_after": retry_after,
        "retryable": status == 429 or status >= 500,
        # A 503 with Retry-After was refused before the service acted.
        "may_have_acted": status not in _STATUSES and (status != 503 or retry_after is None),
        "reasons": {redact(error.pointer): redact(error.text) for error in errors if error.pointer},
    }
    if kind is ValidationFailedError:
        reasons = [ValidationProblem(redact(entry.code), redact(entry.text)) for entry in problems]
        return ValidationFailedError(message, validation_errors=reasons, **facts)
    return kind(message, **facts)


def _not_found(endpoint: spec.Endpoint, label: str) -> str:
    """Return the sentence for status 404; the label decides whether the id may be shown."""
    for name, shown in zip(endpoint.label.split("/"), label.split("/"), strict=True):
        if name.startswith("{"):
            parameter = name.strip("{}")
            which = f"with this {parameter}" if shown == name else quoted(unquote(shown))
            return (
                f"There is no {endpoint.identifies} {which}: check the {parameter} and the "
                "service's address."
            )
    return "The service has nothing at this address: check the service's address."


def interrupted(label: str, *, may_have_acted: bool) -> ServiceError:
    """Return the error for a cancelled request; `label` names the request."""
    return ConnectionFailedError(
        "Cancelled: the client was closed, or the run was interrupted.",
        request=label,
        may_have_acted=may_have_acted,
    )


def timed_out(label: str, timeout: float, *, has_proxy: bool, may_have_acted: bool) -> ServiceError:
    """Return the error for a response that was not complete in time."""
    hint = "" if has_proxy or may_have_acted else _unused_proxy()
    return RequestTimeoutError(
        f"No complete response within {duration(timeout)}: try again later, or set a longer "
        f"timeout.{hint}",
        request=label,
        retryable=True,
        may_have_acted=may_have_acted,
    )


def unreachable(
    label: str,
    base_url: str,
    fault: BaseException | None,
    reason: str,
    *,
    by_proxy: bool,
    has_proxy: bool,
    may_have_acted: bool,
) -> ServiceError:
    """Return the error for a request without any response; `by_proxy` means that a proxy failed."""
    hint = "" if has_proxy else _unused_proxy()
    # A proxy that refuses a request for its own reasons will refuse the next one, too.
    is_refused = reason.startswith(f"{_TUNNEL} 4")
    cause = None if fault is None else root_cause(fault)
    if reason.startswith(_TUNNEL):
        setting = _setting("proxies", PROXY_VARIABLE)
        problem = f"The proxy refuses the connection to {base_url}: check {setting}."
    elif isinstance(cause, ssl.SSLCertVerificationError):
        problem = f"The certificate of {base_url} cannot be verified: "
        problem += (
            "it has expired or is not valid yet, or the clock of this computer is wrong."
            if cause.verify_code in _WRONG_TIMES
            else "check the address, or pass your company's certificate authorities as "
            f"{_setting('verify', CA_BUNDLE_VARIABLE)}."
            f"{_unused_variable(_OTHER_BUNDLES, _setting('verify', CA_BUNDLE_VARIABLE))}"
        )
    elif "SSL" in reason:
        problem = f"No secure connection to {base_url}: check https:// and the port in the address."
    elif by_proxy:
        setting = _setting("proxies", PROXY_VARIABLE)
        problem = f"The proxy does not answer: check its address in {setting}, and the network."
    elif isinstance(cause, socket.gaierror):
        host = urlsplit(base_url).hostname
        problem = f"There is no host {host}: check the service's address, and the network.{hint}"
    elif may_have_acted:
        problem = f"The connection to {base_url} broke before the response came: try again later."
    else:
        problem = f"Nothing answers at {base_url}: is the address right, is the service running?"
        problem += hint
    return ConnectionFailedError(
        problem,
        request=label,
        reason=reason,
        retryable=not is_refused,
        may_have_acted=may_have_acted,
    )


def _unused_proxy() -> str:
    return _unused_variable(_OTHER_PROXIES, _setting("proxies", PROXY_VARIABLE))


def _setting(argument: str, variable: str) -> str:
    """Return how to set an option of the connection."""
    return terms.wording(f"{argument}= or {variable}", in_shell=variable)


def _unused_variable(names: Sequence[str], setting: str) -> str:
    """Return a sentence about the first of these environment variables that is set, if any."""
    name = next((name for name in names if os.environ.get(name)), None)
    return "" if name is None else f" {name} is set, but not used: pass its value as {setting}."


def unreadable(label: str, status: int, reason: str) -> ServiceError:
    """Return the error for a response that is truncated or cannot be decompressed."""
    return InvalidResponseError(
        "The response cannot be read: try again later.",
        request=label,
        reason=reason,
        status_code=status,
        retryable=True,
    )


def too_large(label: str, status: int, limit: str) -> ServiceError:
    """Return the error for a response that is larger than allowed."""
    return InvalidResponseError(
        f"The response is larger than {limit} and was not read: request less data at a time.",
        request=label,
        status_code=status,
    )


def root_message(fault: BaseException) -> str:
    """Return the message of the innermost exception; outer exceptions show the whole URL."""
    cause = root_cause(fault)
    if isinstance(cause, http.client.RemoteDisconnected):
        return "the service closed the connection without a response"
    if isinstance(cause, http.client.BadStatusLine):
        # Its message is the line, which may be the end of another response.
        return "the response begins with an invalid status line"
    words = cause.strerror if isinstance(cause, OSError) else None
    return words or str(cause) or type(cause).__name__


def root_cause(fault: BaseException) -> BaseException:
    """Return the innermost exception."""
    while not isinstance(fault, http.client.BadStatusLine):
        inner = [getattr(fault, "reason", None), *reversed(fault.args), fault.__cause__]
        deeper = next((cause for cause in inner if isinstance(cause, BaseException)), None)
        if deeper is None:
            break
        fault = deeper
    return fault


def redirected(label: str, status: int, location: str) -> UnsafeLinkError:
    """Return the error for a redirect; the message names only the host of the new address."""
    try:
        host = urlsplit(location).hostname
    except ValueError:
        host = None
    return UnsafeLinkError(
        f"The service redirects to {host or 'another path'}. Redirects are refused, because the "
        "token would be sent there. If the service has moved, connect to its new address.",
        request=label,
        status_code=status,
    )


def endless(label: str, pages: int) -> UnsafeLinkError:
    """Return the error for next links that repeat a page or never end."""
    return UnsafeLinkError(
        f"The service's pages do not end: page {pages} still has a next link. Report this to the "
        "service.",
        request=label,
    )
