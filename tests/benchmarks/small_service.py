"""A minimal service of delayed contacts and of sequences, in a separate process.

Run ``python -m tests.benchmarks.small_service LATENCY PAGES``, which prints the address.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

import orjson

from outreach_frames import spec

PER_PAGE = 20
_AFTER = b"?after="


@contextmanager
def small_service(*, latency: float = 0, pages: int = 1) -> Iterator[str]:
    """Serve any contact after `latency` seconds, and pages of sequences; yield the address."""
    command = [sys.executable, "-m", "tests.benchmarks.small_service", str(latency), str(pages)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def sequence_pages(count: int) -> list[bytes]:
    """Make pages of sequences with links to the next page."""
    pages = []
    for page in range(count):
        sequences = [
            {
                "id": f"seq_{page}_{place}",
                "name": f"Sequence {page * PER_PAGE + place}",
                "status": "active",
                "created_at": "2026-01-02T03:04:05Z",
                "updated_at": "2026-02-03T04:05:06Z",
                "created_by_user_id": "user_1",
                "created_by_user_email": "ada@brightforge.example",
            }
            for place in range(PER_PAGE)
        ]
        links = {"next": {"href": f"/sequences?after={page + 1}"}} if page + 1 < count else {}
        pages.append(orjson.dumps({spec.SEQUENCES_KEY: sequences, spec.LINKS_KEY: links}))
    return pages


async def _serve(latency: float, pages: list[bytes]) -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                target = head.split(b" ", 2)[1]
                await asyncio.sleep(latency)
                body = _contact(target) if b"/email/" in target else pages[_number(target)]
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(reply, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def _contact(target: bytes) -> bytes:
    email = unquote(target.rpartition(b"/")[2].decode())
    return orjson.dumps({"id": f"contact-{email}", "email": email, "name": "Ada"})


def _number(target: bytes) -> int:
    return int(target.partition(_AFTER)[2] or 0)


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]), sequence_pages(int(sys.argv[2]))))
