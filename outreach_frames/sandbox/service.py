"""Start the sandbox, and control it through an object."""

from __future__ import annotations

import atexit
import os
import re
import secrets
import socket
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from outreach_frames.sandbox.add_leads import EXCLUDED, RECENT, RECENT_DAYS
from outreach_frames.sandbox.faults import Fault, FaultLike, Faults
from outreach_frames.sandbox.operations import Service
from outreach_frames.sandbox.passing_time import MAX_DAYS, advance_world
from outreach_frames.sandbox.records import open_world
from outreach_frames.sandbox.search import PeopleIndex
from outreach_frames.sandbox.world import TODAY
from outreach_frames.spec import LEAD_IDENTIFIERS

if TYPE_CHECKING:
    from outreach_frames.sandbox.server import ServerThread

HOST = "127.0.0.1"
# Functions that are called with the address of each sandbox that stops.
stop_listeners: list[Callable[[str], object]] = []
# Bearer tokens; a shell needs no quotes around these characters.
_BEARER_PATTERN = r"[A-Za-z0-9._~+/=-]+"


class Sandbox:
    """A running sandbox: its address, its token, and data that no endpoint lists.

    `serve` returns this object. As a context manager, it stops the service at the end.

    Attributes
    ----------
    url : str
        The base address.
    api_key : str
        The token, which is random unless passed to `serve`.
    today : date
        The world's date, which `advance` moves forward.
    sequence_ids : dict of str to str
        Ids of sequences to try each outcome of adding leads, by outcome: an error code (all of
        `spec.ADD_LEADS_ERRORS`), `accepts_any` (needs no field), `needs_email`,
        `conditional_email` (email stages with conditional logic), `paused`, `nearly_full` (room for
        10 more leads) or `several_errors`.
    lead_list_ids : list of str
        The ids of all lead lists.
    contact_ids : list of str
        The ids of all contacts.
    exclusion_list : list of dict
        The `email` and `profnet_url` of leads in the account's exclusion list.
    recently_contacted : list of dict
        The `email` and `profnet_url` of recently contacted leads; none after 90 days.
    draft_leads : list of dict
        The `email` and `profnet_url` of leads in draft sequences.
    active_leads : list of dict
        The `email` and `profnet_url` of leads in active or paused sequences.
    """

    def __init__(
        self, url: str, service: Service, server: ServerThread, *, people: int, seed: int
    ) -> None:
        self.url = url
        self.api_key = service.api_key
        self._people = people
        self._seed = seed
        self._service = service
        self._server = server
        self._stopped = False
        account = service.store.account
        self.sequence_ids: dict[str, str] = {
            row["shows"]: row["id"] for row in account.sequences.values() if row["shows"]
        }
        self.lead_list_ids: list[str] = list(account.lead_lists)
        self.contact_ids: list[str] = list(account.contacts)
        self.exclusion_list = self._leads(EXCLUDED)
        self.recently_contacted = self._leads(RECENT)
        self.draft_leads = self._leads("draft")
        self.active_leads = self._leads("active", "paused")
        atexit.register(self.stop)

    @property
    def today(self) -> date:
        """The world's date, which `advance` moves forward."""
        return TODAY + timedelta(days=self._service.store.days)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The active faults; assigning new faults replaces them and resets the counts."""
        return self._service.faults.active

    @faults.setter
    def faults(self, faults: Iterable[FaultLike] | FaultLike | None) -> None:
        self._service.faults = Faults(faults, seed=self._seed)

    def leads(self, sequence_id: str) -> list[dict[str, Any]]:
        """Return the leads of a sequence in order of arrival.

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
            return self._leads(sequence_id, names=(*LEAD_IDENTIFIERS, "data"))

    def _leads(self, *kinds: str, names: Iterable[str] = LEAD_IDENTIFIERS) -> list[dict[str, Any]]:
        leads = self._service.store.account.leads_in(*kinds)
        return [{name: lead[name] for name in names} for lead in leads]

    def advance(self, days: int = 30) -> date:
        """Advance the world's date: people change jobs, join and leave, and headcounts change.

        People who stay keep their id and profile URL. Lead lists and leads do not change. If
        leads were added to an active sequence, their contacts get events in `recent_activity`. An
        email follows the addition within a day; at the rates of `set_response_rates`, an opening
        and a reply follow within 10 days. Events are dated at the real time of the addition, plus
        the days advanced since then. Event types are this sandbox's choice; clients must not rely
        on them. After 90 days, nobody was contacted recently.

        The same seed and the same calls in the same order give the same world. If responses are
        cached, read with ``refresh=True`` afterwards.

        Parameters
        ----------
        days : int
            The number of days, 1 to 3,650.

        Returns
        -------
        date
            The new value of `today`.

        Raises
        ------
        ValueError
            If the number of days is out of range.
        RuntimeError
            If the sandbox is stopped.

        Examples
        --------
        >>> import outreach_frames.sandbox
        >>> with outreach_frames.sandbox.serve(people=50) as sandbox:
        ...     sandbox.advance(days=30).isoformat()
        '2026-12-02'
        """
        if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MAX_DAYS:
            raise ValueError(f"days must be a whole number from 1 to {MAX_DAYS:,}, not {days!r}.")
        with self._service.store.lock:
            self._require_running()
            advance_world(self._service.store, days)
            self._service.people.reload()
            if self._service.store.days >= RECENT_DAYS:
                self.recently_contacted = []
            return self.today

    def set_response_rates(
        self, sequence_id: str, *, open_rate: float | None = None, reply_rate: float | None = None
    ) -> None:
        """Set the shares of a sequence's leads that open and answer its email.

        The rates apply to events in later calls of `advance`.

        Parameters
        ----------
        sequence_id : str
            The sequence's id.
        open_rate : float, optional
            From 0 to 1; by default unchanged, and initially 0.5.
        reply_rate : float, optional
            From 0 to 1; by default unchanged, and initially 0.1.

        Raises
        ------
        ValueError
            If a rate is out of range, or there is no sequence with that id.
        RuntimeError
            If the sandbox is stopped.

        Examples
        --------
        >>> import outreach_frames.sandbox
        >>> with outreach_frames.sandbox.serve(people=50) as sandbox:
        ...     sandbox.set_response_rates(sandbox.sequence_ids["needs_email"], reply_rate=0.08)
        """
        for name, rate in (("open_rate", open_rate), ("reply_rate", reply_rate)):
            if rate is not None and not (isinstance(rate, (int, float)) and 0 <= rate <= 1):
                raise ValueError(f"{name} must be a number from 0 to 1, not {rate!r}.")
        with self._service.store.lock:
            self._require_running()
            sequence = self._service.store.account.sequences.get(sequence_id)
            if sequence is None:
                raise ValueError(f"There is no sequence with the id {sequence_id!r}.")
            rates = {"open_rate": open_rate, "reply_rate": reply_rate}
            sequence |= {name: rate for name, rate in rates.items() if rate is not None}

    def _require_running(self) -> None:
        if self._stopped:
            raise RuntimeError("The sandbox is stopped. Start another one.")

    def stop(self) -> None:
        """Stop serving and close the database; repeated calls do nothing."""
        atexit.unregister(self.stop)
        self._server.stop()
        with self._service.store.lock:
            self._stopped = True
            self._service.store.close()
        for listener in stop_listeners:
            listener(self.url)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Sandbox at {self.url}: {self._people:,} people, seed {self._seed}>"


