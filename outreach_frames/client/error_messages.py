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
        "Cancelled: the client was closed, or the run was interrupted.",
        request=label,
        may_have_acted=may_have_acted,
    )


def timed_out(label: str, timeout: float, *, may_have_acted: bool) -> ServiceError:
    """Return the error for a response that was not complete in time."""
    return RequestTimeoutError(
        f"No complete response within {timeout:g} s: try again later, or set a longer timeout.",
        request=label,
        retryable=True,
        may_have_acted=may_have_acted,
    )


def unreachable(label: str, base_url: str, reason: str, *, may_have_acted: bool) -> ServiceError:
    """Return the error for a request without any response."""
    if reason.startswith("Tunnel connection failed"):
        problem = f"The proxy refuses the connection to {base_url}: check proxies=."
    elif "SSL" in reason:
        problem = f"No secure connection to {base_url}: check https:// in the address, and verify=."
    elif may_have_acted:
        problem = f"The connection to {base_url} broke before the response came: try again later."
    else:
        problem = f"Nothing answers at {base_url}: is the address right, is the service running?"
    return ConnectionFailedError(
        problem,
        request=label,
        reason=reason,
        retryable=True,
        may_have_acted=may_have_acted,
    )


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
    while True:
        inner = [getattr(fault, "reason", None), *reversed(fault.args), fault.__cause__]
        deeper = next((cause for cause in inner if isinstance(cause, BaseException)), None)
        if deeper is None:
            words = fault.strerror if isinstance(fault, OSError) else None
            return words or str(fault) or type(fault).__name__
        fault = deeper
