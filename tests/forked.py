r"""Run scripts in forks of a process that has imported the package, which is faster.

>>> run("import sys; print(sys.argv[1])", "told").stdout
'told\n'

One process without threads imports the modules that most scripts need; each script runs in a fork
of it and exits as usual. Tests of imports, warnings or limits before a script's first line must
start a new interpreter instead.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any, Self

# Longer than the slowest script on a busy machine, in seconds.
PATIENCE = 200.0


class Process:
    """A running script with the methods of `subprocess.Popen`; its streams are text."""

    def __init__(
        self,
        code: str,
        *arguments: object,
        stdin: str | bytes | int = b"",
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        job = {
            "code": code,
            "arguments": [str(argument) for argument in arguments],
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
        }
        self.stdout, out = _end_of(stdout, 1)
        self.stderr, error = _end_of(stderr, 2)
        self._status, status = socket.socketpair()
        self._notice = self._status.makefile("r")
        self._ended = threading.Lock()
        self.returncode: int | None = None
        with tempfile.TemporaryFile() as task, tempfile.TemporaryFile() as given, status:
            task.write(json.dumps(job).encode())
            if not isinstance(stdin, int):
                given.write(stdin.encode() if isinstance(stdin, str) else stdin)
            for file in (task, given):
                file.seek(0)
            keys = stdin if isinstance(stdin, int) else given.fileno()
            files = [task.fileno(), keys, out, error, status.fileno()]
            socket.send_fds(_forking(), [b"j"], files)
        for wanted, descriptor in ((stdout, out), (stderr, error)):
            if wanted == subprocess.PIPE:
                os.close(descriptor)
        self._status.settimeout(PATIENCE)
        self.pid = int(self._notice.readline())

    def wait(self, timeout: float = PATIENCE) -> int:
        """Return the exit code after the process has ended; it is negative after a signal."""
        with self._ended:
            if self.returncode is None:
                self._status.settimeout(timeout)
                self.returncode = os.waitstatus_to_exitcode(int(self._notice.readline()))
                self._notice.close()
                self._status.close()
        return self.returncode

    def communicate(self) -> tuple[str, str]:
        """Wait for the end of the process, and return the rest of its output."""
        said = {"stdout": "", "stderr": ""}

        def read(name: str, stream: IO[str]) -> None:
            with stream:
                said[name] = stream.read()

        streams = {"stdout": self.stdout, "stderr": self.stderr}
        readers = [
            threading.Thread(target=read, args=(name, stream))
            for name, stream in streams.items()
            if stream is not None
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        self.wait()
        return said["stdout"], said["stderr"]

    def send_signal(self, number: int) -> None:
        """Send a signal if the process is running."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()


def run(code: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a script to its end; capture its streams unless others are passed."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    process = Process(code, *arguments, **options)
    out, error = process.communicate()
    return subprocess.CompletedProcess(["-c", *arguments], process.wait(), out, error)


def start_command(*arguments: object, background: bool = False, **options: Any) -> Process:
    """Start the package's command line; shells ignore Ctrl-C for background processes."""
    return Process(f"{_IGNORE if background else ''}{_COMMAND}", *arguments, **options)


def run_command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the package's command line to its end."""
    return run(_COMMAND, *arguments, **options)


_IGNORE = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
_COMMAND = """
import runpy
runpy.run_module("outreach_frames", run_name="__main__", alter_sys=True)
"""


def _end_of(wanted: int | IO[Any] | None, inherited: int) -> tuple[IO[str] | None, int]:
    """Return both ends of a stream: ours if it is a pipe, and the process's."""
    if wanted is None:
        return None, inherited
    if wanted == subprocess.PIPE:
        reader, writer = os.pipe()
        return os.fdopen(reader, encoding="utf-8"), writer
    return None, wanted if isinstance(wanted, int) else wanted.fileno()


@cache
def _forking() -> socket.socket:
    """Start the process that forks the others; it ends with the test run."""
    ours, theirs = socket.socketpair()
    with theirs:
        # Import the installed package, not a folder beside the tests.
        process = subprocess.Popen(
            [sys.executable, "-P", Path(__file__).with_name("forking.py"), str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours
