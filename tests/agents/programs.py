"""An agent's program, which starts `outreach-frames mcp`, and a person's terminal."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from outreach_frames.cli import main
from tests import forked

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal
    from mcp import Client
    from mcp.types import CallToolResult

# Longer than any process on a busy machine, in seconds.
PATIENCE = 120.0


class Agent:
    """An agent's program: the official client, connected to the server by its streams."""

    def __init__(self, folder: Path, client: Client, portal: BlockingPortal, log: Path) -> None:
        self.folder, self.client, self.portal, self.log = folder, client, portal, log

    def call(self, name: str, /, **arguments: Any) -> CallToolResult:
        """Call a tool and return its result, an error or not."""
        return self.portal.call(self.client.call_tool, name, arguments)

    def reply(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its reply."""
        result = self.call(name, **arguments)
        assert not result.is_error, result.content
        reply: dict[str, Any] = result.structured_content
        return reply

    def error(self, name: str, /, **arguments: Any) -> str:
        """Call a tool and return its error."""
        result = self.call(name, **arguments)
        assert result.is_error, result.content
        return text_of(result)


def text_of(result: CallToolResult) -> str:
    """Return the text of a result."""
    (content,) = result.content
    assert content.type == "text"
    return content.text


@contextmanager
def agent(folder: Path, *options: object, env: Mapping[str, str]) -> Iterator[Agent]:
    """Start the server and connect to it, with the environment's own cache and data folders."""
    # Most processes that run tests start no agent, and the library is slow to import.
    from anyio.from_thread import start_blocking_portal
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command = ["-m", "outreach_frames", "mcp", "--folder", str(folder), *map(str, options)]
    server = StdioServerParameters(command=sys.executable, args=command, env={**os.environ, **env})
    log = folder.with_name(f"{folder.name}.log")
    with log.open("w") as errors, start_blocking_portal() as portal:
        client = Client(stdio_client(server, errors))
        with portal.wrap_async_context_manager(client):
            yield Agent(folder, client, portal, log)


class Terminal:
    """A terminal in which a person runs a command of the package."""

    def __init__(self, *arguments: object, env: Mapping[str, str]) -> None:
        self._screen, inside = pty.openpty()
        self.process = forked.start_command(
            *arguments,
            stdin=inside,
            stdout=inside,
            stderr=inside,
            env={**os.environ, "COLUMNS": "400", **env},
        )
        os.close(inside)
        self.shown = ""

    def read_until(self, words: str) -> Self:
        """Wait until the terminal shows these words."""
        end = time.monotonic() + PATIENCE
        while words not in self.shown and time.monotonic() < end and self._read():
            pass
        assert words in self.shown, self.shown
        return self

    def type(self, line: str) -> Self:
        """Type a line."""
        os.write(self._screen, f"{line}\n".encode())
        return self

    def kill(self) -> None:
        """Kill the process, as a power failure does."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def end(self) -> int:
        """Wait for the end of the command and return its exit code."""
        while self._read():
            pass
        os.close(self._screen)
        return self.process.wait(PATIENCE)

    def _read(self) -> bool:
        try:
            part = os.read(self._screen, 65536)
        except OSError:  # This is how a terminal signals that it is closed.
            return False
        self.shown += part.decode(errors="replace").replace("\r\n", "\n")
        return bool(part)


def run_here(*arguments: object, env: Mapping[str, str]) -> tuple[int, str]:
    """Run a command in this process and a terminal; return its exit code and what it shows."""
    screen, inside = pty.openpty()
    with (
        pytest.MonkeyPatch.context() as patch,
        os.fdopen(inside, encoding="utf-8") as keys,
        os.fdopen(os.dup(inside), "w", encoding="utf-8") as shown,
    ):
        for name, value in {"COLUMNS": "400", **env}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", keys)
        for name in ("stdout", "stderr"):
            patch.setattr(sys, name, shown)
        code = main([*map(str, arguments)])
        shown.flush()
        text = b""
        while select.select([screen], [], [], 0)[0]:
            text += os.read(screen, 65536)
    os.close(screen)
    return code, text.decode().replace("\r\n", "\n")


def wait_until(holds: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
