"""A loopback service that sends scripted replies, including those of broken services.

>>> with scripted([reset(), json({"sequences": []})]) as service:
...     with Client(service.url, "token", cache=None, backoff=0) as client:
...         page = client._session.read(spec.LIST_SEQUENCES)
>>> service.targets
['/sequences', '/sequences']
"""

from __future__ import annotations

import gzip
import http.server
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from email.message import Message
from http import HTTPStatus
from http.client import HTTPConnection
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from outreach_frames import spec

# Longer than the time limit of tests, so that no successful test has waited for it.
FOREVER = 10_000.0

Script = Iterable["Reply | Callable[[Received], Reply]"] | Callable[["Received"], "Reply"]


@dataclass(frozen=True)
class Received:
    """One received request; `headers` ignores case."""

    method: str
    target: str
    headers: Message
    body: bytes
    connection: int

    @property
    def path(self) -> str:
        """Return the target without its query."""
        return self.target.partition("?")[0]

    @property
    def json(self) -> Any:
        """Return the body as JSON."""
        return msgspec.json.decode(self.body)


@dataclass(frozen=True)
class Reply:
    """Bytes and pauses (seconds) in the order of sending, and how the connection ends."""

    parts: tuple[bytes | float, ...] = ()
    then: Literal["keep", "close", "reset"] = "keep"


def as_sandbox(reply: Callable[[Received], Reply]) -> Callable[[Received], Reply]:
    """Let a script name itself as the sandbox does, whose filter values are known."""

    def named(request: Received) -> Reply:
        first, *rest = reply(request).parts
        assert isinstance(first, bytes)
        status, _, others = first.partition(b"\r\n")
        header = f"{spec.SERVER_HEADER}: {spec.SANDBOX_SERVER}".encode()
        return Reply((b"\r\n".join((status, header, others)), *rest))

    return named


def respond(
    body: bytes = b"", status: int = 200, headers: Mapping[str, str] | None = None
) -> Reply:
    """Reply with any body; a header of "" is not sent."""
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    fields |= headers or {}
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Unknown"
    lines = [f"HTTP/1.1 {status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in fields.items() if value]
    return Reply(("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n", body))


def json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Reply with a value as JSON."""
    return respond(msgspec.json.encode(value), status, headers)


def gzipped(body: bytes) -> Reply:
    """Reply with a compressed body."""
    return respond(gzip.compress(body), headers={"Content-Encoding": "gzip"})


def passed_on(received: Received, url: str) -> Reply:
    """Reply with the response of another service at `url`."""
    target = urlsplit(url)
    with closing(HTTPConnection(target.hostname or "", target.port, timeout=20)) as connection:
        connection.request(received.method, received.target, received.body, dict(received.headers))
        response = connection.getresponse()
        wait = response.getheader("Retry-After", "")
        return respond(response.read(), response.status, {"Retry-After": wait})


def raw(data: bytes) -> Reply:
    """Send these bytes, including the status line, and close the connection."""
    return Reply((data,), "close")


def reset() -> Reply:
    """Reset the connection without a response."""
    return Reply((), "reset")


def hang_up() -> Reply:
    """Close the connection without a response."""
    return Reply((), "close")


def delayed(seconds: float, reply: Reply) -> Reply:
    """Wait before a reply."""
    return replace(reply, parts=(seconds, *reply.parts))


def truncated(reply: Reply, missing: int = 5) -> Reply:
    """Close the connection before the reply's last bytes."""
    return Reply((_whole(reply)[:-missing],), "close")


def drip(reply: Reply, every: float = 0.05, fast: int | None = None) -> Reply:
    """Send the body byte by byte; with `fast`, send that many bytes at once first."""
    whole = _whole(reply)
    start = whole.index(b"\r\n\r\n") + 4 if fast is None else fast
    slow = [part for byte in whole[start:] for part in (every, bytes([byte]))]
    return Reply((whole[:start], *slow), reply.then)


def _whole(reply: Reply) -> bytes:
    return b"".join(part for part in reply.parts if isinstance(part, bytes))


@dataclass
class Service:
    """A running service: its address, complete requests and open connections."""

    url: str
    requests: list[Received] = field(default_factory=list)
    open_sockets: set[socket.socket] = field(default_factory=set)

    @property
    def targets(self) -> list[str]:
        """Return paths and queries in the order of arrival."""
        return [request.target for request in self.requests]


@contextmanager
def scripted(script: Script, *, base_path: str = "") -> Iterator[Service]:
    """Serve replies in order, or those that a function returns, on a free port.

    Requests after the script's end get status 418; incomplete requests are not recorded.
    `base_path` is only appended to `Service.url`.
    """
    turns = iter(()) if callable(script) else iter(script)
    lock, stopped = threading.Lock(), threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def finish(self) -> None:
            with lock:
                service.open_sockets.discard(self.request)
            with suppress(OSError):
                super().finish()

        def handle(self) -> None:
            with suppress(OSError):
                super().handle()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            pass

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            if len(body) < length:  # the client sent an incomplete request
                self.close_connection = True
                return
            received = Received(self.command, self.path, self.headers, body, id(self.request))
            with lock:
                service.requests.append(received)
                turn = script if callable(script) else next(turns, _END)
            self.send(turn(received) if callable(turn) else turn)

        do_POST = do_PATCH = do_CONNECT = do_GET  # noqa: N815 - the base's names

        def send(self, reply: Reply) -> None:
            for part in reply.parts:
                if isinstance(part, bytes):
                    self.wfile.write(part)
                elif stopped.wait(part):
                    break
            self.close_connection = reply.then != "keep"
            if reply.then == "reset":
                linger_for_nothing = struct.pack("ii", 1, 0)
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_for_nothing)
                self.rfile.close()
                self.request.close()

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = False
        request_queue_size = 128

        def process_request(self, request: Any, client_address: Any) -> None:
            with lock:
                service.open_sockets.add(request)
            super().process_request(request, client_address)

    with Server(("127.0.0.1", 0), Handler) as server:
        service = Service(f"http://127.0.0.1:{server.server_port}{base_path}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
        thread.start()
        try:
            yield service
        finally:
            stopped.set()
            server.shutdown()
            thread.join()
            with lock:
                remaining = list(service.open_sockets)
            for connection in remaining:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


_END = json({"error": "the script has no more replies"}, status=418)
