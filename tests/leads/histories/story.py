"""Random stories: runs of a changing frame over ten people whose identifiers overlap."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from tests.libraries import LIBRARIES

PEOPLE = 10
OVERRIDES = {
    "recently_contacted": "ignore_recently_contacted",
    "in_exclusion_list": "ignore_exclusion_list",
}
NO_ADDRESS = "nobody-at-example"
# Rows that are never sent.
JUNK = (
    ("n/a", None),
    (NO_ADDRESS, None),
    (None, "https://profnet.example/in/me/"),
    (None, None),
)
PLACEHOLDERS = ("n/a", "https://www.profnet.example/in/Unknown/")

# A data field with this text is too long, so that the row is invalid.
TOO_LONG = "x" * 1025
FILES = ("journal", "other")
# Skips of stories.
SKIPS = ("recently_contacted", "in_exclusion_list", "in_other_active_sequences")

Pair = tuple[str | None, str | None]


class Row(NamedTuple):
    """The cells of a row."""

    email: str | None
    url: str | None
    # Whether runs with clean=True have more text around the identifiers.
    is_wrapped: bool = False
    # The only data field.
    note: str | None = None

    @property
    def pair(self) -> Pair:
        """The identifiers of the row, whatever their spelling."""
        return email_of(self.email), url_of(self.url)

    @property
    def is_valid(self) -> bool:
        """Whether the row identifies a person."""
        return self.is_identified and self.note != TOO_LONG

    @property
    def is_identified(self) -> bool:
        """Whether the identifiers of the row are valid, so that they link a person's rows."""
        return self.pair != (None, None) and self.email != NO_ADDRESS

    @property
    def texts(self) -> Pair:
        """The texts that are sent: the cells unchanged, without placeholders.

        A weak URL is not sent beside an email.
        """
        email, url = self.pair
        is_sent = url and not (email and url.startswith("company/"))
        return self.email if email else None, self.url if is_sent else None


class Run(NamedTuple):
    """One step of a story: an action, its rows, and the service's faults."""

    how: str
    rows: tuple[Row, ...] = ()
    fates: tuple[str, ...] = ()
    library: str = "str"
    chunk_size: int = 250
    # The overrides of all rows.
    carries: frozenset[str] = frozenset()
    # The skips whose people are sent again.
    send_again: frozenset[str] = frozenset()
    # The index of the earlier report or plan to use, the latest first.
    pick: int = 0
    # How many runs ago the frame began with these rows, if only a column was shifted since.
    restores: int = 0
    # The name of the run's journal file, if any; each run has its process's memory.
    file: str | None = FILES[0]
    clean: bool = False
    token: str = "token"
    process: int = 0
    # Whether the process has just started.
    is_new: bool = False


@dataclass(frozen=True)
class Story:
    """Runs that share a journal, and the leads that the service had before."""

    runs: tuple[Run, ...]
    skips: tuple[tuple[str, str], ...] = ()
    there: tuple[Pair, ...] = ()
    needs_email: bool = False
    # Whether runs may lack records of other runs, by other processes or with other files.
    is_apart: bool = False

    def __str__(self) -> str:
        lines = [f"skips={self.skips} there={self.there} needs_email={self.needs_email}"]
        for number, run in enumerate(self.runs):
            lines.append(f"run {number}: {run._replace(rows=())}")
            for email, url, is_wrapped, note in run.rows:
                more = f"{'wrapped' if is_wrapped else ''} {(note or '')[:9]}"
                lines.append(f"    {email!r}, {url!r} {more}")
        return "\n".join(lines)


def email_of(text: str | None) -> str | None:
    """Return the identifier in an address: `p3a` for `P3A@example.com`."""
    found = re.fullmatch(r"(p\d[ab])@example\.com", (text or "").lower())
    return found and found[1]


def url_of(text: str | None) -> str | None:
    """Return the identifier in a URL: `in/p3` for a profile, `company/w1` for a weak URL."""
    found = re.search(r"(in/p\d|company/w\d)", (text or "").lower())
    return found and found[1]


