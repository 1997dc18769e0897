"""The sandbox's operations, and the application that serves them.

An operation is a short function from a `Call` and the `Service` to a `Reply`. Around each stand, in
this order: the size of the body (413), the token (401), and the faults. Before all of it `server`
refuses a host that is not this machine (421) and URLs and headers that are too long (414, 431).

What the interface shows of none of the endpoints is chosen plainly here: an unknown id is 404, of
contacts it is left out; contacts come in the account's order, whatever the order of their ids; an
unknown path is 404 and another method 405, both without a look at the token.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from outreach_frames import spec
from outreach_frames.sandbox import add_leads as adding
from outreach_frames.sandbox import home_page, openapi, rules
from outreach_frames.sandbox.account import stamp
from outreach_frames.sandbox.faults import Call, Faults, Reply
from outreach_frames.sandbox.paging import cut_page
from outreach_frames.sandbox.search import PeopleIndex
from outreach_frames.sandbox.store import Row, Store
from outreach_frames.sandbox.submission import read_submission

# The place in a request's scope where the server puts the connection, for faults to break it.
TRANSPORT = "outreach_frames.sandbox.connection"

SEARCH_RESULT_START = b'{"object":"person_search_result","results":['


@dataclass(slots=True)
class Service:
    """What the operations work on."""

    store: Store
    people: PeopleIndex
    api_key: str
    faults: Faults


def _ok(document: object) -> Reply:
    return Reply(200, orjson.dumps(document))


def list_sequences(service: Service, call: Call) -> Reply:
    """GET /sequences: `name` is found anywhere in a sequence's name, an address in either case."""
    query = rules.read_query(call.endpoint, call.query)
    size = rules.read_page_size(query)
    name = query.get("name", "").casefold()
    email = query.get("created_by_user_email", "").lower()

    def keep(row: Mapping[str, Any]) -> bool:
        return (
            name in row["name"].casefold()
            and query.get("status", row["status"]) == row["status"]
            and query.get("created_by_user_id", row["created_by_user_id"])
            == row["created_by_user_id"]
            and email in {"", row["created_by_user_email"].lower()}
        )

    page, links = cut_page(
        service.store.sequences(), keep, path=call.path, query=query, size=size, backwards=False
    )
    shown = [field.name for field in spec.SEQUENCE if field.name != spec.LINKS_KEY]
    sequences = [{field: row[field] for field in shown} for row in page]
    return _ok({spec.SEQUENCES_KEY: sequences, spec.LINKS_KEY: links})


def add_leads(service: Service, call: Call) -> Reply:
    """POST /sequences/{id}/leads: see the modules `submission` and `add_leads`."""
    rules.read_query(call.endpoint, call.query)
    sequence = service.store.sequence(call.path_values["id"])
    if sequence is None:
        raise rules.Refusal(404, "There is no sequence with that id.")
    submission = read_submission(call.body)
    status, document = adding.add_leads(service.store, sequence, submission)
    return Reply(status, orjson.dumps(document))


def get_contacts(service: Service, call: Call) -> Reply:
    """GET /contacts: those of the ids that there are, without their recent activity."""
    found = service.store.contacts(rules.read_contact_ids(call.query))
    for contact in found:
        del contact["recent_activity"]
    return _ok({spec.CONTACTS_KEY: found})


def get_contact_by_email(service: Service, call: Call) -> Reply:
    """GET /contacts/email/{email}: the case of the address makes no difference."""
    rules.read_query(call.endpoint, call.query)
    contact = service.store.contact_of(rules.email_key(call.path_values["email"]))
    if contact is None:
        raise rules.Refusal(404, "There is no contact with that address.")
    return Reply(200, contact)


