"""The web application that serves the sandbox's operations.

Checks run in this order: host (400), token (401), body size (413), faults. Choices where the
interface document is silent: an unknown path is 404 and a wrong method 405, both without a token
check.
`/openapi.json`, the interface for other tools, needs no token either.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from outreach_frames import spec
from outreach_frames.sandbox import rules
from outreach_frames.sandbox.faults import Call, Reply
from outreach_frames.sandbox.operations import Service, error_reply, respond

# Key of the connection in a request's scope, for faults that break the connection.
TRANSPORT = "outreach_frames.sandbox.connection"
_HOSTS = ("127.0.0.1", "localhost")
_OPENAPI = Path(__file__).with_name("data") / "openapi.json"


def make_app(service: Service) -> Starlette:
    """Build the application, with one route per operation."""
    app = Starlette(
        routes=[
            Route(
                # An email may contain a slash, sent as %2F and already decoded here.
                endpoint.path.replace("{email}", "{email:path}"),
                partial(_handle, service, endpoint),
                methods=[endpoint.method],
            )
            for endpoint in spec.ENDPOINTS
        ]
        + [Route("/openapi.json", _openapi)],
        # DNS rebinding would send requests for other hosts.
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS, www_redirect=False)],
        exception_handlers={HTTPException: _routing_error, ClientDisconnect: _disconnected},
    )
    app.router.redirect_slashes = False
    return app


async def _openapi(_request: Request) -> Response:
    return Response(_OPENAPI.read_bytes(), media_type="application/json")


async def _handle(service: Service, endpoint: spec.Endpoint, request: Request) -> ASGIApp:
    """Handle one request of an operation."""
    if not _is_authorized(service, request.headers.get(spec.AUTHORIZATION_HEADER, "")):
        reply = error_reply(rules.Refusal(401, "The token is missing or wrong."))
        return partial(_deliver, reply.with_header("WWW-Authenticate", spec.AUTHORIZATION_SCHEME))
    query, body = tuple(request.query_params.multi_items()), await request.body()
    if len(body) > rules.MAX_BODY_BYTES:
        message = f"The body is too large. Send at most {rules.MAX_BODY_BYTES:,} bytes."
        return partial(_deliver, error_reply(rules.Refusal(413, message)))
    call = Call(endpoint, request.path_params, query, body)
    return partial(_deliver, service.faults.respond(call, partial(respond, service)))


def _is_authorized(service: Service, header: str) -> bool:
    scheme, _, token = header.partition(" ")
    right = secrets.compare_digest(token.strip().encode(), service.api_key.encode())
    return right and scheme.lower() == spec.AUTHORIZATION_SCHEME.lower()


async def _disconnected(_request: Request, _error: Exception) -> Response:
    return Response()  # nobody receives it


async def _routing_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    body = rules.error_body(error.status_code, error.detail)
    return Response(body, error.status_code, error.headers, media_type="application/json")


async def _deliver(reply: Reply, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a response, whole or broken as `reply.delivery` specifies."""
    transport: asyncio.Transport = scope["extensions"][TRANSPORT]["connection"]
    if reply.delivery == "dropped":
        transport.abort()
        await _until_disconnected(receive)
        return
    missing = 1 + len(reply.body) // 10 if reply.delivery == "short" else 0
    headers = [
        (b"content-type", reply.media_type.encode()),
        (b"content-length", str(len(reply.body) + missing).encode()),
        *((name.lower().encode(), value.encode("latin-1")) for name, value in reply.headers),
    ]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    body = reply.body
    if reply.delivery == "slow":
        while body and not transport.is_closing():
            await send({"type": "http.response.body", "body": body[:1], "more_body": True})
            body = body[1:]
            with suppress(TimeoutError):
                await asyncio.wait_for(_until_disconnected(receive), reply.delay)
    await send({"type": "http.response.body", "body": body, "more_body": missing > 0})
    if missing:
        transport.close()
        await _until_disconnected(receive)


async def _until_disconnected(receive: Receive) -> None:
    """Wait until the server has noticed the disconnect, so that it sends nothing more."""
    while (await receive())["type"] != "http.disconnect":
        pass