class Persons:
    """Persons formed by rows that share identifiers; an unknown row belongs to no person.

    >>> found = Persons([("p1a", "in/p1"), ("p1b", "in/p1"), ("p2a", "company/w1")])
    >>> found["p1b", None], found["p2a", None], found[None, "company/w1"]
    ('in/p1', 'p2a', None)
    """

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._identifiers: dict[str, set[str]] = {}
        for pair in pairs:
            own = _identifiers(pair)
            person = own.union(*(self._identifiers.get(one, ()) for one in own))
            self._identifiers |= dict.fromkeys(person, person)

    def __getitem__(self, pair: Pair) -> str | None:
        """Return the name of a row's person, or None."""
        found = [self._identifiers[one] for one in _identifiers(pair) if one in self._identifiers]
        return min(found[0]) if found else None


def _identifiers(pair: Pair) -> set[str]:
    """Return a row's identifiers; a weak URL only if the row has no other."""
    known = {one for one in pair if one}
    return {one for one in known if not one.startswith("company/")} or known


FATES = {
    "refused": ("400", "413", "422", "422 stop"),
    "not sent": ("401", "403", "404", "405", "425", "429 stop", "429"),
    "lost": ("reset", "hang up", "408", "409", "499", "500", "503"),
    "lost after": ("+reset", "+hang up", "+cut off", "+500", "+garbage", "+miscount"),
}


