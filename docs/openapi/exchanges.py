"""An example request per operation, and its response in a small world."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, time
from typing import Any

import orjson

from outreach_frames import spec
from outreach_frames.sandbox.examples import requests
from outreach_frames.sandbox.faults import Call, Faults
from outreach_frames.sandbox.operations import Service, respond
from outreach_frames.sandbox.records import make_world
from outreach_frames.sandbox.search import PeopleIndex
from outreach_frames.sandbox.store import World, open_store
from outreach_frames.sandbox.world import TODAY

# The search among the examples finds one person in this world.
_PEOPLE, _SEED = 20, 9


def exchanges() -> dict[spec.Endpoint, tuple[Call, Any]]:
    """Return an example request per operation and its response from a small world.

    >>> call, response = exchanges()[spec.GET_CONTACT_BY_EMAIL]
    >>> call.path_values["email"] == response["email"]
    True
    """
    noon = datetime.combine(TODAY, time(12), UTC)
    with closing(open_store(None, World(_PEOPLE, _SEED, make_world))) as store:
        service = Service(
            store, PeopleIndex(store.connection), "", Faults.activate(None, seed=0), lambda: noon
        )
        return {
            endpoint: (call, orjson.loads(respond(service, call).body))
            for endpoint, call in requests(store).items()
        }
