"""An export of a few people over an earlier one, and its resumption, for fault injection."""

from __future__ import annotations

import errno
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
from pyarrow import csv

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import OutreachError, OutreachWarning
from tests.scripted import Received, Reply, json, scripted

PAGES = 2
# One error is enough: all file errors of an export are handled alike.
ERRORS = (errno.ENOSPC,)


def people(request: Received) -> Reply:
    """Respond with one person per page; a field of the person needs a CSV metadata file."""
    page, name = request.json["page"], request.json.get("person_name", "new")
    pagination = {"page": page, "page_size": 1, "total": PAGES, "total_pages": PAGES}
    return json({"results": [{"id": f"{name}{page}", "zz": page}], "_pagination": pagination})


def ids(path: Path) -> list[str]:
    """Return the ids in a file or folder, read by Arrow, to which no faults apply."""
    if path.suffix == ".csv":
        tables = [csv.read_csv(path)] if path.exists() else []
    else:
        parts = sorted(path.iterdir()) if path.is_dir() else [path] if path.exists() else []
        tables = [pq.ParquetFile(part).read() for part in parts]
    return [identity for table in tables for identity in table["id"].to_pylist()]


EARLIER = [f"earlier{page}" for page in range(1, PAGES + 1)]
NEW = [f"new{page}" for page in range(1, PAGES + 1)]


class Export:
    """An export to one path, finished by any number of runs."""

    def __init__(self, client: Client, path: Path) -> None:
        self._client, self.path = client, path
        self.kept = path.with_name(f".{path.name}.partial")

    def run(self, **filters: str) -> None:
        """Export without warnings."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutreachWarning)
            of.export_people(self.path, page_size=1, client=self._client, progress=False, **filters)

    def attempt(self) -> None:
        """Export despite a fault: the new file exists, or there is an error and the old file."""
        try:
            self.run()
        except OutreachError:
            found = ids(self.path) or ids(self.kept / "old.tmp")
            assert found in (EARLIER, NEW)  # The new file exists if an earlier run wrote it.
        else:
            assert ids(self.path) == NEW

    def recover(self) -> None:
        """Export without a fault: the file is complete with its dtypes, and no other is left."""
        self.run()
        frame = of.read_prospects(self.path)
        assert list(frame["id"]) == NEW
        assert frame["zz"].dtype == pd.Int64Dtype()
        notes = [f"{self.path.name}-metadata.json"] if self.path.suffix == ".csv" else []
        assert sorted(left.name for left in self.path.parent.iterdir()) == [self.path.name, *notes]


@contextmanager
def cases(name: str) -> Iterator[Callable[[Path], Export]]:
    """Start a service, and yield a function that makes an export in a folder."""
    with scripted(people) as service:
        with Client(service.url, "token", cache=None, backoff=0, workers=1) as client:
            with tempfile.TemporaryDirectory() as earlier:
                Export(client, Path(earlier) / name).run(person_name="earlier")

                def new_case(folder: Path) -> Export:
                    shutil.copytree(earlier, folder, dirs_exist_ok=True)
                    return Export(client, folder / name)

                yield new_case


class RecordedExport:
    """Two exports to one path, to be resumed after a power failure."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name

    def run(self, folder: Path, mark: Callable[[str], object]) -> None:
        """Export twice, and set a mark after each."""
        export = Export(self._client, folder / self._name)
        export.run(person_name="earlier")
        mark("earlier")
        export.run()
        mark("new")

    def recover(self, folder: Path, marks: tuple[str, ...]) -> None:
        """Export again: a finished export is still complete and does not block the next one."""
        export = Export(self._client, folder / self._name)
        found = ids(export.path) or ids(export.kept / "old.tmp")
        match marks:
            case ():
                assert found in ([], EARLIER)
                export.run(person_name="earlier")
                assert ids(export.path) == EARLIER
            case ("earlier",):
                assert found in (EARLIER, NEW)
            case _:
                assert found == NEW
                export.run(person_name="earlier")
        export.recover()


@contextmanager
def recorded(name: str) -> Iterator[RecordedExport]:
    """Start a service, and yield two exports to a name."""
    with scripted(people) as service:
        with Client(service.url, "token", cache=None, backoff=0, workers=1) as client:
            yield RecordedExport(client, name)
