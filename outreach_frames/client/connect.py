"""Connect to the service, log in and out, and manage the default client."""

from __future__ import annotations

import getpass
import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Never, TypeVar

from outreach_frames import spec
from outreach_frames.client import options, profiles
from outreach_frames.client.client import Client
from outreach_frames.client.credentials import Token
from outreach_frames.client.profiles import DEFAULT_PROFILE, Profile
from outreach_frames.client.request import checked_base_url
from outreach_frames.client.response import load_object
from outreach_frames.client.retry import WaitBudget
from outreach_frames.common import terms
from outreach_frames.common.arguments import check_integer, suggestion
from outreach_frames.common.text import quoted
from outreach_frames.errors import AuthenticationError, ConfigurationError

if TYPE_CHECKING:
    from outreach_frames.sandbox import Sandbox

BASE_URL_VARIABLE = "OUTREACH_BASE_URL"
API_KEY_VARIABLE = "OUTREACH_API_KEY"
PROFILE_VARIABLE = "OUTREACH_PROFILE"
SANDBOX = "sandbox"

# Words that users try in place of api_key=.
_TOKEN_WORDS: Final = ("api_key", "token", "api_token", "key")

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

_default: Client | None = None


def _hide_unknown(function: Function) -> Function:
    """Hide the last parameter, `**unknown`, from help and completion.

    A wrapper that checks the arguments would keep the token in a variable that tracebacks show.
    """
    signature = inspect.signature(function)
    *shown, _ = signature.parameters.values()
    vars(function)["__signature__"] = signature.replace(parameters=shown)
    return function


def _reject_unknown(function: Callable[..., Any], unknown: dict[str, Never]) -> None:
    """Raise TypeError for unknown keyword arguments, and drop their values."""
    names = list(unknown)
    unknown.clear()
    if not names:
        return
    known = list(inspect.signature(function).parameters)
    hint = suggestion(names[0], known)
    if names[0] in _TOKEN_WORDS:
        hint = " Pass the token as api_key=." if "api_key" in known else " It asks for the token."
    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {names[0]!r}.{hint}")


