"""Windows' special rules for files: open files block others, and some names are invalid."""

from __future__ import annotations

from pathlib import Path

import pytest

import outreach_frames as of
from outreach_frames.errors import InvalidInputError
from outreach_frames.sandbox import Sandbox
from tests import forked

# Fails renames and deletions as Windows does while a scanner has a file open. The audit hook cannot
# be removed, so it runs in a separate process.
BUSY = """
import errno, sys
from collections import Counter
from pathlib import Path
import pandas as pd
import outreach_frames as of

folder, number, times = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
calls = Counter()
events = {"os.rename", "os.remove"}

class Busy(PermissionError):
    winerror = number or None

def block(event, arguments):
    if event in events and str(arguments[0]).startswith(str(folder)):
        call = event, str(arguments[0])
        calls[call] += 1
        if calls[call] <= times:
            raise Busy(errno.EACCES, "access is denied")

sys.addaudithook(block)
frame = pd.DataFrame({"name": ["Ada"]})
"""
WRITE = """
def write():
    frame.outreach.to_parquet(folder / "x.parquet")
    frame.outreach.to_csv(folder / "x.csv")
    of.save_filters(folder / "x.json", {"person_name": "Ada"})
    with of.connect(*sys.argv[4:], cache=None):
        for name in ("y.csv", "y.parquet", "folder", "folder"):
            of.export_people(folder / name, limit=5, resume=False)

write()
print(max(calls.values()), *sorted(path.name for path in folder.iterdir()))
"""
LAST = """
events.remove("os.remove")
try:
    frame.outreach.to_csv(folder / "x.csv")
except of.errors.InvalidInputError as error:
    print(error)
print(max(calls.values()), *folder.iterdir())
"""


def test_a_file_open_elsewhere_is_replaced_on_retry(sandbox: Sandbox, tmp_path: Path) -> None:
    """All writers retry renames and deletions that fail once, and leave no other file."""
    done = forked.run(BUSY + WRITE, tmp_path, 32, 1, sandbox.url, sandbox.api_key)
    names = "folder x.csv x.csv-metadata.json x.json x.parquet y.csv y.csv-metadata.json "
    names += "y.parquet"
    calls, *found = done.stdout.split()
    assert (int(calls) > 1, found) == (True, names.split()), done.stderr


@pytest.mark.parametrize(
    ("number", "advice"), [(32, "denied. Close the file in other programs"), (0, "denied")]
)
def test_a_file_that_stays_open_is_an_error(tmp_path: Path, number: int, advice: str) -> None:
    """After retries, on Windows only, the error gives advice, and the file is deleted."""
    done = forked.run(BUSY + LAST, tmp_path, number, 10**9)
    message, calls = done.stdout.splitlines()
    assert f"permission is {advice}" in message, done.stderr
    assert int(calls) > 2 if number else calls == "1"


@pytest.mark.parametrize(
    "name",
    ["a:b", "CON", "nul.json", "com1.tar.gz", "a.", "a ", "a?", "a\\b", "a\nb", "LPT¹", "conin$"],
)
def test_a_preset_cannot_have_a_name_that_windows_rejects(tmp_path: Path, name: str) -> None:
    """Names of devices, special characters and trailing ones that Windows drops are refused."""
    panel = of.widgets.PeopleSearch()
    with pytest.raises(InvalidInputError, match="on Windows"):
        panel.save_preset(str(tmp_path / name), {})
    assert not [*tmp_path.iterdir()]
    for fine in (
        "people.json",
        ".x.json",
        "console.json",
        "com10.json",
        "a b.json",
        "Führung.json",
    ):
        panel.save_preset(str(tmp_path / fine), {})
