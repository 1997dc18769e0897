"""A killed writer leaves the old file or the new one."""

from __future__ import annotations

import signal
from pathlib import Path

import pandas as pd
import pytest

import outreach_frames as of
from tests import forked

pytestmark = pytest.mark.long

KILLED = """
import os, signal, sys
from pathlib import Path
import outreach_frames as of

def run(path, renames):
    def kill(event, _):
        nonlocal renames
        if event == "os.rename":
            renames -= 1
            renames or os.kill(os.getpid(), signal.SIGKILL)

    frame = of.read_prospects(path)[["email", "number"]].astype({"number": "Float64"})
    sys.addaudithook(kill)
    frame.outreach.to_csv(path)
    os._exit(0)

for path in sorted(Path(sys.argv[1]).glob("*/a.csv")):
    child = os.fork() or run(path, int(path.parent.name))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_killed_between_any_two_files(tmp_path: Path) -> None:
    """A kill between the renames of the metadata and of the file leaves the old or the new rows."""
    old = pd.DataFrame({"email": ["a@x.example", None], "number": [1, 2], "tier": ["b", "c"]})
    new = old[["email", "number"]].astype({"number": "Float64"})
    paths = [tmp_path / str(renames) / "a.csv" for renames in range(1, 4)]
    for path in paths:
        path.parent.mkdir()
        old.outreach.to_csv(path)
    assert forked.run(KILLED, tmp_path).stdout.split() == [str(-signal.SIGKILL)] * 2 + ["0"]
    for path in paths:
        found = of.read_prospects(path)
        expected = old if found.shape == old.shape else new
        # The old rows have the dtypes of the new file's metadata, where these fit.
        pd.testing.assert_frame_equal(found, expected.astype({"number": found["number"].dtype}))