@_hide_unknown
def connect(
    base_url: str | None = None,
    api_key: str | None = None,
    *,
    profile: str | None = None,
    people: int | None = None,
    seed: int | None = None,
    cache: str | Path | None = options.DEFAULT_CACHE,
    timeout: float = options.TIMEOUT,
    workers: int = options.WORKERS,
    max_wait: float = options.MAX_WAIT,
    requests_per_minute: float | None = None,
    network_name: str = spec.NETWORK_NAME,
    proxies: Mapping[str, str] | None = None,
    verify: bool | str | Path = True,
    **unknown: Never,
) -> Client:
    """Connect to the service and make the connection the default.

    Address and token come from the first source that is set: the arguments (if only one is passed,
    the other comes from its environment variable); `profile`; the profile that the environment
    variable OUTREACH_PROFILE names; the environment variables; the profile "default". A stored
    token is sent only to the address stored with it. If neither the arguments nor the profile have
    a proxy or certificates, they come from the environment variables OUTREACH_PROXY and
    OUTREACH_CA_BUNDLE; the sandbox ignores both.

    Parameters
    ----------
    base_url : str, optional
        The service's address; by default the environment variable OUTREACH_BASE_URL. "sandbox"
        always starts the embedded service on this machine.
    api_key : str, optional
        The account's token; by default the environment variable OUTREACH_API_KEY. The sandbox
        needs no token.
    profile : str, optional
        A profile of `login`; pass no address or token with it. The profile's options
        apply unless you pass other values.
    people : int, optional
        The number of people in the sandbox, by default 2000; only for the sandbox.
    seed : int, optional
        The seed of the sandbox's data, by default 0; only for the sandbox.
    cache : str, Path or None
        Where to cache responses: "default" for a file in the user's cache folder (no cache for a
        sandbox), the path of a file, or None for no cache.
    timeout : float
        Maximum seconds for one request, including the response's body.
    workers : int
        Maximum number of parallel requests.
    max_wait : float
        Maximum seconds that a call waits without a useful response to any request of the client in
        between. Pauses of `requests_per_minute` do not count.
    requests_per_minute : float, optional
        Space the requests of all threads evenly, for services whose rate limit allows no bursts; by
        default requests are not spaced.
    network_name : str
        The word for the professional network in the service's field names: "profnet" if the service
        calls the profile URL `profnet_url`. Frames always have the column `profnet_url`.
    proxies : mapping of str to str, optional
        Proxy addresses by scheme, or {} for no proxy; by default the address in the environment
        variable OUTREACH_PROXY, for http and https. Other variables such as HTTPS_PROXY are not
        used. SOCKS proxies need the extra package `requests[socks]`.
    verify : bool, str or Path
        Whether to verify certificates, or a file of custom certificate authorities in PEM form; by
        default the file in the environment variable OUTREACH_CA_BUNDLE, if it is set.

    Returns
    -------
    Client
        The new default connection, also a context manager; closing it stops its sandbox.

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
    has_arguments = bool(base_url) or api_key is not None
    del api_key
    _reject_unknown(connect, unknown)
    if has_arguments and profile is not None:
        raise ConfigurationError(
            f"Pass either {terms.argument('profile')} or an address and a token: a profile "
            "contains both."
        )
    stored = None if has_arguments else _configured_profile(profile, token)
    if stored is not None:
        base_url, token = stored.base_url, stored.token
    base_url = base_url or os.environ.get(BASE_URL_VARIABLE)
    if not base_url:
        problem = "No service is connected, and no address is configured."
        if token.is_given:
            problem = "A token is configured, but the address of its service is missing."
        raise ConfigurationError(f"{problem} {_how_to_connect()}")
    is_word = base_url != SANDBOX and {".", "/", ":"}.isdisjoint(base_url)
    if is_word and (hint := suggestion(base_url, [SANDBOX])):
        raise ConfigurationError(f"{quoted(base_url)} is not the address of a service.{hint}")
    given = {"people": people, "seed": seed}
    world = {key: check_integer(key, value) for key, value in given.items() if value is not None}
    if world and base_url != SANDBOX:
        raise ConfigurationError('people= and seed= are only for of.connect("sandbox").')
    sandbox = _started_sandbox(world) if base_url == SANDBOX else None
    if sandbox is not None:
        base_url, token = sandbox.url, Token(sandbox.api_key)
        # Each sandbox has another token, so no later connection could read the default cache.
        cache = None if cache == options.DEFAULT_CACHE else cache
    elif not token.is_given:
        raise ConfigurationError(
            f"The service's address is configured, but its token is missing. {_how_to_connect()}"
        )
    used = Profile(base_url, token, stored.options if stored else {}).with_options(
        {
            "proxies": proxies,
            "verify": verify,
            "network_name": network_name,
            "requests_per_minute": requests_per_minute,
        }
    )
    try:
        client = Client(
            base_url,
            token,
            sandbox=sandbox,
            cache=cache,
            timeout=timeout,
            workers=workers,
            max_wait=max_wait,
            **(used.options if sandbox else options.with_environment(used.options)),
        )
    except BaseException:
        if sandbox is not None:
            sandbox.stop()
        raise
    make_default(client)
    return client


@_hide_unknown
def login(
    base_url: str | None = None,
    *,
    profile: str = DEFAULT_PROFILE,
    proxies: Mapping[str, str] | None = None,
    verify: bool | str | Path = True,
    network_name: str = spec.NETWORK_NAME,
    requests_per_minute: float | None = None,
    **unknown: Never,
) -> Client:
    """Ask for the address and the token, try them, and store them in the system's keyring.

    If the profile is stored with this address and the service accepts the stored token, `login`
    asks for nothing, so a notebook can begin with `login`. If the service refuses a stored token,
    `login` asks for a new one. The token is hidden while you type it, tried with one request, and
    stored only in the keyring: Keychain, Credential Manager, Secret Service or KWallet. Later,
    `connect` uses it.

    Parameters
    ----------
    base_url : str, optional
        The service's address; by default the stored profile's, otherwise `login` asks for it.
    profile : str, default "default"
        The profile's name.
    proxies : mapping of str to str, optional
        Proxy addresses by scheme, stored with the token; by default the stored profile's.
        Like `connect`, `login` falls back to the environment's, which it does not store.
    verify : bool, str or Path
        A file of custom certificate authorities, whose path is stored with the token; by default
        the stored profile's. False cannot be stored.
    network_name : str
        The word for the professional network in the service's field names, as in `connect`; stored
        with the token.
    requests_per_minute : float, optional
        The number of requests per minute, as in `connect`; stored with the token.

    Returns
    -------
    Client
        The default connection from now on.

    Raises
    ------
    ConfigurationError
        An argument or the input is invalid, no input is possible, or the machine has no keyring
        that encrypts; nothing is stored.
    AuthenticationError
        The service refuses the new token, which is not stored, or the request (status 403).
    ServiceError
        The service cannot be reached. The stored profile is kept.

    Notes
    -----
    Interface: Authentication.

    Examples
    --------
    >>> import outreach_frames as of
    >>> client = of.login("https://api.your-service.example")  # doctest: +SKIP
    Token for https://api.your-service.example:
    """
    _reject_unknown(login, unknown)
    if verify is False:
        raise ConfigurationError(
            "verify=False cannot be stored. Pass a file of certificate authorities, or use "
            "of.connect(verify=False) to try a connection."
        )
    given = {
        "proxies": None if proxies is None else options.checked_proxies(proxies),
        "verify": options.checked_verify(verify),
        "network_name": network_name,
        "requests_per_minute": requests_per_minute,
    }
    options.checked_rate(requests_per_minute)
    stored = profiles.load(profile, replaces=True)
    base_url = None if base_url is None else checked_base_url(base_url)
    if stored is not None and base_url in (None, stored.base_url):
        chosen, prompt = stored.with_options(given), "The stored token is refused. New token"
        try:
            return _logged_in(profile, chosen, stored)
        except AuthenticationError as error:
            if error.status_code != HTTPStatus.UNAUTHORIZED:
                raise
    else:
        typed = base_url or _ask(lambda: input("Address of the service: ").strip())
        chosen = Profile(checked_base_url(typed), Token(None), {}).with_options(given)
        prompt = "Token"
    prompt = f"{prompt} for {chosen.base_url}: "
    token = _ask(lambda: Token(getpass.getpass(prompt).strip()))
    if not token.is_given:
        raise ConfigurationError("No token was entered, and nothing was stored. Log in again.")
    return _logged_in(profile, chosen._replace(token=token), None)


def logout(profile: str = DEFAULT_PROFILE) -> None:
    """Remove a profile of `login` from the system's keyring, if it exists.

    An open connection stays open; close it with `client.close()`. The service
    still accepts the token.

    Parameters
    ----------
    profile : str, default "default"
        The profile's name.

    Returns
    -------
    None
        The keyring no longer has the profile.

    Raises
    ------
    ConfigurationError
        The name is invalid, or the keyring cannot be used.

    Notes
    -----
    Interface: Authentication.

    Examples
    --------
    >>> import outreach_frames as of
    >>> of.logout()  # doctest: +SKIP
    """
    profiles.remove(profile)


def resolve(client: Client | None) -> Client:
    """Return the given client, the default one, or a new one from `connect()`."""
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
        raise ConfigurationError(f"The connection to the sandbox is closed. {_how_to_connect()}")
    return connect()


def current() -> Client | None:
    """Return the default client if it is open, without creating one."""
    return _default if _default is not None and not _default.closed else None


def make_default(client: Client) -> None:
    """Make a client the default of all functions."""
    global _default  # noqa: PLW0603 - the one piece of state that spares analysts an argument
    _default = client


def _how_to_connect() -> str:
    """Return advice for a caller without a connection."""
    examples = terms.wording(
        'Or call of.connect("https://api.your-service.example", api_key). To try everything '
        'without an account, call of.connect("sandbox").',
        in_shell="To try everything without an account, pass --sandbox.",
    )
    return (
        f"Set {BASE_URL_VARIABLE} and {API_KEY_VARIABLE}, or store an address and a token with "
        f"{terms.function('login')}. {examples}"
    )


def _configured_profile(profile: str | None, token: Token) -> Profile | None:
    """Return the requested profile, else the default one unless an address or token is set."""
    name = os.environ.get(PROFILE_VARIABLE) or None if profile is None else profile
    if name is not None:
        stored = profiles.load(name)
        if stored is None:
            raise ConfigurationError(
                f"The system's keyring has no profile {name!r}. {terms.call('login')} with this "
                f"profile to store it, or check {terms.argument('profile')} and {PROFILE_VARIABLE}."
            )
        return stored
    if token.is_given or os.environ.get(BASE_URL_VARIABLE):
        return None
    return None if isinstance(profiles.find_keyring(), str) else profiles.load(DEFAULT_PROFILE)


def _logged_in(name: str, profile: Profile, stored: Profile | None) -> Client:
    """Connect, try one request, store the profile if it is new, and make the client the default."""
    used = options.with_environment(profile.options)
    client = Client(profile.base_url, profile.token, **used)
    try:
        query = {spec.PAGE_SIZE.name: 1}
        budget = WaitBudget(client._session.max_wait)
        load_object(client._session.observe(spec.LIST_SEQUENCES, budget, query=query).body)
        if profile != stored:
            profiles.store(name, profile)
    except BaseException:
        client.close()
        raise
    make_default(client)
    return client


def _ask(ask: Callable[[], T]) -> T:
    """Return a person's input, or raise ConfigurationError if no input is possible."""
    # The cause is dropped, because an error may hold the input.
    faults = (EOFError, OSError, RuntimeError, ValueError, getpass.GetPassWarning)
    with suppress(*faults), warnings.catch_warnings():
        # `getpass` warns if the terminal would show the token.
        warnings.simplefilter("error", getpass.GetPassWarning)
        return ask()
    raise ConfigurationError(
        "No input was read: this is not a terminal or notebook, the terminal would show the token, "
        "or the input ended. Log in from a terminal or notebook, or set "
        f"{BASE_URL_VARIABLE} and {API_KEY_VARIABLE}."
    )


def _started_sandbox(world: Mapping[str, Any]) -> Sandbox:
    from outreach_frames.sandbox import serve  # noqa: PLC0415 - slow to import

    try:
        return serve(**world)
    except (ModuleNotFoundError, ValueError) as error:
        raise ConfigurationError(str(error)) from error
