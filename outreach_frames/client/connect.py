"""Connect to the service and manage the default client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from outreach_frames import spec
from outreach_frames.client import options
from outreach_frames.client.client import Client
from outreach_frames.client.credentials import Token
from outreach_frames.errors import ConfigurationError

if TYPE_CHECKING:
    from outreach_frames.sandbox import Sandbox

BASE_URL_VARIABLE = "OUTREACH_BASE_URL"
API_KEY_VARIABLE = "OUTREACH_API_KEY"
SANDBOX = "sandbox"

_HOW_TO_CONNECT = (
    'Call of.connect("https://api.your-service.example", api_key), '
    f"or set {BASE_URL_VARIABLE} and {API_KEY_VARIABLE}, "
    'or try everything without an account: of.connect("sandbox").'
)

_default: Client | None = None


def connect(
    base_url: str | None = None,
    api_key: str | None = None,
    *,
    cache: str | Path | None = options.DEFAULT_CACHE,
    timeout: float = options.TIMEOUT,
    workers: int = options.WORKERS,
    max_wait: float = options.MAX_WAIT,
    network_name: str = spec.NETWORK_NAME,
    proxies: Mapping[str, str] | None = None,
    verify: bool | str | Path = True,
) -> Client:
    """Connect to the service and make that connection the default one.

    Parameters
    ----------
    base_url : str, optional
        The service's address; by default the environment variable OUTREACH_BASE_URL. "sandbox"
        starts the embedded service on this machine.
    api_key : str, optional
        The account's token; by default the environment variable OUTREACH_API_KEY. The sandbox
        needs none.
    cache : str, Path or None
        The file for cached responses: "default" in the user's cache folder, a path, or None for
        no cache.
    timeout : float
        Maximum seconds for one request, including the response's body.
    workers : int
        Maximum number of parallel requests.
    max_wait : float
        Maximum seconds that one call waits, for retries and Retry-After together.
    network_name : str
        How this service spells the professional network in its field names.
    proxies : mapping of str to str, optional
        Proxy addresses by scheme. The environment's proxies are not used.
    verify : bool, str or Path
        Whether to verify certificates, or a file of custom certificate authorities.

    Returns
    -------
    Client
        Usable as a context manager; closing it stops a sandbox that it started.

    Raises
    ------
    ConfigurationError
        The address, the token or an option is missing or invalid.

    Notes
    -----
    Interface: Authentication.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     len(of.mailboxes(status="needs_reconnection")) > 0
    True
    """
    # Delete the text before anything can raise: a traceback may show local variables.
    token = Token(api_key if api_key is not None else os.environ.get(API_KEY_VARIABLE))
    del api_key
    base_url = base_url or os.environ.get(BASE_URL_VARIABLE)
    if not base_url:
        raise ConfigurationError(f"No service address is configured. {_HOW_TO_CONNECT}")
    sandbox = _started_sandbox() if base_url == SANDBOX else None
    if sandbox is not None:
        base_url, token = sandbox.url, Token(sandbox.api_key)
    elif not token.is_given:
        raise ConfigurationError(
            f"The service's address is configured, but its token is missing. {_HOW_TO_CONNECT}"
        )
    try:
        client = Client(
            base_url,
            token,
            cache=cache,
            timeout=timeout,
            workers=workers,
            max_wait=max_wait,
            network_name=network_name,
            proxies=proxies,
            verify=verify,
        )
    except BaseException:
        if sandbox is not None:
            sandbox.stop()
        raise
    client.sandbox = sandbox
    make_default(client)
    return client


def resolve(client: Client | None) -> Client:
    """Return the given client, the default one, or one configured by the environment."""
    if client is not None:
        if not isinstance(client, Client):
            raise ConfigurationError(
                f"client takes a Client from of.connect(), not {type(client).__name__}."
            )
        return client
    if _default is not None and not _default.closed:
        return _default
    if _default is not None and _default.sandbox is not None:
        # Code that used the sandbox must not silently switch to a real account.
        raise ConfigurationError(f"The connection to the sandbox is closed. {_HOW_TO_CONNECT}")
    if os.environ.get(BASE_URL_VARIABLE):
        return connect()
    raise ConfigurationError(f"No service is connected. {_HOW_TO_CONNECT}")


def current() -> Client | None:
    """Return the default client if it is open, without creating one."""
    return _default if _default is not None and not _default.closed else None


def make_default(client: Client) -> None:
    """Make a client the default of all functions."""
    global _default  # noqa: PLW0603 - the one piece of state that spares analysts an argument
    _default = client


def _started_sandbox() -> Sandbox:
    from outreach_frames.sandbox import serve  # noqa: PLC0415 - slow to import

    try:
        return serve()
    except ModuleNotFoundError as error:
        raise ConfigurationError(str(error)) from error
