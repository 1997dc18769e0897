"""The web server: uvicorn in its own thread, on a bound socket."""

from __future__ import annotations

import asyncio
import itertools
import re
import socket
import threading
from contextlib import suppress
from itertools import chain

import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from outreach_frames.sandbox.app import TRANSPORT
from outreach_frames.sandbox.rules import error_body

START_SECONDS = 10
STOP_SECONDS = 5

MAX_URL_BYTES = 16_384
MAX_HEADER_BYTES = 65_536
# Turns of the event loop, enough to finish accepting connections.
_TURNS = 5
_HOST = re.compile(rb"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?", re.IGNORECASE)


class _Protocol(HttpToolsProtocol):
    """Uvicorn's HTTP protocol with a header limit; passes the connection to the application."""

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
        """Receive bytes; reject headers as soon as they exceed the limit."""
        still_headers = self._reads_headers
        super().data_received(data)
        if still_headers and self._reads_headers:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                self.transport.write(b"HTTP/1.1 431 \r\nconnection: close\r\n\r\n")
                self.transport.close()


class _Server(uvicorn.Server):
    """A uvicorn server that signals when it is ready, and stops without delay."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self._stop = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self.ready.set()

    async def main_loop(self) -> None:
        ticks = itertools.count()
        while not await self.on_tick(next(ticks)):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), 0.1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Close the listeners last: closing loses the connections that are being accepted.
        for listener in chain.from_iterable(server.sockets for server in self.servers):
            with suppress(NotImplementedError):  # Windows
                self._loop.remove_reader(listener.fileno())
        for _ in range(_TURNS):
            await asyncio.sleep(0)
            for connection in list(self.server_state.connections):
                connection.transport.abort()
        for opened in (*self.servers, *(sockets or ())):
            opened.close()

    async def run_until_stopped(self, listener: socket.socket) -> None:
        await self.serve([listener])
        # Running requests end once they notice the disconnect.
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)

    def stop(self) -> None:
        """Stop, from any thread; repeated calls do nothing."""
        self.should_exit = True
        with suppress(RuntimeError):  # a closed loop has stopped
            self._loop.call_soon_threadsafe(self._stop.set)


def _guard(app: ASGIApp) -> ASGIApp:
    """Reject oversized requests, and requests for other hosts, which DNS rebinding would send."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        rejection = _rejection(scope)
        if rejection is None:
            await app(scope, receive, send)
            return
        status, message = rejection
        body = error_body(status, message)
        response = Response(body, status, {"Connection": "close"}, media_type="application/json")
        await response(scope, receive, send)

    return guarded


def _rejection(scope: Scope) -> tuple[int, str] | None:
    """Return the status and message to reject a request with, or None to accept it."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
        return 421, "The sandbox serves this machine only. Send requests to 127.0.0.1 or localhost."
    if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_URL_BYTES:
        return 414, f"The URL is too long. Send at most {MAX_URL_BYTES:,} bytes."
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
        return 431, f"The headers are too long. Send at most {MAX_HEADER_BYTES:,} bytes."
    return None


class ServerThread:
    """A server for an application, in a background thread."""

    def __init__(self, app: ASGIApp, listener: socket.socket) -> None:
        config = uvicorn.Config(
            _guard(app),
            http=_Protocol,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            # Hide warnings about requests that are not HTTP, which would clutter a notebook.
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
        """Start the thread, and return once the server accepts requests."""
        self._thread.start()
        if not self._server.ready.wait(START_SECONDS):
            raise RuntimeError(f"The sandbox did not start in {START_SECONDS} seconds. Try again.")

    def stop(self) -> None:
        """Abort running requests and stop; repeated calls do nothing."""
        self._server.stop()
        self._thread.join(STOP_SECONDS)
