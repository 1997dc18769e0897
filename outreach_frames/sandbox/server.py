"""The web server: uvicorn in its own thread, on a bound socket."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from itertools import chain

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from outreach_frames import spec
from outreach_frames.sandbox.app import TRANSPORT

START_SECONDS = 10
STOP_SECONDS = 5

# Turns of the event loop, enough to finish accepting connections.
_TURNS = 5


class _Protocol(HttpToolsProtocol):
    """Uvicorn's HTTP protocol; passes the connection to the application."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {TRANSPORT: {"connection": self.transport}}


class ServerThread(uvicorn.Server):
    """A uvicorn server in a background thread, which aborts connections when it stops."""

    def __init__(self, app: ASGIApp, listener: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_Protocol,
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                # Hide warnings about requests that are not HTTP, which would clutter a notebook.
                log_level="error",
                access_log=False,
                server_header=False,
                headers=[(spec.SERVER_HEADER, spec.SANDBOX_SERVER)],
                proxy_headers=False,
                timeout_keep_alive=60,
            )
        )
        self._ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve_until_stopped(listener)),
            name="outreach-sandbox",
            daemon=True,
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Signal that the server is ready."""
        await super().startup(sockets)
        self._ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Abort all connections."""
        # Close the listeners last: closing loses the connections that are being accepted.
        for listener in chain.from_iterable(server.sockets for server in self.servers):
            with suppress(NotImplementedError):  # Windows
                asyncio.get_running_loop().remove_reader(listener.fileno())
        for _ in range(_TURNS):
            await asyncio.sleep(0)
            for connection in list(self.server_state.connections):
                connection.transport.abort()
        for opened in (*self.servers, *(sockets or ())):
            opened.close()

    async def _serve_until_stopped(self, listener: socket.socket) -> None:
        await self.serve([listener])
        # Running requests end once they notice the disconnect.
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)

    def start(self) -> None:
        """Start the thread, and return once the server accepts requests."""
        self._thread.start()
        if not self._ready.wait(START_SECONDS):
            raise RuntimeError(f"The sandbox did not start in {START_SECONDS} seconds. Try again.")

    def stop(self) -> None:
        """Abort running requests and stop; repeated calls do nothing."""
        self.should_exit = True
        self._thread.join(STOP_SECONDS)
