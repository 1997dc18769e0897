"""Build the messages about requests, and the exceptions for those without a usable response."""

from __future__ import annotations

from urllib.parse import unquote

from outreach_frames import spec
from outreach_frames.common.text import quoted
from outreach_frames.errors import (
    ConnectionFailedError,
    InvalidResponseError,
    RequestTimeoutError,
    ServiceError,
)


def with_request(sentences: str, label: str, *facts: object) -> str:
    """Append a request to what its message says; `facts` are the status and the service's words.

    >>> with_request("The service failed: try again later.", "GET /sequences", 500, "")
    'The service failed: try again later. (GET /sequences: 500)'
    """
    shown = ", ".join(str(fact) for fact in facts if fact != "")
    return f"{sentences} ({label}{': ' if shown else ''}{shown})"


def not_found(endpoint: spec.Endpoint, label: str) -> str:
    """Return the sentence for status 404; the label decides whether the id may be shown.

    >>> not_found(spec.GET_LEAD_LIST, "GET /lead-lists/abc")
    "There is no lead list 'abc': check the id and base_url."
    >>> not_found(spec.GET_CONTACT_BY_EMAIL, "GET /contacts/email/{email}")
    'There is no contact with this email: check the email and base_url.'
    """
    for name, shown in zip(endpoint.label.split("/"), label.split("/"), strict=True):
        if name.startswith("{"):
            parameter = name.strip("{}")
            which = f"with this {parameter}" if shown == name else quoted(unquote(shown))
            return f"There is no {endpoint.identifies} {which}: check the {parameter} and base_url."
    return "The service has nothing at this address: check base_url."


def interrupted(label: str, *, may_have_acted: bool) -> ServiceError:
    """Return the error for a cancelled request; `label` names the request."""
    return ConnectionFailedError(
        with_request("Cancelled: the client was closed, or the run was interrupted.", label),
        may_have_acted=may_have_acted,
    )


def timed_out(label: str, timeout: float, *, may_have_acted: bool) -> ServiceError:
    """Return the error for a response that was not complete in time."""
    return RequestTimeoutError(
        with_request(
            f"No complete response came within {timeout:g} s. Try again later, or connect with a "
            "longer timeout.",
            label,
        ),
        retryable=True,
        may_have_acted=may_have_acted,
    )


def unreachable(label: str, base_url: str, reason: str, *, may_have_acted: bool) -> ServiceError:
    """Return the error for a request without any response."""
    if reason.startswith("Tunnel connection failed"):
        problem = f"The proxy refuses the connection to {base_url}: check proxies=."
    elif "SSL" in reason:
        problem = (
            f"No secure connection to {base_url}: does the service use https, does verify= need "
            "the file of your company's certificate authorities?"
        )
    elif may_have_acted:
        problem = f"The connection to {base_url} broke before the response came: try again later."
    else:
        problem = (
            f"Nothing answers at {base_url}: is the address right, is the service running, does "
            "the network need a proxy?"
        )
    return ConnectionFailedError(
        with_request(problem, label, reason),
        retryable=True,
        may_have_acted=may_have_acted,
    )


def unreadable(label: str, status: int, reason: str) -> ServiceError:
    """Return the error for a response that is truncated or cannot be decompressed."""
    return InvalidResponseError(
        with_request("The response cannot be read. Try again later.", label, status, reason),
        status_code=status,
        retryable=True,
    )


def too_large(label: str, status: int, limit: str) -> ServiceError:
    """Return the error for a response that is larger than allowed."""
    return InvalidResponseError(
        with_request(
            f"The response is larger than {limit} and was not read. Request less data at a time.",
            label,
            status,
        ),
        status_code=status,
    )


def root_message(fault: BaseException) -> str:
    """Return the message of the innermost exception; outer exceptions show the whole URL."""
    while True:
        inner = [getattr(fault, "reason", None), *reversed(fault.args), fault.__cause__]
        deeper = next((cause for cause in inner if isinstance(cause, BaseException)), None)
        if deeper is None:
            words = fault.strerror if isinstance(fault, OSError) else None
            return words or str(fault) or type(fault).__name__
        fault = deeper
