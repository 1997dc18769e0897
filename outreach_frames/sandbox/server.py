"""The web server: uvicorn in a thread of its own, on a socket that is already bound."""

from __future__ import annotations

import asyncio
import socket
import threading
from urllib.parse import urlsplit

import uvicorn
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from outreach_frames.sandbox.app import TRANSPORT
from outreach_frames.sandbox.rules import error_body

START_SECONDS = 10
STOP_SECONDS = 5

MAX_URL_BYTES = 16_384
MAX_HEADER_BYTES = 65_536
HOSTS = frozenset({"127.0.0.1", "localhost"})


class _Protocol(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, with the connection in the application's reach and a limit."""

    _reads_headers = False
    _header_bytes = 0

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {TRANSPORT: {"connection": self.transport}}
        self._reads_headers, self._header_bytes = True, 0

    def on_headers_complete(self) -> None:
        self._reads_headers = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Take some bytes, and break off headers that do not end; `_guarded` sees those that do."""
        still_headers = self._reads_headers
        super().data_received(data)
        if still_headers and self._reads_headers:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                self.transport.write(b"HTTP/1.1 431 \r\nconnection: close\r\n\r\n")
                self.transport.close()


class _Server(uvicorn.Server):
    """A server that says when it is ready, and leaves no connection open."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # First of all: from Python 3.12 on a server waits for its connections to end.
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await super().shutdown(sockets)

    async def run_until_stopped(self, listener: socket.socket) -> None:
        await self.serve([listener])
        # A request being handled ends by itself once it sees that its connection is gone.
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)


def _guard(app: ASGIApp) -> ASGIApp:
    """Let an application take only requests of a usual size that were meant for this machine.

    A page of another site, whose name somebody let point at 127.0.0.1, asks with that name as host.
    """

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        refused = _rejection(scope)
        if refused is None:
            await app(scope, receive, send)
            return
        status, message = refused
        body = error_body(status, message)
        response = Response(body, status, {"Connection": "close"}, media_type="application/json")
        await response(scope, receive, send)

    return guarded


def _rejection(scope: Scope) -> tuple[int, str] | None:
    """Return a status and what to say of a request that is not for the application."""
    try:
        host = urlsplit(f"//{Headers(scope=scope).get('host', '')}").hostname
    except ValueError:
        host = None
    if host not in HOSTS:
        return 421, "The sandbox is for this machine: ask it as 127.0.0.1 or localhost."
    if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_URL_BYTES:
        return 414, f"A URL has at most {MAX_URL_BYTES:,} bytes here."
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
        return 431, f"The headers have at most {MAX_HEADER_BYTES:,} bytes here."
    return None


class ServerThread:
    """An application that is served in the background until it is stopped."""

    def __init__(self, app: ASGIApp, listener: socket.socket) -> None:
        config = uvicorn.Config(
            _guard(app),
            http=_Protocol,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            # Its warnings are about requests that were not HTTP: nothing for a notebook.
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=60,
        )
        self._server = _Server(config)
        self._listener = listener
        self._thread = threading.Thread(target=self._run, name="outreach-sandbox", daemon=True)

    def _run(self) -> None:
        asyncio.run(self._server.run_until_stopped(self._listener))

    def start(self) -> None:
        """Start, and return once requests are served."""
        self._thread.start()
        if not self._server.ready.wait(START_SECONDS):
            raise RuntimeError("The sandbox did not start in time.")

    def stop(self) -> None:
        """Stop, whatever is under way; a second time does nothing."""
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(STOP_SECONDS)
