"""A service that fails at random and adds each lead unless its text was added before."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests import scripted as script
from tests.leads.histories.oracle import ALREADY, Oracle, Sent
from tests.leads.histories.story import OVERRIDES, Story, email_of, url_of
from tests.leads.sending.lead_service import refused
from tests.scripted import Received, Reply

_STATUS = {"400": "rejected", "413": "rejected", "422": "rejected", "422 stop": "rejected"}
# A Retry-After in seconds that exceeds each client's `max_wait`.
_LONG = "10000"


class LeadService:
    """Accepts leads, and shows each request to the oracle before it replies."""

    def __init__(self, story: Story, oracle: Oracle) -> None:
        self.story, self.oracle = story, oracle
        self.committed = set(story.there)
        self.fates: Iterator[str] = iter(())
        self.kill: Callable[[], None] = lambda: None
        # Called during each request, once the leads have been received.
        self.watch: Callable[[], None] = lambda: None

    def __call__(self, received: Received) -> Reply:
        """Reply to a request."""
        if received.method == "GET":
            return script.json({"sequences": [{"id": "s1", "status": "active"}], "_links": {}})
        leads = []
        for lead in received.json["leads"]:
            texts = lead.get("email"), lead.get("profnet_url")
            carries = frozenset(name for name, value in lead.get("overrides", {}).items() if value)
            pair = email_of(texts[0]), url_of(texts[1])
            note = lead.get("data", {}).get("note")
            leads.append(Sent(self.oracle.number, texts, pair, carries, note=note))
        self.oracle.receive(leads)
        self.watch()
        fate = next(self.fates, "")
        self.oracle.is_clean &= fate == ""
        return self._reply(fate, leads)

    def _reply(self, fate: str, leads: list[Sent]) -> Reply:
        if fate[:3].isdigit() and fate not in ("408", "409", "499", "500", "503"):
            for lead in leads:
                lead.known = _STATUS.get(fate, "not_sent")
            return _refusal(fate)
        if fate in ("", *_AFTER) and self.story.needs_email and not all(x.texts[0] for x in leads):
            self.oracle.is_clean = False
            for lead in leads:
                lead.known = "rejected"
            return refused("missing_lead_field")
        if fate in ("", *_AFTER):
            reply = self._add(leads, is_received=fate == "")
            if fate == "+kill":
                self.kill()
            return _AFTER[fate](reply) if fate else reply
        if fate == "kill":
            self.kill()
        return _LOST.get(fate) or script.json({"error": "oops"}, int(fate))

    def _add(self, leads: list[Sent], *, is_received: bool) -> Reply:
        """Add or skip each lead; `is_received`: the client receives the reply."""
        result: dict[str, object] = {"total": len(leads)}
        added = 0
        for lead in leads:
            status = self._status(lead)
            lead.committed = status in ("added", ALREADY)
            if is_received:
                lead.known = status
            if status == "added":
                self.committed.add(lead.texts)
                added += 1
                continue
            skipped = result.setdefault(f"{status}_and_skipped", [])
            assert isinstance(skipped, list)
            skipped.append({"email": lead.texts[0], "profnet_url": lead.texts[1]})
        return script.json({**result, "total_added_to_sequence": added})

    def _status(self, lead: Sent) -> str:
        if lead.texts in self.committed:
            return ALREADY
        for key, status in self.story.skips:
            if key in lead.pair and OVERRIDES.get(status) not in lead.carries:
                return status
        return "added"


_LOST = {"reset": script.reset(), "hang up": script.hang_up(), "kill": script.reset()}
_AFTER: dict[str, Callable[[Reply], Reply]] = {
    "+reset": lambda _: script.reset(),
    "+hang up": lambda _: script.hang_up(),
    "+kill": lambda _: script.reset(),
    "+cut off": script.truncated,
    "+500": lambda _: script.json({"error": "oops"}, 500),
    "+garbage": lambda _: script.json({"status": "fine"}),
    "+miscount": lambda _: script.json({"total": 1, "total_added_to_sequence": 7}),
}


def _refusal(fate: str) -> Reply:
    """Reply with an error after which certainly no lead was added."""
    status, _, more = fate.partition(" ")
    wait = {"stop": _LONG, "wait": "0"}.get(more, "")
    if status == "422":
        return refused("max_leads_threshold_reached" if more else "brand_new")
    if status == "429":
        wait = wait or "0"
    return script.json({"error": "no"}, int(status), {"Retry-After": wait})