class _Author:
    """Generates a story."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.carries: frozenset[str] = frozenset()

    def story(self) -> Story:
        rng = self.rng
        # Unless they are apart, all runs share a file or a memory.
        kinds = ["one process", "restarts", "two processes", "two files", "apart"]
        self.kind = rng.choices(kinds, [3, 2, 2, 2, 1])[0]
        rows = [self.row() for _ in range(rng.randint(8, 14))]
        runs = [self.run(self.how(), rows)]
        count = rng.randint(5, 8)
        while len(runs) < count:
            if rng.random() < 0.3:
                runs.append(self.run(rng.choice(["retry", "retry", "again", "dry"]), rows))
                continue
            if rng.random() < 0.1:
                runs.append(self.run("cell", [row._replace(note=TOO_LONG) for row in rows]))
                continue
            before, former = list(rows), runs[-1]
            shifts = rng.random() < 0.12 and former.how in ("cell", "plan", "widget")
            if shifts:
                runs.append(self.run("cell", self.shifted(rows)))
                rows = [*rows, *(self.row() for _ in range(rng.randint(0, 2)))]
                same = list(former.rows) == before and former.carries == self.carries
                runs.append(self.run("cell", rows)._replace(restores=2 if same else 0))
                continue
            for _ in range(rng.randint(1, 3)):
                rows = rng.choice(self.changes)(rows)
            runs.append(self.run(self.how(), rows))
        skips = [
            (f"p{self.who()}a", "recently_contacted"),
            (f"in/p{self.who()}", "in_exclusion_list"),
            (f"p{self.who()}b", rng.choice([*OVERRIDES, "in_other_active_sequences"])),
        ]
        valid = [row.texts for row in rows if row.is_valid]
        there = rng.sample(valid, min(rng.randint(0, 1), len(valid)))
        return Story(
            tuple(runs),
            tuple(skips[: rng.randint(0, 3)]),
            tuple(there),
            needs_email=rng.random() < 0.1,
            is_apart=self.kind == "apart",
        )

    def how(self) -> str:
        hows, weights = ["cell", "plan", "widget", "kill"], [9, 4, 3, int(self.is_filed)]
        return self.rng.choices(hows, weights)[0]

    @property
    def is_filed(self) -> bool:
        """Whether each run has the same file; a killed process has its own memory."""
        return self.kind in ("restarts", "two processes")

    def who(self) -> int:
        return self.rng.randrange(PEOPLE)

    def run(self, how: str, rows: list[Row]) -> Run:
        rng = self.rng
        fates: list[str] = []
        carries = self.carries
        if rng.random() < 0.5:
            kinds = rng.choices([*FATES, ""], weights=[1, 1, 1, 1, 4], k=6)
            fates = [rng.choice(FATES[kind]) if kind else "" for kind in kinds]
        if how == "kill":
            fates = [*fates[: rng.randint(0, 3)], rng.choice(["kill", "+kill"])]
        if how == "widget":
            # The widget's runs share one client, so a long wait would also block later runs.
            fates = [fate for fate in fates if fate != "429 stop"]
            carries = frozenset(rng.sample([*OVERRIDES.values()], rng.choice([0, 0, 1])))
        return Run(
            how,
            tuple(rows),
            tuple(fates),
            library=rng.choice([*DTYPES, *LIBRARIES]),
            chunk_size=rng.choice([1, 2, 3, 5, 250]),
            carries=carries,
            send_again=frozenset(rng.sample(SKIPS, rng.choice([0, 0, 1, 2])))
            if how in ("cell", "plan", "again", "dry")
            else frozenset(),
            pick=rng.choice([0, 0, 1, 2]),
            file=FILES[0] if self.is_filed else rng.choice(self.files),
            token=rng.choice(["token", "token", "token", "another-token"]),
            process=rng.randrange(2) if self.kind in ("two processes", "apart") else 0,
            is_new=self.kind in ("restarts", "apart") and rng.random() < 0.3,
        )

    @property
    def files(self) -> list[str | None]:
        return [None, FILES[0]] if self.kind == "one process" else [None, *FILES]

    def row(self) -> Row:
        rng, who = self.rng, self.who()
        if rng.random() < 0.06:
            return Row(*rng.choice(JUNK))
        first, second = f"p{who}a@example.com", f"p{who}b@example.com"
        url, weak = self.url(f"in/p{who}"), self.url(f"company/w{who % 3}")
        shapes = [(first, None), (second, None), (None, url), (first, url), (second, url)]
        shapes += [(first, weak), (None, weak), (first, PLACEHOLDERS[1]), (PLACEHOLDERS[0], url)]
        chosen = rng.choices(shapes, weights=[3, 3, 3, 3, 3, 2, 2, 1, 1])[0]
        return self.spelled(Row(*chosen)) if rng.random() < 0.2 else Row(*chosen)

    def url(self, end: str) -> str:
        return f"https://profnet.example/{end}"

    def spelled(self, row: Row) -> Row:
        """Spell the same identifiers differently."""
        email, url = row.email, row.url
        if email_of(email):
            assert email is not None
            email = self.rng.choice([email.upper(), email.title(), email.lower()])
        if end := url_of(url):
            forms = [f"https://www.profnet.example/{end}", f"http://Profnet.example/{end}/"]
            url = self.rng.choice([*forms, f"profnet.example/{end}", self.url(end)])
        return row._replace(email=email, url=url)

    def shifted(self, rows: list[Row]) -> list[Row]:
        """Shift the column of URLs by one row."""
        urls = [row.url for row in rows]
        return [row._replace(url=url) for row, url in zip(rows, urls[-1:] + urls, strict=False)]

    @property
    def changes(self) -> list[Callable[[list[Row]], list[Row]]]:
        return [
            self.permuted,
            self.dropped,
            self.extended,
            self.respelled,
            self.split,
            self.merged,
            self.corrected,
            self.corrected,
            self.carrying,
            self.shifted,
            self.annotated,
        ]

    def permuted(self, rows: list[Row]) -> list[Row]:
        return self.rng.sample(rows, len(rows))

    def dropped(self, rows: list[Row]) -> list[Row]:
        return [row for row in rows if self.rng.random() < 0.8]

    def extended(self, rows: list[Row]) -> list[Row]:
        return self.permuted([*rows, *(self.row() for _ in range(self.rng.randint(1, 4)))])

    def respelled(self, rows: list[Row]) -> list[Row]:
        return [self.spelled(row) if self.rng.random() < 0.3 else row for row in rows]

    def split(self, rows: list[Row]) -> list[Row]:
        """Split some rows into one row per identifier."""
        parts: list[Row] = []
        for row in rows:
            is_split = all(row.pair) and self.rng.random() < 0.5
            parts += [row._replace(url=None), row._replace(email=None)] if is_split else [row]
        return parts

    def merged(self, rows: list[Row]) -> list[Row]:
        """Copy one row's URL into another row, of the same or another person."""
        ones, others = [row for row in rows if row.email], [row for row in rows if row.url]
        if not ones or not others:
            return rows
        one, other = self.rng.choice(ones), self.rng.choice(others)
        kept = [row for row in rows if row is not other] if self.rng.random() < 0.5 else rows
        return [row._replace(url=other.url) if row is one else row for row in kept]

    def corrected(self, rows: list[Row]) -> list[Row]:
        """Change, add or remove one cell of a row."""
        if not rows:
            return rows
        place, new = self.rng.randrange(len(rows)), self.row()
        field = self.rng.choice(["email", "url"])
        row = rows[place]._replace(**{field: getattr(new, field)})
        return [*rows[:place], row, *rows[place + 1 :]]

    def carrying(self, rows: list[Row]) -> list[Row]:
        """Change the overrides of this and later runs, sometimes with a part of the rows."""
        self.carries = frozenset(self.rng.sample([*OVERRIDES.values()], self.rng.randint(0, 2)))
        return self.dropped(rows) if self.rng.random() < 0.5 else rows

    def annotated(self, rows: list[Row]) -> list[Row]:
        """Change the data of some rows."""
        notes = ["a", "b", None, TOO_LONG]
        return [
            row._replace(note=self.rng.choice(notes)) if self.rng.random() < 0.3 else row
            for row in rows
        ]


