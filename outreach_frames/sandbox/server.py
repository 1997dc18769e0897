"""The web server: uvicorn in a thread of its own, on a socket that is already bound."""

from __future__ import annotations

import asyncio
import socket
import threading

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from outreach_frames.sandbox.app import TRANSPORT

START_SECONDS = 10
STOP_SECONDS = 5


class _Protocol(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, and the connection within the application's reach."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {TRANSPORT: {"connection": self.transport}}


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
        # What was being answered ends by itself once it sees that its connection is gone.
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)


class ServerThread:
    """An application that is served in the background until it is stopped."""

    def __init__(self, app: ASGIApp, listener: socket.socket) -> None:
        config = uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            # Its warnings are about requests that were no HTTP: nothing for a notebook.
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
        """Start, and return once requests are answered."""
        self._thread.start()
        if not self._server.ready.wait(START_SECONDS):
            raise RuntimeError("The sandbox did not start in time.")

    def stop(self) -> None:
        """Stop, whatever is under way; a second time does nothing."""
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(STOP_SECONDS)
