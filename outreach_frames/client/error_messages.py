"""The exceptions for requests that got no good answer: what happened, to what, what to do next."""

from __future__ import annotations

from urllib.parse import urlsplit

from outreach_frames.errors import (
    ConnectionFailedError,
    InvalidResponseError,
    RequestTimeoutError,
    ServiceError,
    UnsafeLinkError,
    WaitTooLongError,
)


def interrupted(label: str, *, may_have_acted: bool) -> ServiceError:
    """Return what says that somebody wished to stop."""
    return ConnectionFailedError(
        f"{label}: broken off, because the client was closed or the run was interrupted.",
        may_have_acted=may_have_acted,
    )


def timed_out(label: str, timeout: float, *, may_have_acted: bool) -> ServiceError:
    """Return what says that the answer was not there, or not whole, in time."""
    return RequestTimeoutError(
        f"{label}: no whole answer within {timeout:g} s. Try again later, or connect with a longer "
        "timeout.",
        retryable=True,
        may_have_acted=may_have_acted,
    )


def not_reached(label: str, base_url: str, reason: str, *, may_have_acted: bool) -> ServiceError:
    """Return what says that there was no answer at all."""
    return ConnectionFailedError(
        f"{label}: no answer from {base_url}: {reason}. Check base_url and the network, or try "
        "again later.",
        retryable=True,
        may_have_acted=may_have_acted,
    )


def broke_off(label: str, status: int, reason: str) -> ServiceError:
    """Return what says that an answer ended too early, or cannot be unpacked."""
    return InvalidResponseError(
        f"{label}: the answer (status {status}) broke off: {reason}. Try again later.",
        status_code=status,
        retryable=True,
    )


def too_large(label: str, status: int, limit: int) -> ServiceError:
    """Return what says that an answer was not read to its end."""
    return InvalidResponseError(
        f"{label}: the answer (status {status}) is larger than {limit:,} bytes and was not read to "
        "its end. Ask for less at a time.",
        status_code=status,
    )


def redirected(label: str, status: int, location: str | None) -> ServiceError:
    """Return what says that the service points elsewhere; of the address, it names the host."""
    try:
        host = urlsplit(location or "").hostname
    except ValueError:
        host = None
    return UnsafeLinkError(
        f"{label}: the service redirects (status {status}) to {host or 'another path'}. That is "
        "refused, because the token would follow. If the service has moved, connect to its new "
        "address.",
        status_code=status,
    )


def endless(label: str, pages: int) -> ServiceError:
    """Return what says that pages lead back, or never to an end."""
    return UnsafeLinkError(
        f"{label}: the service's pages do not end; after {pages} of them the next link leads back "
        "or still further on. Report this to the service."
    )


def wait_too_long(label: str, asked: int, left: float, max_wait: float) -> ServiceError:
    """Return what says that the service asks for more patience than there is."""
    return WaitTooLongError(
        f"{label}: the service asks to wait {asked} s, and of max_wait={max_wait:g} only "
        f"{max(left, 0):.3g} s are left. Nothing was sent. Try again later, or connect with a "
        "longer max_wait.",
        retry_after=asked,
        retryable=True,
        may_have_acted=False,
    )


def reason_of(fault: BaseException | None) -> str:
    """Say what went wrong, from the innermost exception: outer ones print whole addresses."""
    while fault is not None:
        inner = [getattr(fault, "reason", None), *reversed(fault.args)]
        deeper = next((cause for cause in inner if isinstance(cause, BaseException)), None)
        if deeper is None:
            return str(fault) or type(fault).__name__
        fault = deeper
    return "nothing came"