def make_story(seed: int) -> Story:
    """Generate a story; the same seed always gives the same story."""
    story = _Author(random.Random(seed)).story()
    rng = random.Random(f"clean {seed}")
    return replace(story, runs=tuple(_cleaned(run, rng) for run in story.runs))


def _cleaned(run: Run, rng: random.Random) -> Run:
    """Use clean=True in some runs, with rows whose repaired identifiers are as in the story."""
    rows = [_wrapped(row) if rng.random() < 0.5 else row for row in run.rows]
    if run.how == "widget" or rng.random() < 0.6:
        return run
    return run._replace(rows=tuple(rows), clean=True)


def _wrapped(row: Row) -> Row:
    """Return a row with the texts that a repair makes of its identifiers."""
    email, url = row.pair
    return row._replace(
        email=f"{email}@example.com" if email else row.email,
        url=f"https://profnet.example/{url}" if url else row.url,
        is_wrapped=True,
    )


DTYPES: dict[str, Any] = {
    "str": "str",
    "string": "string",
    "arrow string": pd.ArrowDtype(pa.string()),
    "object": "object",
}


def frame_of(run: Run) -> Any:
    """Convert a run's rows to a frame of its library; index labels are not unique."""
    dtype = DTYPES.get(run.library, "str")
    texts = [_cells(row) if run.clean else (row.email, row.url) for row in run.rows]
    frame = pd.DataFrame(
        {
            "email": pd.Series([email for email, _ in texts], dtype=dtype),
            "profnet_url": pd.Series([url for _, url in texts], dtype=dtype),
            "note": pd.Series([row.note for row in run.rows], dtype=dtype),
        }
    )
    if run.library in LIBRARIES:
        return LIBRARIES[run.library](frame)
    return frame.set_axis([row // 2 for row in reversed(range(len(frame)))])


def _cells(row: Row) -> Pair:
    """Return a row's cells with more text around the identifiers of wrapped rows."""
    if not row.is_wrapped:
        return row.email, row.url
    email, url = row.pair
    wrapped = f"Ann <{(row.email or '').upper()}>" if email else row.email
    return wrapped, f"Ann B <{row.url}>;" if url else row.url
