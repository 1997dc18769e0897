"""The package's exceptions, all with the same base class and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def bounded(message: str) -> str:
    """Return a message, without its middle if it is long, because its end has the advice.

    >>> len(bounded("There is no column " + "x" * 50_000 + ". Pass another."))
    2003
    """
    return min(message, f"{message[:1_000]} … {message[-1_000:]}", key=len)


class OutreachError(Exception):
    """The base class of the package's errors.

    Attributes
    ----------
    status_code : int or None
        The response's HTTP status, if there was a response.
    retry_after : float or None
        The number of seconds to wait, if the service sent it.
    retryable : bool
        Whether a later call with the same arguments may succeed.
    partial : DataFrame or None
        Rows that were read before the error.
    """

    def __init__(
        self,
        message: str,
        *,
        status_code: int | None = None,
        retry_after: float | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(bounded(message))
        self.status_code = status_code
        self.retry_after = retry_after
        self.retryable = retryable
        self.partial: pd.DataFrame | None = None

    def _render_traceback_(self) -> list[str]:
        return _render_traceback(self)


def shorten_traceback(error: OutreachError | KeyboardInterrupt) -> None:
    """Let IPython show Ctrl-C like the package's errors: the caller's lines and the notes."""
    if isinstance(error, KeyboardInterrupt):
        error._render_traceback_ = partial(_render_traceback, error)  # type: ignore[attr-defined]


def _render_traceback(error: BaseException) -> list[str]:
    """Return what IPython shows: the caller's lines and the message, unless %xmode is set."""
    from IPython.core.interactiveshell import InteractiveShell  # noqa: PLC0415 - it calls this

    formatter = InteractiveShell.instance().InteractiveTB
    if formatter.mode != "Context":  # the default
        return formatter.structured_traceback(type(error), error, error.__traceback__)
    # A copy has no cause, which would be shown with its own traceback.
    lines = _callers_lines(error.__traceback__)
    return formatter.structured_traceback(type(error), copy(error), lines)


def _callers_lines(traceback: TracebackType | None) -> TracebackType | None:
    """Return a copy of a traceback that ends before the package's first frame."""
    package = Path(__file__).parent
    if traceback is None or Path(traceback.tb_frame.f_code.co_filename).is_relative_to(package):
        return None
    inner = _callers_lines(traceback.tb_next)
    return TracebackType(inner, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)


class ConfigurationError(OutreachError, ValueError):
    """The service's address or token is missing or cannot be used."""


class InvalidInputError(OutreachError, ValueError):
    """An argument, a frame or a file cannot be used; nothing was sent."""


class ServiceError(OutreachError):
    """The service or the connection to it failed.

    Attributes
    ----------
    may_have_acted : bool
        Whether the service may have carried out the request. False means that the request was
        certainly never sent, or that the service refused it.
    summary : str
        The message without the request, the status and the service's own words.
    reason : str
        The service's own words, or the cause of a failed connection.

    Notes
    -----
    The message ends with the `request`, the status and the `reason`, in parentheses.
    """

    def __init__(
        self,
        message: str,
        *,
        status_code: int | None = None,
        may_have_acted: bool = True,
        request: str = "",
        reason: str = "",
        **facts: Any,
    ) -> None:
        self.summary = message
        ending = ", ".join(str(fact) for fact in (status_code, reason) if fact)
        if request:
            message = f"{message} ({request}: {ending})" if ending else f"{message} ({request})"
        super().__init__(message, status_code=status_code, **facts)
        self.may_have_acted = may_have_acted
        self.reason = reason


class ConnectionFailedError(ServiceError):
    """The connection was refused or reset, or the host name is unknown."""


class RequestTimeoutError(ServiceError):
    """The complete response did not arrive in time."""


class WaitTooLongError(ServiceError):
    """The service asks for more than `max_wait` allows, or a reset header for more than a day."""


class InvalidResponseError(ServiceError):
    """The response is invalid: not JSON, truncated, too large, or with an unexpected structure."""

    # Whether the response is readable JSON without the documented data: it is not requested again.
    is_readable: bool = False


class UnsafeLinkError(ServiceError):
    """A link or redirect leads to another host, to an earlier page, or to endless pages."""


class StatusError(ServiceError):
    """The service responded with an error status.

    Attributes
    ----------
    pointers : tuple of str
        The parts of the request that the service names as wrong, as JSON pointers such as
        "/leads/3/email".
    reasons : dict of str to str
        The service's words for each pointer.
    """

    def __init__(
        self, message: str, *, reasons: Mapping[str, str] | None = None, **facts: Any
    ) -> None:
        super().__init__(message, **facts)
        self.reasons: dict[str, str] = dict(reasons or {})
        self.pointers: tuple[str, ...] = tuple(self.reasons)


class BadRequestError(StatusError):
    """Status 400: the request is malformed."""


class AuthenticationError(StatusError):
    """Status 401: the token is not accepted; 403: it may not do this."""


class NotFoundError(StatusError):
    """Status 404: no object has this id, or no endpoint has this address."""


@dataclass(frozen=True, slots=True)
class ValidationProblem:
    """One entry of `validation_errors` in a response with status 422."""

    error_code: str
    message: str


class ValidationFailedError(StatusError):
    """Status 422: the request is well formed but cannot be completed.

    Attributes
    ----------
    validation_errors : tuple of ValidationProblem
        All reasons in the response, including those with unknown codes.
    """

    def __init__(
        self,
        message: str,
        *,
        status_code: int | None = 422,
        may_have_acted: bool = False,
        validation_errors: Sequence[ValidationProblem] = (),
        **facts: Any,
    ) -> None:
        super().__init__(message, status_code=status_code, may_have_acted=may_have_acted, **facts)
        self.validation_errors: tuple[ValidationProblem, ...] = tuple(validation_errors)


class RateLimitedError(StatusError):
    """Status 429: too many requests."""


class ServerError(StatusError):
    """Status 5xx: the service failed."""


class OutreachWarning(UserWarning):
    """A warning for the analyst that does not stop the call."""