def search_people(service: Service, call: Call) -> Reply:
    """POST /people/search: a page after the last one is empty."""
    rules.read_query(call.endpoint, call.query)
    filters, page, page_size = rules.read_search(call.body)
    total, people = service.people.search(filters, page=page, page_size=page_size)
    pagination = {
        "page": page,
        "page_size": page_size,
        "total_pages": -(-total // page_size),
        "total": total,
    }
    end = b'],"_pagination":' + orjson.dumps(pagination) + b"}"
    return Reply(200, b"".join((SEARCH_RESULT_START, b",".join(people), end)))


def get_lead_list(service: Service, call: Call) -> Reply:
    """GET /lead-lists/{id}: one page of its leads; the cursor is a lead's id."""
    query = rules.read_query(call.endpoint, call.query)
    size = rules.read_page_size(query)
    found = service.store.lead_list(call.path_values["id"])
    if found is None:
        raise rules.Refusal(404, "There is no lead list with that id.")
    lead_list, leads = found
    page, links = cut_page(leads, lambda _: True, path=call.path, query=query, size=size)
    shown = [orjson.Fragment(lead["document"]) for lead in page]
    return _ok(lead_list | {spec.LEADS_KEY: shown, spec.LINKS_KEY: links})


def list_mailboxes(service: Service, call: Call) -> Reply:
    """GET /mailboxes: `user_email` in either case."""
    query = rules.read_query(call.endpoint, call.query)
    size = rules.read_page_size(query, maximum=spec.MAX_MAILBOX_PAGE_SIZE)
    email = query.get("user_email", "").lower()

    def keep(row: Mapping[str, Any]) -> bool:
        return (
            query.get("status", row["status"]) == row["status"]
            and query.get("email_provider", row["email_provider"]) == row["email_provider"]
            and email in {"", row["user_email"].lower()}
        )

    page, links = cut_page(service.store.mailboxes(), keep, path=call.path, query=query, size=size)
    return _ok({spec.MAILBOXES_KEY: [_mailbox(row) for row in page], spec.LINKS_KEY: links})


def update_mailbox(service: Service, call: Call) -> Reply:
    """PATCH /mailboxes/{id}: the new limit is there with the response."""
    rules.read_query(call.endpoint, call.query)
    limit = rules.read_daily_email_limit(call.body)
    mailbox_id = call.path_values["id"]
    if not service.store.set_daily_email_limit(mailbox_id, limit, stamp(datetime.now(UTC))):
        raise rules.Refusal(404, "There is no mailbox with that id.")
    (row,) = (row for row in service.store.mailboxes() if row["id"] == mailbox_id)
    return _ok(_mailbox(row))


def _mailbox(row: Mapping[str, Any]) -> Row:
    """Make a mailbox as the service shows it."""
    shown = {field.name: row[field.name] for field in spec.MAILBOX if field.name in row}
    user = {field.name: row[f"user_{field.name}"] for field in spec.MAILBOX_USER}
    own = rules.link(spec.UPDATE_MAILBOX.path.format(id=row["id"]), {})
    return shown | {"user": user, spec.LINKS_KEY: {"self": own}}


Run = Callable[[Service, Call], Reply]

OPERATIONS: Mapping[spec.Endpoint, Run] = {
    spec.LIST_SEQUENCES: list_sequences,
    spec.ADD_LEADS: add_leads,
    spec.GET_CONTACTS: get_contacts,
    spec.GET_CONTACT_BY_EMAIL: get_contact_by_email,
    spec.SEARCH_PEOPLE: search_people,
    spec.GET_LEAD_LIST: get_lead_list,
    spec.LIST_MAILBOXES: list_mailboxes,
    spec.UPDATE_MAILBOX: update_mailbox,
}


def make_app(service: Service) -> Starlette:
    """Make the application: every operation under its endpoint's method and path."""
    app = Starlette(
        routes=[
            Route(
                # An address may hold a slash, written %2F, which has become one by now.
                endpoint.path.replace("{email}", "{email:path}"),
                Operation(service, endpoint, run),
                methods=[endpoint.method],
            )
            for endpoint, run in OPERATIONS.items()
        ]
        + [Route(openapi.PATH, _describe), Route(home_page.PATH, partial(_show, service))],
        exception_handlers={HTTPException: _http_error, Exception: _unexpected_error},
    )
    app.router.redirect_slashes = False
    return app


async def _describe(_request: Request) -> Response:
    """Respond with the description of the interface; it needs no token."""
    return Response(openapi.document(), media_type="application/json")


async def _show(service: Service, request: Request) -> Response:
    """Respond with the page for people; it needs no token, and shows none."""
    host, port = request.scope["server"]
    text = home_page.render(service.store, service.faults.in_force(), f"http://{host}:{port}")
    return Response(text, headers=home_page.HEADERS, media_type="text/html")


@dataclass(slots=True)
class Operation:
    """The ASGI application of one endpoint."""

    service: Service
    endpoint: spec.Endpoint
    run: Run

    @property
    def most_bytes(self) -> int:
        """The size of the largest body that is read."""
        adds_leads = self.endpoint is spec.ADD_LEADS
        return rules.MAX_LEADS_BODY_BYTES if adds_leads else rules.MAX_BODY_BYTES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        request = Request(scope, receive)
        try:
            body = await _read_body(request, self.most_bytes)
        except ClientDisconnect:
            return
        except rules.Refusal as refusal:
            reply = _refusal(refusal)
        else:
            reply = self._reply(request, body)
        await _deliver(reply, scope, receive, send)

    def _reply(self, request: Request, body: bytes) -> Reply:
        if not self._is_authorized(request.headers.get(spec.AUTHORIZATION_HEADER, "")):
            refused = _refusal(rules.Refusal(401, "The token is missing or wrong."))
            return refused.with_header("WWW-Authenticate", spec.AUTHORIZATION_SCHEME)
        call = Call(
            self.endpoint,
            request.scope["path"],
            request.path_params,
            tuple(request.query_params.multi_items()),
            body,
        )
        return self.service.faults.around(call, self._handle)(call)

    def _is_authorized(self, header: str) -> bool:
        scheme, _, token = header.partition(" ")
        right = secrets.compare_digest(token.strip().encode(), self.service.api_key.encode())
        return right and scheme.lower() == spec.AUTHORIZATION_SCHEME.lower()

    def _handle(self, call: Call) -> Reply:
        with self.service.store.lock:
            try:
                return self.run(self.service, call)
            except rules.Refusal as refusal:
                return _refusal(refusal)


async def _read_body(request: Request, most: int) -> bytes:
    """Read a body, and stop as soon as it is too large."""
    parts: list[bytes] = []
    size = int(request.headers.get("content-length", 0))
    if size <= most:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                break
            parts.append(part)
    if size > most:
        raise rules.Refusal(413, f"A body has at most {most:,} bytes here.")
    return b"".join(parts)


def _refusal(refusal: rules.Refusal) -> Reply:
    return Reply(refusal.status, rules.error_body(refusal.status, refusal.message))


async def _http_error(_request: Request, error: Exception) -> Response:
    """Respond to what the router refuses: an unknown path, or another method."""
    assert isinstance(error, HTTPException)
    body = rules.error_body(error.status_code, error.detail)
    return Response(body, error.status_code, error.headers, media_type="application/json")


async def _unexpected_error(_request: Request, _error: Exception) -> Response:
    """Respond where the sandbox itself is wrong; the server logs the error."""
    body = rules.error_body(500, "Something went wrong in the sandbox.")
    return Response(body, 500, media_type="application/json")


async def _deliver(reply: Reply, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a response the way that it says."""
    transport: asyncio.Transport = scope["extensions"][TRANSPORT]["connection"]
    if reply.delivery == "dropped":
        transport.abort()
        await _until_disconnected(receive)
        return
    missing = 1 + len(reply.body) // 10 if reply.delivery == "short" else 0
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(reply.body) + missing).encode()),
        *((name.lower().encode(), value.encode("latin-1")) for name, value in reply.headers),
    ]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    body = reply.body
    if reply.delivery == "slow":
        while body and not transport.is_closing():
            await send({"type": "http.response.body", "body": body[:1], "more_body": True})
            body = body[1:]
            await _pause(reply.delay, receive)
    await send({"type": "http.response.body", "body": body, "more_body": missing > 0})
    if missing:
        transport.close()
        await _until_disconnected(receive)


async def _pause(seconds: float, receive: Receive) -> None:
    """Wait for some time, or until the other side is gone."""
    with suppress(TimeoutError):
        await asyncio.wait_for(_until_disconnected(receive), seconds)


async def _until_disconnected(receive: Receive) -> None:
    """Wait until the server knows that the connection is gone, so that it adds nothing."""
    while (await receive())["type"] != "http.disconnect":
        pass
