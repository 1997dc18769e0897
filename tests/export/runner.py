"""Run exports of people, each in a process that may be killed.

Starting Python takes longer than a whole export in the tests, so this process imports once,
and forks a process per export. An input line is a number and a path: the export to that path kills
itself at the file operation of that number. `reap` waits for the end of the last export. The output
has each process's id, and how it ended.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable

import outreach_frames as of
from outreach_frames.client.client import Client


def main(url: str) -> None:
    """Run the commands from standard input."""
    of.export_people  # noqa: B018 - loads what an export needs
    warnings.simplefilter("ignore")
    say("ready")
    pid = 0
    for line in sys.stdin:
        if line.strip() == "reap":
            say(f"reaped {os.waitpid(pid, 0)[1]}")
            continue
        told, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(tell)
            os.read(told, 1)  # The process id is printed before the result.
            try:
                operation, path = line.strip().split(maxsplit=1)
                sys.addaudithook(killer(int(operation)))
                with Client(url, "token", cache=None) as client:
                    of.export_people(path, page_size=20, client=client, progress=False)
                say("ended")
            except BaseException:  # noqa: BLE001 - nothing may get out of the forked process
                say(f"failed {traceback.format_exc()!r}")
            finally:
                os._exit(0)
        say(str(pid))
        os.close(tell)
        os.close(told)


def killer(operation: int) -> Callable[[str, tuple[object, ...]], None]:
    """Kill this process before its n-th rename or deletion of a file; 0 means never."""
    count = 0

    def hook(event: str, _: tuple[object, ...]) -> None:
        nonlocal count
        if event in {"os.rename", "os.remove", "os.rmdir"}:
            count += 1
            if count == operation:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook


def say(what: str) -> None:
    """Print one line and flush."""
    os.write(1, f"{what}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1])
