"""One clock per process enforces the timeouts of all threads, also after a fork."""

from __future__ import annotations

import threading
import time

import pytest

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.deadlines import Clock, Exchange
from outreach_frames.errors import RequestTimeoutError
from tests import forked
from tests.scripted import Received, Reply, drip, json, scripted


def slow(_received: Received) -> Reply:
    """Respond byte by byte, so that no socket timeout applies."""
    return drip(json({"sequences": ["x" * 200]}))


def test_requests_of_all_threads_have_their_own_timeout() -> None:
    """A request with a short timeout is not delayed by one with a longer timeout."""
    ended: list[str] = []

    def ask(name: str, seconds: float) -> None:
        with Client(service.url, "token", cache=None, timeout=seconds, backoff=0) as client:
            with pytest.raises(RequestTimeoutError):
                client.write(spec.UPDATE_MAILBOX, path={"id": "m"}, body={"daily_email_limit": 1})
        ended.append(name)

    with scripted(slow) as service:
        threads = [
            threading.Thread(target=ask, args=arguments)
            for arguments in (("long", 1), ("short", 0.1))
        ]
        for thread in threads:
            thread.start()
            time.sleep(0.02)
        for thread in threads:
            thread.join()
    assert ended == ["short", "long"]


def test_a_finished_exchange_is_not_aborted() -> None:
    """A forgotten exchange does not time out, but a later one does."""
    clock, over, late = Clock(), Exchange(), Exchange()
    clock.start(over, 0.05)
    clock.forget(over)
    clock.start(late, 0.1)
    deadline = time.monotonic() + 10
    while not late.timed_out and time.monotonic() < deadline:
        time.sleep(0.01)
    assert late.timed_out
    assert not over.timed_out


@pytest.mark.long
def test_a_forked_process_has_a_clock_too() -> None:
    """A process forked after the first request enforces timeouts of its own requests."""
    code = (
        "import os, sys, warnings\n"
        "from outreach_frames import spec\n"
        "from outreach_frames.client.client import Client\n"
        "from outreach_frames.errors import RequestTimeoutError\n"
        "def ask():\n"
        "    with Client(sys.argv[1], 'token', cache=None, timeout=0.2, backoff=0) as client:\n"
        "        try:\n"
        "            client.read(spec.LIST_SEQUENCES)\n"
        "        except RequestTimeoutError:\n"
        "            return 0\n"
        "    return 1\n"
        "assert ask() == 0\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os._exit(ask())\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    with scripted(slow) as service:
        run = forked.run(code, service.url)
    assert run.returncode == 0, run.stderr
