"""Checks requests and reports against the rules, using only the requests and their replies.

Rows that share an identifier form a person. No person of the current and recorded rows may be sent
twice. If all rows so far are grouped, each outcome must be that of one of its person's leads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.leads.histories.story import OVERRIDES, Pair, Persons, Row, Run

ALREADY = "already_in_sequence"
DUPLICATE = "duplicate_in_frame"
IN_SEQUENCE = {"added", "present"}
RETRYABLE = {"rejected", "not_sent"}


class Broken(NamedTuple):
    """A broken rule, with its run and a description."""

    rule: str
    run: int
    words: str


@dataclass
class Sent:
    """A lead in a request; `known` is the outcome that the reply proves, or "" if none."""

    run: int
    texts: Pair
    pair: Pair
    carries: frozenset[str]
    known: str = ""
    committed: bool = False
    note: str | None = None
    # The process and the file of the run.
    places: frozenset[str] = frozenset()

    @property
    def may_have_acted(self) -> bool:
        """Whether the reply leaves it possible that the service added the lead."""
        return self.known in ("", "added")

    @property
    def is_skipped(self) -> bool:
        """Whether the reply proves that the service skipped the lead."""
        return not self.may_have_acted and self.known not in RETRYABLE


@dataclass
class Oracle:
    """Checks every run of one story, and collects the broken rules.

    Attributes
    ----------
    run, number : Run and int
        The current run and its number.
    is_clean : bool
        Whether the service has worked without faults so far in this run.
    is_apart : bool
        Whether runs may lack records of other runs; then only runs that certainly share records
        are compared.
    sent : list of Sent
        All leads in all requests.
    recorded : list of pair
        Rows of people whose leads the service did not refuse.
    seen : list of pair
        Rows of all runs so far.
    broken : list of Broken
        Broken rules.
    """

    run: Run = field(default_factory=lambda: Run(""))
    number: int = -1
    is_clean: bool = True
    is_apart: bool = False
    sent: list[Sent] = field(default_factory=list)
    recorded: list[Pair] = field(default_factory=list)
    seen: list[Pair] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    _starts: Counter[int] = field(default_factory=Counter)
    _in_sequence: dict[Pair, str] = field(default_factory=dict)
    _reports: dict[int, tuple[Run, Sequence[str]]] = field(default_factory=dict)

    def begin(self, run: Run) -> None:
        """Prepare for a run."""
        self.run, self.number, self.is_clean = run, self.number + 1, True

    def start(self, process: int) -> None:
        """Note that a process starts again, without its memory."""
        self._starts[process] += 1

    def fail(self, rule: str, words: str) -> None:
        """Record a broken rule."""
        self.broken.append(Broken(rule, self.number, words))

    def receive(self, leads: Iterable[Sent]) -> None:
        """Check the leads of a request before the reply."""
        known = Persons([*self.recorded, *self._linked])
        for lead in leads:
            lead.places = self._places
            if self.is_apart:
                self._judge_apart(lead)
            else:
                self._judge_lead(lead, known)
            self.sent.append(lead)

    def end(self, statuses: Sequence[str] | None = None, details: Sequence[str] = ()) -> None:
        """Check the report, if any, and record the people that the run reached."""
        if self.run.how == "dry":
            if not self.is_apart:
                self._judge_dry(statuses or ())
            return
        self.seen += self._linked
        if statuses is not None and len(statuses) != len(self.run.rows):
            self.fail("one outcome", f"{len(statuses)} outcomes of {len(self.run.rows)} rows")
        elif statuses is not None and not self.is_apart:
            self._judge_report(statuses, details)
            self._reports[self.number] = self.run, statuses
        known = Persons([*self.recorded, *self._linked])
        reached = {known[one.pair] for one in self.sent if one.known not in RETRYABLE}
        self.recorded += [pair for pair in self._linked if known[pair] in reached]

    def end_without_run(self) -> None:
        """Check that no row was due to be sent."""
        if not self.is_apart:
            self._judge_missing(Persons([*self.seen, *self._linked]))

    @property
    def _rows(self) -> list[Row]:
        return [row for row in self.run.rows if row.is_valid]

    @property
    def _linked(self) -> list[Pair]:
        """The identifiers of all rows that link a person's rows."""
        return [row.pair for row in self.run.rows if row.is_identified]

    @property
    def _places(self) -> frozenset[str]:
        """The memory and the file of the current run."""
        own = f"process {self.run.process} started {self._starts[self.run.process]} times"
        return frozenset({own, *filter(None, [self.run.file])})

    def _judge_apart(self, lead: Sent) -> None:
        """Check that no run sends again what its own process or file has recorded."""
        for one in self.sent:
            is_same = one.pair == lead.pair and one.places & lead.places and one.run != self.number
            if is_same and one.may_have_acted and self.run.how != "retry":
                self.fail("twice", f"{lead.texts} is sent, and was in {one.run}")

    def _judge_lead(self, lead: Sent, known: Persons) -> None:
        if self.run.how == "dry":
            self.fail("dry run", f"{lead.texts} was sent")
        rows = [(row.texts, row.note) for row in self._rows]
        if (lead.texts, lead.note) not in rows or lead.carries != self.run.carries:
            self.fail("as it is", f"no row is {lead.texts} with {set(lead.carries)} {lead.note}")
            return
        earlier = [one for one in self.sent if known[one.pair] == known[lead.pair]]
        acted = [one for one in earlier if one.may_have_acted]
        if self.run.how == "retry":
            same = [one for one in self.sent if one.texts == lead.texts]
            if outcomes(same) != {"unknown"}:
                self.fail("retry", f"{lead.texts} is sent again, and is {outcomes(same)}")
            if lead.note not in {one.note for one in same}:
                self.fail("retry", f"{lead.texts} is sent again with {lead.note}")
            acted = [one for one in acted if one not in same or one.run == self.number]
        elif not acted:
            self._judge_skipped(lead, earlier)
        if acted:
            before = [(one.run, one.texts) for one in acted]
            self.fail("twice", f"{lead.texts} is sent, and its person was in {before}")
        for one in earlier:
            if one.run == self.number and one.texts != lead.texts:
                self.fail("one lead", f"{lead.texts} and {one.texts} in one run")

    def _judge_skipped(self, lead: Sent, earlier: Sequence[Sent]) -> None:
        """Check that a skipped person is sent again only with the override for that list."""
        skipped = {one.known for one in earlier if one.is_skipped}
        carried = {status for status, name in OVERRIDES.items() if name in lead.carries}
        is_named = bool(earlier) and earlier[-1].known in self.run.send_again
        if earlier and earlier[-1].is_skipped and not skipped & carried and not is_named:
            self.fail("skipped", f"{lead.texts} is sent, and its person was {skipped}")

    def _judge_report(self, statuses: Sequence[str], details: Sequence[str]) -> None:
        everybody = Persons(self.seen)
        of_person: dict[str | None, set[str]] = {}
        for row, status in zip(self.run.rows, statuses, strict=True):
            is_certain = bool(row.pair[1]) and not str(row.pair[1]).startswith("company/")
            is_odd = row.is_valid or not (row.is_identified or is_certain)
            if (is_odd and row.is_valid == (status == "invalid")) or status == "would_send":
                self.fail("invalid", f"{row.email}, {row.url} is {status}")
            if row.is_identified:
                of_person.setdefault(everybody[row.pair], set()).add(status)
        valid_persons = {everybody[row.pair] for row in self._rows}
        sent_rows = {(one.pair, one.note) for one in self.sent}
        for row, status, detail in zip(self.run.rows, statuses, details, strict=True):
            is_beside = row.is_identified and everybody[row.pair] in valid_persons
            is_open = row.is_valid or not is_beside or (row.pair, row.note) in sent_rows
            if not is_open and status != "invalid":
                self.fail("one outcome", f"{row.texts} is {status} beside a valid row")
            if row.is_valid:
                person = everybody[row.pair]
                sent = [one for one in self.sent if everybody[one.pair] == person]
                self._judge_row(row, status, sent, of_person[person])
                self._judge_detail(row, status, detail)
        if self.is_clean:
            self._judge_missing(everybody)
        self._judge_unchanged(statuses, everybody)
        if self.run.restores:
            self._judge_restored(statuses)

    def _judge_row(self, row: Row, status: str, sent: Sequence[Sent], of_person: set[str]) -> None:
        """Check a row's status against the requests with its person."""
        own = [one for one in sent if one.pair == row.pair]
        allowed = outcomes(own)
        if not any(one.may_have_acted for one in own):
            for pair in {one.pair for one in sent}:
                allowed |= outcomes([one for one in sent if one.pair == pair])
            if not self.is_clean or self.run.how == "retry":
                allowed |= {"not_sent"}
        what = f"{row.email}, {row.url} is {status}"
        if status == DUPLICATE:
            if not of_person - {DUPLICATE, "not_sent"}:
                self.fail("duplicate", f"{what}, and the others of its person are {of_person}")
        elif status not in allowed:
            self.fail("outcome", f"{what}, and may be {sorted(allowed)}")
        if status in IN_SEQUENCE and not any(one.committed for one in sent):
            self.fail("added", f"{what}, and nobody of its person was added")
        before = self._in_sequence.get(row.pair)
        if before and status not in (before, DUPLICATE):
            self.fail("taken back", f"{what}, and was {before}")
        if status in IN_SEQUENCE:
            self._in_sequence[row.pair] = status

    def _judge_detail(self, row: Row, status: str, detail: str) -> None:
        """Require a reason if no identifier of a row was ever sent."""
        was_sent = {key for one in self.sent for key in one.pair} - {None}
        if status not in RETRYABLE and not was_sent & set(row.pair) and not detail:
            self.fail("detail", f"{row.email}, {row.url} is {status}, and nothing says why")
        own = [one for one in self.sent if one.pair == row.pair]
        is_earlier = len(own) == 1 and own[0].run != self.number
        if is_earlier and status not in (*RETRYABLE, DUPLICATE):
            is_changed = own[0].note != row.note
            if is_changed != ("note changed since" in detail or "note changed" in detail):
                self.fail("data", f"{row.texts} had {own[0].note}, has {row.note}: {detail}")

    def _judge_dry(self, statuses: Sequence[str]) -> None:
        """Require that no person would be sent twice, and that no row is `not_sent`."""
        known = Persons([*self.recorded, *self._linked])
        acted = {known[one.pair] for one in self.sent if one.may_have_acted}
        for row, status in zip(self.run.rows, statuses, strict=bool(statuses)):
            if status == "would_send" and (not row.is_valid or known[row.pair] in acted):
                self.fail("dry run", f"{row.email}, {row.url} would be sent")
            acted |= {known[row.pair]} if status == "would_send" else set()
            if status == "not_sent":
                self.fail("dry run", f"{row.email}, {row.url} is not_sent")

    def _judge_missing(self, everybody: Persons) -> None:
        """Require that a run without faults has sent every person that it may send."""
        groups: dict[str | None, list[Row]] = {}
        for row in self._rows:
            groups.setdefault(everybody[row.pair], []).append(row)
        for person, rows in groups.items():
            sent = [one for one in self.sent if everybody[one.pair] == person]
            before = [one for one in sent if one.run != self.number]
            if self.run.how == "retry":
                is_due = len(rows) == 1 and outcomes(before) == {"unknown"}
                is_due &= {(one.texts, one.note) for one in before} == {
                    (rows[0].texts, rows[0].note)
                }
            else:
                skips = [one for one in before if one.is_skipped]
                is_due = not any(one.may_have_acted for one in before) and (
                    all(OVERRIDES.get(one.known) in self.run.carries for one in skips)
                    or all(one.known in self.run.send_again for one in skips)
                )
            if is_due and len(sent) == len(before):
                self.fail("missing", f"{[row.texts for row in rows]} was not sent")

    def _judge_unchanged(self, statuses: Sequence[str], everybody: Persons) -> None:
        """Require that repeated rows, in any order, send nothing and keep a person's outcomes.

        An invalid row has the recorded outcome of its person, which may be that of the last run.
        """
        run, before = self._reports.get(self.number - 1, (Run(""), ()))
        is_same = Counter(run.rows) == Counter(self.run.rows)
        is_same &= run.carries == self.run.carries and not self.run.send_again
        if not is_same or self.run.how == "retry" or RETRYABLE & {*before, *statuses}:
            return
        sent = [one for one in self.sent if one.run == self.number]
        if sent and not run.carries:
            self.fail("unchanged", f"{[one.texts for one in sent]} was sent")
        counts = [
            Counter(
                (everybody[row.pair], status)
                for row, status in zip(rows, found, strict=True)
                if row.is_valid
            )
            for rows, found in ((run.rows, before), (self.run.rows, statuses))
        ]
        if not sent and counts[0] != counts[1]:
            self.fail("permuted", f"{before} became {statuses}")

    def _judge_restored(self, statuses: Sequence[str]) -> None:
        """Require that earlier outcomes survive a run with a shifted column."""
        run, before = self._reports.get(self.number - self.run.restores, (Run(""), ()))
        if run.rows != self.run.rows[: len(run.rows)] or run.carries != self.run.carries:
            return
        # Rows of other runs link people too.
        every = [*run.rows, *(row for other, _ in self._reports.values() for row in other.rows)]
        known = Persons([row.pair for row in every if row.is_identified])
        changed = {known[one.pair] for one in self.sent if one.run >= self.number - 1}
        changed |= {
            known[row.pair]
            for row, status in zip(run.rows, before, strict=True)
            if status in RETRYABLE
        }
        for email, url in (row.pair for row in self.run.rows[len(run.rows) :]):
            changed |= {known[email, None], known[None, url]}
        for row, status, now in zip(run.rows, before, statuses, strict=False):
            if row.is_valid and status != now and known[row.pair] not in changed:
                self.fail("shifted", f"{row.email}, {row.url} was {status} and is {now}")


def outcomes(sent: Sequence[Sent]) -> set[str]:
    """Return the status that these requests for one lead prove; without requests, none.

    If one request may have added the lead, a later refusal does not disprove that.
    """
    status, is_open = set[str](), False
    for one in sent:
        if one.known == ALREADY and is_open:
            # Several people may share a weak URL, so that it proves nothing.
            email, url = one.pair
            status = {"present" if email or (url or "").startswith("in/") else "unknown"}
        elif one.known == "added":
            status = {"added"}
        elif not one.known or is_open:
            status, is_open = {"unknown"}, True
        elif one.known in RETRYABLE:
            # The run that is refused reports the refusal, and later runs an earlier skip.
            status = {one.known, *(status - RETRYABLE)}
        else:
            status = {one.known}
    return status
