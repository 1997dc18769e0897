"""Submits one plan repeatedly, each time in a new process that may be killed.

Starting Python would take longer than a run. So this process imports and plans once, and forks a
process per run. Each input line is a command: `submit` or `retry` starts a run, and `reap` waits
for its end. The output has each process's id and exit status; a run that is not killed prints
`ended` and writes its report to a file.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import traceback
import warnings
from pathlib import Path

import pandas as pd

from outreach_frames.client.client import Client
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.sending.submit import submit


def main(url: str, token: str, sequence_id: str, folder: Path, chunk_size: int) -> None:
    """Run the commands on standard input."""
    frame = pd.read_json(folder / "leads.json", dtype=False)
    plan = make_plan(frame, sequence_id, chunk_size=chunk_size)
    say("ready")
    pid = 0
    for line in sys.stdin:
        if line.strip() == "reap":
            say(f"reaped {os.waitpid(pid, 0)[1]}")
            continue
        can_start, start = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(start)
            os.read(can_start, 1)  # wait until the parent has printed the id
            try:
                run(plan, Client(url, token, cache=None, backoff=0.001), folder, line.strip())
                say("ended")
            except BaseException:  # noqa: BLE001 - nothing may get out of the forked process
                say(f"failed {traceback.format_exc()!r}")
            finally:
                os._exit(0)
        say(str(pid))
        os.close(start)
        os.close(can_start)


def run(plan: SubmissionPlan, client: Client, folder: Path, what: str) -> None:
    """Submit, resend the unknown rows if requested, and write the report."""
    warnings.simplefilter("ignore")
    plan = dataclasses.replace(plan, client=client)
    report = submit(plan, journal=folder / "journal", progress=False)
    if what == "retry" and report.rows["status"].eq("unknown").any():
        report = report.retry_unknown()
    new = folder / "report.new"
    new.write_text(json.dumps(report.rows["status"].tolist()))
    new.replace(folder / "report.json")


def say(what: str) -> None:
    """Print one line without buffering."""
    os.write(1, f"{what}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:4], Path(sys.argv[4]), int(sys.argv[5]))
