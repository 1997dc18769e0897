"""The package's exceptions: one tree, and the same facts readable on every member.

OutreachError
|-- ConfigurationError        no address or token, or an unusable one
|-- InvalidInputError         an argument, frame or file that cannot be used
`-- ServiceError              the service, or the way to it
    |-- ConnectionFailedError     no response: refused, reset, name unknown
    |-- RequestTimeoutError       no complete response in time
    |-- WaitTooLongError          the service asks for a longer wait than `max_wait`
    |-- InvalidResponseError      a response that makes no sense
    |-- UnsafeLinkError           a link or redirect that leads elsewhere, or in a circle
    `-- StatusError               a response with an error status
        |-- BadRequestError           400
        |-- AuthenticationError       401, 403
        |-- NotFoundError             404
        |-- ValidationFailedError     422, with all its validation_errors
        |-- RateLimitedError          429
        `-- ServerError               5xx
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


class OutreachError(Exception):
    """The root of every error that the package raises on purpose.

    Attributes
    ----------
    status_code : int or None
        The HTTP status of the response, where there was one.
    retry_after : float or None
        Seconds that the service asked to wait, where it did.
    retryable : bool
        Whether the same call may succeed later, unchanged.
    partial : DataFrame or None
        What had been read before the error, where a long read was interrupted.
    """

    def __init__(
        self,
        message: str,
        *,
        status_code: int | None = None,
        retry_after: float | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.retry_after = retry_after
        self.retryable = retryable
        self.partial: pd.DataFrame | None = None


class ConfigurationError(OutreachError, ValueError):
    """The address or the token is missing or cannot be used."""


class InvalidInputError(OutreachError, ValueError):
    """An argument, a frame or a file cannot be used; nothing was sent."""


class ServiceError(OutreachError):
    """The service, or the way to it, failed.

    Attributes
    ----------
    may_have_acted : bool
        Whether the service may have done what it was asked to. False where it certainly did not:
        the request never left, or was refused.
    """

    def __init__(
        self,
        message: str,
        *,
        status_code: int | None = None,
        retry_after: float | None = None,
        retryable: bool = False,
        may_have_acted: bool = True,
    ) -> None:
        super().__init__(
            message, status_code=status_code, retry_after=retry_after, retryable=retryable
        )
        self.may_have_acted = may_have_acted


class ConnectionFailedError(ServiceError):
    """No response came: refused, reset, or the name is unknown."""


class RequestTimeoutError(ServiceError):
    """No complete response came in time."""


class WaitTooLongError(ServiceError):
    """The service asks for a longer wait than `max_wait` allows."""


class InvalidResponseError(ServiceError):
    """The response makes no sense: not JSON, cut off, too large, or of another shape."""


class UnsafeLinkError(ServiceError):
    """A link or redirect leads to another host, in a circle, or never to an end."""


class StatusError(ServiceError):
    """The service responded with an error status."""


class BadRequestError(StatusError):
    """400: the request is malformed."""


class AuthenticationError(StatusError):
    """401 or 403: the token is not accepted."""


class NotFoundError(StatusError):
    """404: nothing was found under this id or address."""


@dataclass(frozen=True, slots=True)
class ValidationProblem:
    """One entry of a 422's `validation_errors`."""

    error_code: str
    message: str


class ValidationFailedError(StatusError):
    """422: the request is well formed and cannot be completed.

    Attributes
    ----------
    validation_errors : tuple of ValidationProblem
        Everything that the service gave as a reason, unknown codes included.
    """

    def __init__(
        self,
        message: str,
        *,
        status_code: int | None = 422,
        retry_after: float | None = None,
        retryable: bool = False,
        may_have_acted: bool = False,
        validation_errors: Sequence[ValidationProblem] = (),
    ) -> None:
        super().__init__(
            message,
            status_code=status_code,
            retry_after=retry_after,
            retryable=retryable,
            may_have_acted=may_have_acted,
        )
        self.validation_errors: tuple[ValidationProblem, ...] = tuple(validation_errors)


class RateLimitedError(StatusError):
    """429: too many requests."""


class ServerError(StatusError):
    """5xx: the service failed."""


class OutreachWarning(UserWarning):
    """Something that the analyst should know and that is not an error."""
