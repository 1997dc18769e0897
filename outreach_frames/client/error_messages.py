"""Build the exceptions for requests without a usable response."""

from __future__ import annotations

from outreach_frames.errors import (
    ConnectionFailedError,
    InvalidResponseError,
    RequestTimeoutError,
    ServiceError,
)


def interrupted(label: str, *, may_have_acted: bool) -> ServiceError:
    """Return the error for a cancelled request; `label` names the request."""
    return ConnectionFailedError(
        f"{label}: cancelled, because the client was closed or the run was interrupted.",
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


def unreachable(label: str, base_url: str, reason: str, *, may_have_acted: bool) -> ServiceError:
    """Return the error for a request without any response."""
    return ConnectionFailedError(
        f"{label}: no response from {base_url}: {reason}. Check base_url and the network, or try "
        "again later.",
        retryable=True,
        may_have_acted=may_have_acted,
    )


def unreadable(label: str, status: int, reason: str) -> ServiceError:
    """Return the error for a response that is truncated or cannot be decompressed."""
    return InvalidResponseError(
        f"{label}: the response (status {status}) cannot be read: {reason}. Try again later.",
        status_code=status,
        retryable=True,
    )


def too_large(label: str, status: int, limit: str) -> ServiceError:
    """Return the error for a response that is larger than allowed."""
    return InvalidResponseError(
        f"{label}: the response (status {status}) is larger than {limit} and was not "
        "read. Request less data at a time.",
        status_code=status,
    )


def root_message(fault: BaseException) -> str:
    """Return the message of the innermost exception; outer exceptions show the whole URL."""
    while True:
        inner = [getattr(fault, "reason", None), *reversed(fault.args)]
        deeper = next((cause for cause in inner if isinstance(cause, BaseException)), None)
        if deeper is None:
            return str(fault) or type(fault).__name__
        fault = deeper
