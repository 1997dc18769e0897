"""The behaviour of the scripted service that other tests rely on."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest

from tests.scripted import Service, respond, scripted

HEAD = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"


def send(service: Service, data: bytes) -> bytes:
    """Send bytes on a new connection, and return the response's first line."""
    parts = urlsplit(service.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return connection.makefile("rb").readline().strip()


@pytest.mark.parametrize("sent", range(5))
def test_an_incomplete_request_is_not_recorded(sent: int) -> None:
    """An incomplete request is not recorded and uses no reply."""
    with scripted([respond(b"1")]) as service:
        assert send(service, HEAD + b"whole"[:sent]) == b""
        assert send(service, HEAD + b"whole") == b"HTTP/1.1 200 OK"
    assert [request.body for request in service.requests] == [b"whole"]
