"""The sandbox's process: starting and stopping."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest
import requests

from outreach_frames.sandbox import Fault, serve
from tests.sandbox.http import Api, connect, head

pytestmark = pytest.mark.long


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a new interpreter that shows all warnings."""
    # In Python's development mode, asyncio logs whatever a busy machine delays.
    command = [sys.executable, "-W", "always", "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


class TestStarting:
    """`serve` and its errors."""

    def test_a_new_sandbox_is_private(self) -> None:
        """Each start has a new token, which its repr hides, and listens only on loopback."""
        with serve(people=20) as one, serve(people=20) as other, connect(one) as connection:
            assert one.api_key != other.api_key
            assert min(len(one.api_key), len(other.api_key)) >= 24
            assert one.url in repr(one)
            assert one.api_key not in repr(one)
            assert connection.getpeername()[0] == "127.0.0.1"
            assert one.url == f"http://127.0.0.1:{connection.getpeername()[1]}"

    def test_taken_port(self) -> None:
        """A port in use is an OSError with advice; the port can be used again after the stop."""
        with serve(people=20) as sandbox:
            port = int(sandbox.url.rpartition(":")[2])
            with pytest.raises(OSError, match=f"port {port} .*port=0"), connect(sandbox):
                serve(port=port, people=20)
        with serve(port=port, people=20) as sandbox:
            assert sandbox.url.endswith(f":{port}")

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"port": -1}, OSError, "port -1 "),
            ({"port": 65_536}, OSError, "port 65536 "),
            ({"people": 0}, ValueError, "people must be at least 1"),
            ({"seed": 2**63}, ValueError, "64 bits"),
            *(
                ({"api_key": key}, ValueError, r"^[^$]*Use letters, digits and - \. _ ~ \+ / =\.$")
                for key in ("", " ", "a b", "key\n", "schlüssel", "'; ls", "$HOME")
            ),
        ],
        ids=repr,
    )
    def test_invalid_arguments(
        self, options: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        """An invalid port, world or token is an error, which does not show the token."""
        with pytest.raises(error, match=message):
            serve(**{"people": 20, **options})

    def test_two_at_once(self) -> None:
        """Two sandboxes in one process are independent, even with the same world."""
        lead = [{"email": "a@b.example"}]
        with serve(people=20) as one, serve(people=20) as other, Api(one) as api:
            sequence_id = one.sequence_ids["accepts_any"]
            api.add(sequence_id, lead)
            assert len(one.leads(sequence_id)) == 1
            assert other.leads(other.sequence_ids["accepts_any"]) == []
            with serve(people=20) as later:
                assert later.leads(sequence_id) == []


class TestStopping:
    """`stop`, `with` blocks, and the interpreter's exit."""

    def test_with_open_connections(self) -> None:
        """Idle connections, partial requests and partial responses do not delay stopping."""
        before = set(threading.enumerate())
        with serve(people=20, faults=[Fault("slow_body", times=1, delay=60)]) as sandbox:
            slow, half, idle = connect(sandbox), connect(sandbox), connect(sandbox)
            with slow, half, idle:
                slow.sendall(head(sandbox, "GET", "/mailboxes"))
                assert slow.recv(65_536).startswith(b"HTTP/1.1 200 ")
                half.sendall(head(sandbox, "POST", "/people/search", "Content-Length: 10") + b"{")
                idle.sendall(head(sandbox, "GET", "/mailboxes"))
                assert idle.recv(65_536).startswith(b"HTTP/1.1 200 ")
                sandbox.stop()
                for connection in (slow, half, idle):
                    with pytest.raises(ConnectionError):
                        self.read_to_the_end(connection)
        assert set(threading.enumerate()) <= before

    def read_to_the_end(self, connection: socket.socket) -> None:
        """Read until the other side closes or resets the connection."""
        while connection.recv(65_536):
            pass
        raise ConnectionResetError

    def test_twice(self) -> None:
        """A second stop does nothing, and leads can no longer be read."""
        sandbox = serve(people=20)
        sandbox.stop()
        sandbox.stop()
        with pytest.raises(requests.ConnectionError), Api(sandbox) as api:
            api.get("/mailboxes")
        with pytest.raises(RuntimeError, match="stopped"):
            sandbox.leads("any")

    def test_an_interpreter(self) -> None:
        """Importing loads no web server, nothing is logged, and the interpreter's exit stops it."""
        done = run(
            """
            import socket
            import sys
            from outreach_frames.sandbox import Fault, serve
            print({"starlette", "uvicorn", "asyncio"} & set(sys.modules))
            with serve(people=20, faults=[Fault("slow_body", delay=60)]) as sandbox:
                host, _, port = sandbox.url.removeprefix("http://").partition(":")
                with socket.create_connection((host, int(port))) as connection:
                    connection.sendall(b"\\x16\\x03\\x01\\r\\n\\r\\n")
                    print(connection.recv(12).decode())
                connection = socket.create_connection((host, int(port)))
                request = f"GET /mailboxes HTTP/1.1\\r\\nAuthorization: Bearer {sandbox.api_key}"
                more = b"\\r\\nHost: 127.0.0.1\\r\\nUpgrade: h2c\\r\\nConnection: Upgrade"
                connection.sendall(request.encode() + more + b"\\r\\n\\r\\n")
                print(connection.recv(12).decode())
            connection.close()
            sandbox = serve(people=20)
            host, _, port = sandbox.url.removeprefix("http://").partition(":")
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(b"GET /mailboxes HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n")
                print(connection.recv(12).decode())
            """
        )
        assert done.stdout == "set()\nHTTP/1.1 400\nHTTP/1.1 200\nHTTP/1.1 401\n"
        assert (done.stderr, done.returncode) == ("", 0)
