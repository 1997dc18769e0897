"""A Dask cluster reads the same people from NDJSON exports as one machine."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fsspec
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.client import client as service
from outreach_frames.distributed import read_people
from outreach_frames.errors import InvalidInputError
from outreach_frames.reading.flatten import people_frame
from outreach_frames.reading.pages import read_people_page
from tests import forked
from tests.conftest import PEOPLE
from tests.examples import share_of_examples
from tests.reading.pages import body
from tests.reading.people_strategies import odd_people, people

if TYPE_CHECKING:
    from distributed import Client

pytestmark = pytest.mark.long

KNOWN = list(people_frame([]).columns)


@pytest.fixture(autouse=True)
def _in_this_thread() -> Iterator[None]:
    """Compute without threads in tests without a cluster, which is faster for small files."""
    import dask

    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Start a cluster with a worker in another process."""
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.worker.profile.enabled": False}),
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            dashboard_address=":0",
            worker_dashboard_address=None,
            local_directory=str(tmp_path_factory.mktemp("workers")),
        ) as workers,
        Client(workers, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def export(client: service.Client, tmp_path: Path) -> Path:
    """Export people from the sandbox."""
    return of.export_people(tmp_path / "people.ndjson", limit=None, progress=False)


def write_people(path: Path, *persons: dict[str, Any]) -> Path:
    """Write people as JSON lines."""
    path.write_text("".join(json.dumps(person) + "\n" for person in persons))
    return path


def computed(frame: Any) -> pd.DataFrame:
    """Compute a frame, and number its index across partitions."""
    return frame.compute().reset_index(drop=True)


def computed_on(cluster: Any, lazy: Any) -> Any:
    """Compute a frame or series on the cluster."""
    # The scheduler, a thread of this process, may look up the expression by a weak reference.
    expression = lazy.optimize()
    return cluster.compute(expression).result()


def parts_of(path: Path, count: int) -> int:
    """Return the block size for this number of partitions of a file."""
    return -(-path.stat().st_size // count)


def test_a_cluster_returns_the_same_frame(cluster, export):
    """Workers in other processes return the frame that one machine reads, with its dtypes."""
    lazy = read_people(export, blocksize=parts_of(export, 5))
    assert lazy.npartitions == 5
    on_cluster = computed_on(cluster, lazy).reset_index(drop=True)
    assert len(on_cluster) == PEOPLE
    pd.testing.assert_frame_equal(on_cluster, of.read_prospects(export))


def test_a_cluster_counts_by_column(cluster, export):
    """A count by column on the cluster equals the count of pandas."""
    lazy = read_people(export, blocksize=parts_of(export, 3))
    counts = computed_on(cluster, lazy.groupby("company_industry").size())
    here = of.read_prospects(export)
    pd.testing.assert_series_equal(counts.sort_index(), here.groupby("company_industry").size())
    mean = computed_on(cluster, lazy["company_followers"].mean())
    assert mean == pytest.approx(here["company_followers"].mean())


def test_a_worker_reports_the_damaged_line(cluster, tmp_path):
    """A damaged line is the package's error with the file and line, also from a worker."""
    path = write_people(tmp_path / "people.ndjson", *({"id": str(n)} for n in range(40)))
    place = path.stat().st_size
    with path.open("a") as file:
        file.write('{"id": "40"\n')
    lazy = read_people(path, blocksize=parts_of(path, 3))
    with pytest.raises(InvalidInputError, match=f"people.ndjson: the line at byte {place:,} ") as e:
        computed_on(cluster, lazy)
    assert e.value.retryable is False


@pytest.mark.parametrize("strings", [None, True, False])
@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_dtypes_are_those_of_a_search(client, export, backend, strings):
    """The schema has the frame's dtypes, even if Dask converts text elsewhere."""
    import dask

    found = of.search_people(limit=None, dtype_backend=backend, progress=False)
    with dask.config.set({"dataframe.convert-string": strings}):
        lazy = read_people(export, blocksize=parts_of(export, 2), dtype_backend=backend)
        pd.testing.assert_frame_equal(computed(lazy), found)
        pd.testing.assert_series_equal(lazy.dtypes, people_frame([], backend).dtypes)
        pd.testing.assert_series_equal(lazy[["name", "id"]].dtypes, found[["name", "id"]].dtypes)


LINES = {
    "plain": b'{"id":"1"}\n{"id":"22"}\n{"id":"3"}\n',
    "no line break at the end": b'{"id":"1"}\n{"id":"22"}\n{"id":"3"}',
    "byte order mark": b'\xef\xbb\xbf{"id":"1"}\n{"id":"22"}\n{"id":"3"}\n',
    "blank lines": b'\n{"id":"1"}\n\n \n{"id":"22"}\n{"id":"3"}\n\n',
    "two-character line breaks": b'{"id":"1"}\r\n{"id":"22"}\r\n\r\n{"id":"3"}\r\n',
}


@pytest.mark.parametrize(
    ("kind", "blocksize"),
    [
        # One partition per byte would be slow.
        *((kind, blocksize) for kind in LINES for blocksize in (11, 12, "64MB")),
        ("two-character line breaks", 1),
        *(
            pytest.param(kind, 1, marks=pytest.mark.slow)
            for kind in LINES
            if kind != "two-character line breaks"
        ),
    ],
)
def test_every_line_is_in_one_partition(tmp_path, kind, blocksize):
    """For any block size each person is read once and in order."""
    path = tmp_path / "people.ndjson"
    path.write_bytes(LINES[kind])
    assert read_people(path, blocksize=blocksize)["id"].compute().tolist() == ["1", "22", "3"]


@share_of_examples(0.1)
@given(st.lists(people(), min_size=1, max_size=5), st.integers(1, 4))
def test_any_people_are_the_same(tmp_path, persons, count):
    """Any people are the same for any number of partitions."""
    path = write_people(tmp_path / "people.ndjson", *persons)
    frame = computed(read_people(path, blocksize=parts_of(path, count)))
    pd.testing.assert_frame_equal(frame, of.read_prospects(path))


@share_of_examples(0.1)
@given(st.lists(odd_people(), min_size=1, max_size=4))
def test_odd_people_lose_nothing(tmp_path, persons):
    """With an extra column the schema is unchanged, and the column has all undocumented values."""
    path = write_people(tmp_path / "people.ndjson", *persons)
    frame = computed(read_people(path, extra_column="extra"))
    here = of.read_prospects(path)
    assert list(frame.columns) == [*KNOWN, "extra"]
    pd.testing.assert_series_equal(frame.dtypes.iloc[:-1], people_frame([]).dtypes)
    for name in KNOWN:
        same = pd.Series(list(here[name]), dtype=frame[name].dtype, name=name)
        pd.testing.assert_series_equal(frame[name], same)
    others = here.drop(columns=KNOWN)
    for position, text in enumerate(frame["extra"]):
        found = set() if pd.isna(text) else json.loads(text).keys() - set(KNOWN)
        assert found == {name for name in others if others[name].notna()[position]}


ODD = {
    "zz": {"zz": 5},
    "company_new_field": {"company": {"new_field": ["x"]}},
    "company_followers_raw": {"company": {"followers": "many"}},
    "experiences": {"experiences": [{"title": "CEO", "new": 1}, None]},
}


@pytest.mark.parametrize("name", ODD)
def test_a_value_outside_the_schema_is_an_error(tmp_path, name):
    """A value outside the schema is an error that names it and the option to keep it."""
    path = write_people(tmp_path / "people.ndjson", {"id": "1"}, {"id": "2", **ODD[name]})
    with pytest.raises(InvalidInputError, match=f"'{name}'.*extra_column"):
        read_people(path).compute()


def test_five_undocumented_columns_are_named(tmp_path):
    """The error names five undocumented columns and counts the others."""
    odd = {f"new_{number}": number for number in range(7)}
    path = write_people(tmp_path / "people.ndjson", {"id": "1", **odd})
    with pytest.raises(InvalidInputError, match="'new_3', 'new_4' and 2 more"):
        read_people(path).compute()


def test_values_outside_the_schema_are_kept_as_json(tmp_path):
    """With an extra column values outside the schema are JSON, in every partition."""
    path = write_people(tmp_path / "people.ndjson", {"id": "1"}, *ODD.values(), {"zz": None})
    lazy = read_people(path, blocksize=30, extra_column="extra")
    assert lazy.npartitions > 3
    frame = computed(lazy)
    assert [None if pd.isna(text) else json.loads(text) for text in frame["extra"]] == [
        None,
        {"zz": 5},
        {"company_new_field": ["x"]},
        {"company_followers_raw": "many"},
        {"experiences": [{"title": "CEO", "new": 1}, None]},
        None,
    ]
    pd.testing.assert_series_equal(frame.dtypes, lazy.dtypes)
    titles = frame["experiences"][4]
    assert (titles[0]["title"], titles[1]) == ("CEO", None)


def test_an_empty_file_has_the_schema(tmp_path):
    """An empty file has all columns, alone and next to other files."""
    empty = write_people(tmp_path / "a.ndjson")
    pd.testing.assert_frame_equal(computed(read_people(empty)), people_frame([]))
    full = write_people(tmp_path / "b.ndjson", {"id": "1"})
    frame = computed(read_people([empty, full]))
    pd.testing.assert_frame_equal(frame, people_frame([read_people_page(body({"id": "1"}))]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two exports, one of them compressed, and other files."""
    folder = tmp_path / "exports"
    folder.mkdir()
    write_people(folder / "a.ndjson", {"id": "1"}, {"id": "2"})
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(b'{"id":"3"}\n{"id":"4"}\n'))
    names = ("notes.txt", ".half.ndjson", "_old.ndjson", "c.ndjson.bak", "a.ndjson-metadata.json")
    for name in names:
        (folder / name).write_text("not people\n")
    (folder / "deeper").mkdir()
    write_people(folder / "deeper" / "d.ndjson", {"id": "5"})
    return folder


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        ([""], "1234"),
        (["[!_]*.ndjson"], "12"),
        (["a.*"], "12"),
        (["b.jsonl.gz", "a.ndjson"], "3412"),
        (["a.ndjson", "", "a.ndjson", "?.*n*[lnz]"], "1234"),
        (["", "deeper"], "12345"),
    ],
)
def test_paths_of_all_kinds_are_read_once(folder, monkeypatch, names, ids):
    """Files, folders, patterns and lists of them are read in order, each file once."""
    monkeypatch.chdir(folder)
    paths = [name if "*" in name else Path(name) for name in names]
    frame = read_people(paths if len(paths) > 1 else paths[0], blocksize=12)
    assert "".join(frame["id"].compute()) == ids


def test_a_path_with_brackets_is_not_a_pattern(tmp_path):
    """Brackets in an existing file's path are not a pattern."""
    (tmp_path / "exports [1]").mkdir()
    path = write_people(tmp_path / "exports [1]" / "people [ab].ndjson", {"id": "1"})
    assert read_people(path)["id"].compute().tolist() == ["1"]


def test_addresses_are_read_by_fsspec():
    """URLs of other file systems are read with fsspec."""
    files = fsspec.filesystem("memory")
    files.pipe("/exports/people.ndjson", b'{"id":"1"}\n{"id":"2"}\n')
    try:
        lazy = read_people("memory://exports/*.ndjson", blocksize=12)
        assert lazy["id"].compute().tolist() == ["1", "2"]
    finally:
        files.rm("/exports", recursive=True)


@pytest.mark.parametrize(
    ("paths", "options", "problem"),
    [
        ("none.ndjson", {}, "none.ndjson cannot be read"),
        ("none*.ndjson", {}, "no file to read"),
        (".", {}, "no file to read"),
        ([], {}, "at least one"),
        ("nowhere://x.ndjson", {}, "nowhere"),
        ("x.ndjson.zst", {}, "x.ndjson.zst is compressed"),
        ("x.ndjson", {"blocksize": "big"}, "blocksize is 'big'"),
        ("x.ndjson", {"blocksize": 0}, "blocksize is 0"),
        ("x.ndjson", {"blocksize": None}, "blocksize is None"),
        ("x.ndjson", {"extra_column": "name"}, "'name'"),
        ("x.ndjson", {"dtype_backend": "numpy"}, "dtype_backend is 'numpy'"),
    ],
)
def test_invalid_paths_are_errors_of_the_call(tmp_path, monkeypatch, paths, options, problem):
    """Invalid arguments and missing files are errors of the call, before computing."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError, match=re.escape(problem)):
        read_people(paths, **options)


def test_a_file_missing_on_a_worker_is_named(tmp_path):
    """A file that is missing on a worker is an error that names it and what workers need."""
    path = write_people(tmp_path / "people.ndjson", {"id": "1"})
    lazy = read_people(path)
    path.unlink()
    with pytest.raises(InvalidInputError, match=r"people\.ndjson cannot be read") as error:
        lazy.compute()
    assert "Every worker" in error.value.__notes__[0]


def test_a_compressed_file_is_one_partition(tmp_path):
    """A compressed file is read completely in one partition."""
    path = tmp_path / "people.ndjson.gz"
    path.write_bytes(gzip.compress(b"".join(b'{"id":"%d"}\n' % n for n in range(500))))
    lazy = read_people(path, blocksize=parts_of(path, 4))
    assert lazy.npartitions == 1
    assert lazy["id"].compute().tolist() == [str(n) for n in range(500)]


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_a_damaged_compressed_file_is_named(tmp_path, ending):
    """A truncated compressed file is the package's error with its name."""
    path = tmp_path / f"people.ndjson.{ending}"
    compress = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[ending]
    path.write_bytes(compress(b'{"id":"1"}\n' * 99)[:-9])
    with pytest.raises(InvalidInputError, match=rf"people\.ndjson\.{ending} is damaged or trunc"):
        read_people(path).compute()


@pytest.mark.parametrize("ending", ["gz", "xz"])
def test_a_wrong_extension_is_an_error(tmp_path, ending):
    """A file whose content does not match its extension is the package's error too."""
    path = tmp_path / f"people.ndjson.{ending}"
    path.write_bytes(b'{"id":"1"}\n')
    with pytest.raises(InvalidInputError, match=rf"people\.ndjson\.{ending} is damaged or trunc"):
        read_people(path).compute()


def test_a_damaged_line_of_a_compressed_file_is_counted(tmp_path):
    """The error for a damaged line of a compressed file has the line number."""
    path = tmp_path / "people.ndjson.gz"
    path.write_bytes(gzip.compress(b'{"id":"1"}\n\n[]\n'))
    with pytest.raises(InvalidInputError, match=r"people.ndjson.gz: line 3 is not a JSON object"):
        read_people(path).compute()


def test_a_changed_file_is_read_again(tmp_path):
    """After a file is replaced, a cluster does not reuse results of the old file."""
    import dask

    path = write_people(tmp_path / "people.ndjson", {"id": "1"})
    first, again = read_people(path), read_people(path)
    write_people(path, {"id": "2"})
    changed = read_people(path)
    assert dask.base.tokenize(first) == dask.base.tokenize(again)
    assert set(first.optimize().__dask_keys__()).isdisjoint(changed.optimize().__dask_keys__())


def test_without_dask_the_error_says_what_to_install():
    """Without Dask the error has the command that installs it."""
    code = (
        "import sys; sys.modules['dask'] = None\n"
        "from outreach_frames.distributed import read_people\n"
        "try:\n    read_people('x.ndjson')\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )
    done = forked.run(code)
    assert 'pip install "outreach-frames[dask]"' in done.stdout


@share_of_examples(0.1)
@given(st.lists(people() | odd_people(), max_size=4), st.data())
def test_chosen_columns_equal_those_of_all_columns(tmp_path, persons, data):
    """Chosen columns have the values and dtypes that they have among all columns."""
    columns = data.draw(st.lists(st.sampled_from(KNOWN), min_size=1, max_size=4, unique=True))
    path = write_people(tmp_path / "people.ndjson", *persons)
    whole = computed(read_people(path, extra_column="extra"))
    some = computed(read_people(path, extra_column="extra", columns=columns))
    pd.testing.assert_frame_equal(some, whole[columns])
    both = computed(read_people(path, extra_column="extra", columns=[*columns, "extra"]))
    pd.testing.assert_frame_equal(both, whole[[*columns, "extra"]])


def test_unread_columns_raise_no_error(tmp_path):
    """Values outside the schema are an error only in chosen columns."""
    path = write_people(
        tmp_path / "people.ndjson",
        {"id": "1", "new": 1, "company": {"followers": "many", "name": "X", "founded_year": 7}},
    )
    read = read_people(path, columns=["company_name", "company_founded_year", "id"])
    assert computed(read).to_numpy().tolist() == [["X", 7, "1"]]
    assert len(read_people(path, columns=["id"])) == 1
    with pytest.raises(InvalidInputError, match="company_followers_raw"):
        computed(read_people(path, columns=["id", "company_followers"]))
    with pytest.raises(InvalidInputError, match="'new'"):
        computed(read_people(path))
    damaged = tmp_path / "damaged.ndjson"
    damaged.write_text('{"id": "1"}\n{"id": "2", "name": x}\n')
    with pytest.raises(InvalidInputError, match="line 2"):
        computed(read_people(damaged, columns=["id"]))


def test_an_unknown_column_is_an_error(tmp_path):
    """An unknown column is an error before any file is read."""
    path = write_people(tmp_path / "people.ndjson", {"id": "1"})
    with pytest.raises(InvalidInputError, match=r"company_nmae.*company_name"):
        read_people(path, columns=["company_nmae"])
