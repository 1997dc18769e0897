"""Starting the sandbox, and the object that stands for it."""

from __future__ import annotations

import atexit
import os
import re
import secrets
import socket
from collections.abc import Iterable
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from outreach_frames.sandbox.examples import curl, requests
from outreach_frames.sandbox.faults import Fault, FaultLike, Faults
from outreach_frames.sandbox.operations import Service
from outreach_frames.sandbox.passing_time import MAX_DAYS, advance_world
from outreach_frames.sandbox.records import make_world
from outreach_frames.sandbox.search import PeopleIndex
from outreach_frames.sandbox.store import Store, World, open_store
from outreach_frames.sandbox.world import TODAY

if TYPE_CHECKING:
    from outreach_frames.sandbox.server import ServerThread

HOST = "127.0.0.1"
# The characters of bearer tokens, of which a shell needs none quoted.
_BEARER_PATTERN = r"[A-Za-z0-9._~+/=-]+"


class Sandbox:
    """A running sandbox: where it is, its token, and what its interface cannot list.

    Made by `serve`; a context manager that stops it.

    Attributes
    ----------
    url, api_key : str
        The base address and the token, which is another one each time unless one was given.
    people, seed : int
        What the world was made from.
    today : date
        The world's day: that on which it was made, and the days that `advance` let go by.
    sequence_ids : dict of str to str
        Sequences that each show one thing about adding leads, by what they show: the error code
        that they lead to (all of `spec.ADD_LEADS_ERRORS`), or `accepts_any` (needs no field),
        `needs_email`, `conditional_email` (email stages with conditional logic), `paused`,
        `nearly_full` (room for 10 more leads), `several_errors`.
    lead_list_ids, contact_ids : list of str
        The ids of all lead lists and contacts.
    exclusion_list, recently_contacted, draft_leads, active_leads : list of dict
        Leads that adding leads skips, with `email` and `profnet_url`: those of the account's
        exclusion list, those contacted recently, those in a draft sequence, and those in an active
        or paused one.
    school_ids : dict of str to str
        The ids of the schools that somebody went to, by name: values for the search filters
        `education_company_ids` and `education_company_names`.
    investors : list of str
        The investors of companies that somebody works at: values for `company_investors`.
    network_users : list of str
        The addresses of users whose network people search knows: values for `profnet_networks`.
    """

    def __init__(
        self, url: str, service: Service, server: ServerThread, *, people: int, seed: int
    ) -> None:
        self.url = url
        self.people = people
        self.seed = seed
        self._service = service
        self._server = server
        self._stopped = False
        store = service.store
        self.sequence_ids: dict[str, str] = {
            row["shows"]: row["id"] for row in store.sequences() if row["shows"]
        }
        self.lead_list_ids: list[str] = store.ids("lead_lists")
        self.contact_ids: list[str] = store.ids("contacts")
        self.exclusion_list: list[dict[str, Any]] = store.list_identifiers("exclusion_list")
        self.recently_contacted: list[dict[str, Any]] = store.list_identifiers("recently_contacted")
        self.draft_leads: list[dict[str, Any]] = store.leads_by_status("draft")
        self.active_leads: list[dict[str, Any]] = store.leads_by_status("active", "paused")
        self.network_users: list[str] = service.people.network_users()
        self._refresh()
        atexit.register(self.stop)

    def _refresh(self) -> None:
        """Read what changes with the people, and the date."""
        self.school_ids: dict[str, str] = self._service.people.school_ids()
        self.investors: list[str] = self._service.people.investors()
        self.today: date = TODAY + timedelta(days=self._service.store.world()["days"])

    @property
    def api_key(self) -> str:
        """The account's token."""
        return self._service.api_key

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults in force; assigning others replaces them, with their counts at zero."""
        return self._service.faults.active()

    @faults.setter
    def faults(self, faults: Iterable[FaultLike] | FaultLike | None) -> None:
        self._service.faults = Faults.activate(faults, seed=self.seed)

    def leads(self, sequence_id: str) -> list[dict[str, Any]]:
        """Return what the database holds of a sequence: its leads in order of arrival.

        Parameters
        ----------
        sequence_id : str
            The sequence's id.

        Returns
        -------
        list of dict
            `email`, `profnet_url` and `data` of each lead.
        """
        with self._service.store.lock:
            self._require_running()
            return self._service.store.leads(sequence_id)

    def curl(self, token: str | None = None) -> dict[str, str]:
        """Return a request of each operation as a line for a shell, which works as it is.

        Parameters
        ----------
        token : str, optional
            What stands in the place of the token, such as ``$OUTREACH_API_KEY``; the token itself
            if left out.

        Returns
        -------
        dict of str to str
            By the names of operations, with ids of this world.

        Examples
        --------
        >>> import outreach_frames.sandbox
        >>> with outreach_frames.sandbox.serve(people=50) as sandbox:
        ...     print(sandbox.curl("$OUTREACH_API_KEY")["list_sequences"])
        curl -s -H "Authorization: Bearer $OUTREACH_API_KEY" 'http://127.0.0.1:...'
        """
        with self._service.store.lock:
            self._require_running()
            calls = requests(self._service.store)
        return {
            endpoint.name: curl(call, self.url, token or self.api_key)
            for endpoint, call in calls.items()
        }

    def advance(self, days: int = 30) -> date:
        """Let time go by: people change jobs, join and leave, and headcounts change.

        Whoever stays keeps the id and profile URL. Contacts, lead lists and leads stay as they are.
        The same seed, and the same days one after the other, give the same world; one that is kept
        in a file stays as it is then. Where responses are cached, read with ``refresh=True`` next.

        Parameters
        ----------
        days : int
            How many, 1 to 3,650.

        Returns
        -------
        date
            The world's day then, as in `today`.

        Raises
        ------
        ValueError
            The number of days is not one of these.
        RuntimeError
            The sandbox is stopped.

        Examples
        --------
        >>> import outreach_frames.sandbox
        >>> with outreach_frames.sandbox.serve(people=50) as sandbox:
        ...     sandbox.advance(days=30).isoformat()
        '2026-12-02'
        """
        if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MAX_DAYS:
            raise ValueError(f"days takes a whole number from 1 to {MAX_DAYS:,}, not {days!r}.")
        with self._service.store.lock:
            self._require_running()
            advance_world(self._service.store.connection, days)
            self._service.people.reload()
            self._refresh()
            return self.today

    def _require_running(self) -> None:
        if self._stopped:
            raise RuntimeError("The sandbox is stopped, and its database closed.")

    def stop(self) -> None:
        """Stop serving, and close the database; a second time does nothing."""
        atexit.unregister(self.stop)
        self._server.stop()
        with self._service.store.lock:
            self._stopped = True
            self._service.store.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Sandbox at {self.url}: {self.people:,} people, seed {self.seed}>"


def serve(
    port: int = 0,
    people: int = 2000,
    seed: int = 0,
    faults: Iterable[FaultLike] | FaultLike | None = None,
    db: str | os.PathLike[str] | None = None,
    *,
    api_key: str | None = None,
) -> Sandbox:
    """Start a service that responds as the interface says, over a world made from a seed.

    It listens on loopback only, and returns once it listens. It stops at `stop()`, at the end of a
    `with` block, or with the interpreter.

    Parameters
    ----------
    port : int, default 0
        The port to listen on; 0 takes a free one.
    people : int, default 2000
        How many people the world has.
    seed : int, default 0
        What the world is made from: the same seed and number of people give the same world.
    faults : Fault, dict, str, or several of these, optional
        How to misbehave; see `Fault`.
    db : path, optional
        A file to keep the world and what is added to it in. It is made if it is missing, and found
        again the next time. In memory if left out.
    api_key : str, optional
        The token that it takes, made up for it: with a file and a port, what is connected goes on
        after a restart. Another one each time if left out.

    Returns
    -------
    Sandbox
        With `url`, `api_key` and `stop()`.

    Raises
    ------
    ModuleNotFoundError
        If the packages of the extra `sandbox` are not installed.
    OSError
        If the port is taken or not allowed, or the file cannot be written.
    ValueError
        If `people` is less than 1, a fault is unknown, the token cannot be one, or the file holds
        another world or something else.

    Notes
    -----
    Interface: the whole document. What it does not show is chosen plainly, and said in the modules
    `app`, `operations`, `rules`, `search`, `submission`, `add_leads` and `companies`.

    Examples
    --------
    >>> import outreach_frames.sandbox
    >>> with outreach_frames.sandbox.serve(people=50) as sandbox:
    ...     sandbox.url.startswith("http://127.0.0.1:")
    True
    """
    if people < 1:
        raise ValueError(f"people must be at least 1, not {people}.")
    if api_key is not None and not re.fullmatch(_BEARER_PATTERN, api_key):
        raise ValueError(
            "A token has letters, digits and - . _ ~ + / =, at least one of them, and no blanks."
        )
    armed = Faults.activate(faults, seed=seed)
    try:
        from outreach_frames.sandbox.app import make_app  # noqa: PLC0415
        from outreach_frames.sandbox.server import ServerThread  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"The sandbox needs a package that is not installed ({error}): "
            'pip install "outreach-frames[sandbox]"',
            name=error.name,
        ) from error

    listener = _listen(port)
    store: Store | None = None
    try:
        store = open_store(db, World(people, seed, make_world))
        token = api_key or f"sandbox-{secrets.token_hex(12)}"
        service = Service(store, PeopleIndex(store.connection), token, armed)
        server = ServerThread(make_app(service), listener)
        server.start()
    except BaseException:
        listener.close()
        if store is not None:
            store.close()
        raise
    url = f"http://{HOST}:{listener.getsockname()[1]}"
    return Sandbox(url, service, server, people=people, seed=seed)


def _listen(port: int) -> socket.socket:
    """Bind the port, so that it is known, and refused here if it is taken."""
    # With the protocol named, asyncio sends at once what is small (TCP_NODELAY).
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise OSError(
            getattr(error, "errno", None),
            f"The sandbox cannot listen on port {port} ({error}). "
            "Stop what is using it, or take another one: port=0 finds a free one.",
        ) from error
    return listener
