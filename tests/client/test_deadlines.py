"""Each request has its own timeout, also after a fork."""

from __future__ import annotations

import threading
import time

import pytest

from outreach_frames import spec
from outreach_frames.client.client import Client
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


@pytest.mark.long
def test_a_forked_process_enforces_timeouts() -> None:
    """A process forked after the first request enforces timeouts of its own requests."""
    code = """if True:
        import os, sys, warnings
        from outreach_frames import spec
        from outreach_frames.client.client import Client
        from outreach_frames.errors import RequestTimeoutError
        def ask():
            with Client(sys.argv[1], 'token', cache=None, timeout=0.2, backoff=0) as client:
                try:
                    client.read(spec.LIST_SEQUENCES)
                except RequestTimeoutError:
                    return 0
            return 1
        assert ask() == 0
        warnings.simplefilter('ignore', DeprecationWarning)
        child = os.fork()
        if not child:
            os._exit(ask())
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    with scripted(slow) as service:
        run = forked.run(code, service.url)
    assert run.returncode == 0, run.stderr
