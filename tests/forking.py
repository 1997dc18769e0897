"""Import the package, and fork a process for each script from `forked.py`."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from types import CodeType

import outreach_frames as of


def load() -> None:
    """Import the modules that most scripts need, without threads or optional extras."""
    import tqdm.auto  # noqa: F401

    from outreach_frames import cli  # noqa: F401
    from outreach_frames.client import cache, client  # noqa: F401
    from outreach_frames.leads.sending import submit  # noqa: F401

    of.export_people, of.mailboxes, of.read_prospects, of.search_people  # noqa: B018 - loads them
    gc.collect()
    # Otherwise each fork's garbage collection would copy all loaded objects.
    gc.freeze()


def next_script() -> CodeType:
    """Fork for each received script; return the script in its own process."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        message, files, _, _ = socket.recv_fds(channel, 1, 5)
        if not message:
            raise SystemExit
        if not os.fork():
            channel.close()
            return script_of(*files)
        for file in files:
            os.close(file)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def script_of(task: int, *streams_and_status: int) -> CodeType:
    """Fork again: the inner process gets the script, and the outer one reports its exit status."""
    *streams, status = streams_and_status
    if pid := os.fork():
        for file in (task, *streams):
            os.close(file)
        os.write(status, f"{pid}\n".encode())
        os.write(status, f"{os.waitpid(pid, 0)[1]}\n".encode())
        os._exit(0)
    os.close(status)
    for number, file in enumerate(streams):
        os.dup2(file, number)
        os.close(file)
    with os.fdopen(task) as file:
        job = json.load(file)
    # Processes inherit an ignored SIGINT, for example from a shell's background job.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    sys.argv = ["-c", *job["arguments"]]
    # The old stream objects belong to other files.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    out = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    out.reconfigure(write_through="PYTHONUNBUFFERED" in job["env"])
    sys.stdout = out
    sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115
    return compile(job["code"], "<string>", "exec")


if __name__ == "__main__":
    load()
    exec(next_script(), {"__name__": "__main__"})
