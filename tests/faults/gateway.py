"""A proxy between client and sandbox that fails the n-th request and records added leads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from outreach_frames.sandbox import Sandbox
from tests import scripted
from tests.scripted import Received, Reply

PassOn = Callable[[], Reply]


def _after(reply: Callable[[Reply], Reply]) -> Callable[[PassOn], Reply]:
    return lambda pass_on: reply(pass_on())


def _instead(reply: Reply) -> Callable[[PassOn], Reply]:
    return lambda _: reply


# The effect of each fault on a request, by name.
FAULTS: Final[Mapping[str, Callable[[PassOn], Reply]]] = {
    "reset before": _instead(scripted.reset()),
    "reset after": _after(lambda _: scripted.reset()),
    "closed after": _after(lambda _: scripted.hang_up()),
    "short body": _after(scripted.truncated),
    "no JSON": _after(lambda _: scripted.respond(b"<html>")),
    "429": _instead(scripted.json({}, 429, {"Retry-After": "0"})),
    "500 before": _instead(scripted.json({}, 500)),
    "500 after": _after(lambda _: scripted.json({}, 500)),
    "503": _instead(scripted.json({}, 503, {"Retry-After": "0"})),
    "401": _instead(scripted.json({}, 401)),
}


@dataclass(frozen=True)
class Fault:
    """A fault at one request, and with `lasting` at all later ones."""

    kind: str
    number: int
    lasting: bool = False

    def strikes(self, number: int) -> bool:
        """Return whether the request with that number fails."""
        return number == self.number or (self.lasting and number > self.number)


class Gateway:
    """A script for `scripted` that forwards requests to a sandbox, except the failing ones.

    Attributes
    ----------
    fault : Fault or None
        The fault to inject; setting it restarts the count of requests.
    struck : bool
        Whether the fault occurred.
    committed : Counter
        How often the sandbox accepted each lead, by `key`.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.committed: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.fault = None

    @property
    def fault(self) -> Fault | None:
        """The fault to inject."""
        return self._fault

    @fault.setter
    def fault(self, fault: Fault | None) -> None:
        self._fault, self._requests, self.struck = fault, 0, False

    def __call__(self, received: Received) -> Reply:
        """Respond like the sandbox, or with the fault."""
        with self._lock:
            self._requests += 1
            strikes = self._fault is not None and self._fault.strikes(self._requests)
            self.struck |= strikes
        if strikes and self._fault is not None:
            return FAULTS[self._fault.kind](lambda: self._pass_on(received))
        return self._pass_on(received)

    def _pass_on(self, received: Received) -> Reply:
        reply = scripted.passed_on(received, self.sandbox.url)
        adds_leads = received.method == "POST" and received.path.endswith("/leads")
        if adds_leads and reply.parts[0].startswith(b"HTTP/1.1 2"):
            with self._lock:
                self.committed.update(key(lead) for lead in received.json["leads"])
        return reply


def key(lead: Mapping[str, Any]) -> str:
    """Return a lead's identifier."""
    return str(lead.get("email") or lead.get("profnet_url")).casefold()
