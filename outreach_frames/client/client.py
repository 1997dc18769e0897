"""The client, which an analyst holds; the package uses its session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from outreach_frames.client.credentials import Token
from outreach_frames.client.session import Session

if TYPE_CHECKING:
    from outreach_frames.sandbox import Sandbox


class Client:
    """A thread-safe connection to one account of the service, created by `connect`.

    Attributes
    ----------
    base_url : str
        The service's address.
    sandbox : Sandbox or None
        The embedded service that `connect("sandbox")` started; closing the client stops it.

    Notes
    -----
    Interface: Authentication.

    Examples
    --------
    >>> with Client("http://localhost:8000", "token", cache=None) as client:
    ...     client
    Client('http://localhost:8000')
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | Token,
        *,
        sandbox: Sandbox | None = None,
        **options: Any,
    ) -> None:
        # Delete the text before anything can raise: a traceback may show local variables.
        token = api_key if isinstance(api_key, Token) else Token(api_key)
        del api_key
        self._session: Final = Session(base_url, token, is_sandbox=sandbox is not None, **options)
        self.base_url: Final = self._session.base_url
        self.sandbox: Final = sandbox

    def __repr__(self) -> str:
        # A traceback may show a client whose `__init__` failed before it set `base_url`.
        base_url = getattr(self, "base_url", None)
        if base_url is None:
            return "Client(None)"
        states = {"sandbox": self.sandbox is not None, "closed": self.closed}
        shown = [repr(base_url), *(state for state, is_so in states.items() if is_so)]
        return f"Client({', '.join(shown)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Client holds a token and cannot be copied; call connect() instead")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether the client is closed."""
        return self._session.closed

    def close(self) -> None:
        """Abort running requests, and close the connections, the cache and the sandbox."""
        self._session.close()
        if self.sandbox is not None:
            self.sandbox.stop()
