"""Folders are synced after files move into them, checked without a C compiler."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import forked

pytestmark = pytest.mark.long

CODE = """
import os, sys
import pandas as pd
import outreach_frames as of

done = []

def hear(event, details):
    if event == "open" and os.path.isdir(str(details[0])):
        done.append(f"sync {os.path.basename(details[0])}")
    elif event == "os.rename":
        done.append(f"move {os.path.basename(details[1])}")

with of.sandbox.serve(people=20) as served, of.connect(served.url, served.api_key, cache=None):
    of.export_people("first", progress=False)
    sys.addaudithook(hear)
    of.export_people("people", progress=False)
    pd.DataFrame({"a": [1]}).outreach.to_csv("a.csv")
print(*done, sep="\\n")
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows syncs no folders")
def test_moves_are_synced(tmp_path: Path) -> None:
    """A new folder is synced before it moves, and its parent folder afterwards."""
    done = forked.run(CODE, cwd=tmp_path)
    folder = tmp_path.name
    assert done.stdout.split("\n")[3:] == [
        "sync new.tmp",
        "move people",
        *[f"sync {folder}"] * 2,
        # The metadata moves first, because it fits the file before and after.
        "move a.csv-metadata.json",
        f"sync {folder}",
        "move a.csv",
        f"sync {folder}",
        "",
    ], done.stderr
