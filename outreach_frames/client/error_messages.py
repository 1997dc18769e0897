"""The exceptions for requests that got no usable response: what happened, and what to do next."""

from __future__ import annotations

from outreach_frames.errors import (
    ConnectionFailedError,
    InvalidResponseError,
    RequestTimeoutError,
    ServiceError,
)


def interrupted(label: str, *, may_have_acted: bool) -> ServiceError:
    """Return the error for a request that was cancelled; `label` names the request."""
    return ConnectionFailedError(
        f"{label}: broken off, because the client was closed or the run was interrupted.",
        may_have_acted=may_have_acted,
    )


def timed_out(label: str, timeout: float, *, may_have_acted: bool) -> ServiceError:
    """Return the error for a response that was not complete in time."""
    return RequestTimeoutError(
        f"{label}: no complete response within {timeout:g} s. Try again later, or connect with a "
        "longer timeout.",
        retryable=True,
        may_have_acted=may_have_acted,
    )


def not_reached(label: str, base_url: str, reason: str, *, may_have_acted: bool) -> ServiceError:
    """Return the error for a request without any response."""
    return ConnectionFailedError(
        f"{label}: no response from {base_url}: {reason}. Check base_url and the network, or try "
        "again later.",
        retryable=True,
        may_have_acted=may_have_acted,
    )


def broke_off(label: str, status: int, reason: str) -> ServiceError:
    """Return the error for a response that ended too early or cannot be decompressed."""
    return InvalidResponseError(
        f"{label}: the response (status {status}) broke off: {reason}. Try again later.",
        status_code=status,
        retryable=True,
    )


def too_large(label: str, status: int, limit: str) -> ServiceError:
    """Return the error for a response that is not read, because nothing sensible is that large."""
    return InvalidResponseError(
        f"{label}: the response (status {status}) is larger than {limit} and was not "
        "read. Ask for less at a time.",
        status_code=status,
    )


def reason_of(fault: BaseException) -> str:
    """Say what went wrong, from the innermost exception: outer ones print whole addresses."""
    while True:
        inner = [getattr(fault, "reason", None), *reversed(fault.args)]
        deeper = next((cause for cause in inner if isinstance(cause, BaseException)), None)
        if deeper is None:
            return str(fault) or type(fault).__name__
        fault = deeper