def serve(
    port: int = 0,
    people: int = 2000,
    seed: int = 0,
    faults: Iterable[FaultLike] | FaultLike | None = None,
    *,
    api_key: str | None = None,
) -> Sandbox:
    """Start a local service with the whole interface and a world generated from a seed.

    The service listens on loopback only, and accepts requests when `serve` returns. It stops on
    `stop()`, at the end of a `with` block, or when the interpreter exits.

    Parameters
    ----------
    port : int, default 0
        The port to listen on; 0 chooses a free one.
    people : int, default 2000
        The number of people in the world.
    seed : int, default 0
        The seed of the world: the same seed and number of people give the same world.
    faults : Fault, dict, str, or several of these, optional
        Faults to simulate; see `Fault`.
    api_key : str, optional
        The token that clients must send, by default random; do not pass a real account's token.
        With a fixed token and `port`, clients can connect again after a restart, to a new world of
        the same seed.

    Returns
    -------
    Sandbox
        The running service with its `url`, `api_key` and `stop()`.

    Raises
    ------
    ModuleNotFoundError
        If the packages of the extra `sandbox` are not installed.
    OSError
        If the port is taken or not allowed.
    ValueError
        If `people` is less than 1, `seed` has more than 64 bits, a fault is unknown, or the token
        has invalid characters.

    Notes
    -----
    Interface: the whole document. Choices where the document is silent are described in the modules
    `app`, `operations`, `rules`, `search`, `submission`, `add_leads`, `passing_time`, `companies`.

    Examples
    --------
    >>> import outreach_frames.sandbox
    >>> with outreach_frames.sandbox.serve(people=50) as sandbox:
    ...     sandbox.url.startswith("http://127.0.0.1:")
    True
    """
    if people < 1:
        raise ValueError(f"people must be at least 1, not {people}.")
    if not -(2**63) <= seed < 2**63:  # SQLite's integers
        raise ValueError("seed must be a signed integer of 64 bits.")
    if api_key is not None and not re.fullmatch(_BEARER_PATTERN, api_key):
        raise ValueError(
            "The api_key has invalid characters or is empty. Use letters, digits and - . _ ~ + / =."
        )
    active_faults = Faults(faults, seed=seed)
    try:
        from outreach_frames.sandbox.app import make_app  # noqa: PLC0415
        from outreach_frames.sandbox.server import ServerThread  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"The sandbox needs a package that is not installed ({error}). "
            'Install it: pip install "outreach-frames[sandbox]"',
            name=error.name,
        ) from error

    with ExitStack() as on_failure:
        listener = on_failure.enter_context(closing(_listen(port)))
        store = on_failure.enter_context(closing(open_world(people, seed)))
        token = api_key or f"sandbox-{secrets.token_hex(12)}"
        service = Service(store, PeopleIndex(store.connection), token, active_faults)
        server = ServerThread(make_app(service), listener)
        server.start()
        on_failure.pop_all()
    url = f"http://{HOST}:{listener.getsockname()[1]}"
    return Sandbox(url, service, server, people=people, seed=seed)


def _listen(port: int) -> socket.socket:
    """Bind the port before the server starts, so that a taken port raises here."""
    # Name the protocol, so that asyncio sets TCP_NODELAY and sends small responses at once.
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
            "Stop the program that uses it, or pass port=0 to choose a free one.",
        ) from error
    return listener
