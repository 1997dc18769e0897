"""Plays a story: its runs follow each other over HTTP and share one journal."""

from __future__ import annotations

import asyncio
import json
import pickle
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachError, OutreachWarning
from outreach_frames.leads.sending import memory
from outreach_frames.leads.statuses import FAILED, RETRYABLE
from tests import forked
from tests.leads.histories.oracle import Broken, Oracle
from tests.leads.histories.service import LeadService
from tests.leads.histories.story import Run, Story, frame_of
from tests.scripted import Service, scripted
from tests.widgets.lead_page import Page

DATA = ["note"]


def play(story: Story, folder: Path) -> list[Broken]:
    """Play a story, and return the rules that it broke."""
    oracle = Oracle(is_apart=story.is_apart)
    memory.clear()
    memories: list[dict[Any, Any]] = [{}, {}]
    books = LeadService(story, oracle)
    with scripted(books) as service, warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        player = _Player(oracle, books, service, folder)
        for run in story.runs:
            books.fates = iter(run.fates)
            is_here = run.how in ("cell", "plan", "again", "retry")
            books.watch = player.take_midway if is_here else lambda: None
            if run.is_new:
                memories[run.process].clear()
                oracle.start(run.process)
            memory.clear()
            memory._memories.update(memories[run.process])
            with Client(service.url, run.token, cache=None, backoff=0, max_wait=5) as client:
                try:
                    player.steps[run.how](run, client)
                except (OutreachError, AssertionError) as error:
                    oracle.fail("raised", repr(error))
                    oracle.end()
            memories[run.process] = dict(memory._memories)
    return oracle.broken


class _Player:
    """Performs the steps of a story."""

    def __init__(self, oracle: Oracle, books: LeadService, service: Service, folder: Path) -> None:
        self.oracle, self.books, self.service = oracle, books, service
        self.folder = folder
        # Earlier reports and plans, each with its run, the latest first.
        self.reports: list[tuple[Run, Any]] = []
        self.plans: list[tuple[Run, Any]] = []
        # The report taken during the current run.
        self.midway: Any = None
        self.steps: dict[str, Callable[[Run, Client], None]] = {
            "cell": self.cell,
            "plan": self.plan,
            "again": self.again,
            "retry": self.retry,
            "dry": self.dry,
            "widget": self.widget,
            "kill": self.killed,
        }

    def file_of(self, run: Run) -> Path | None:
        """Return the journal file of a run, if it has one."""
        return self.folder / run.file if run.file else None

    def cell(self, run: Run, client: Client) -> None:
        self.oracle.begin(run)
        self.end(run, add(run, client, self.file_of(run)))

    def dry(self, run: Run, client: Client) -> None:
        """Make a dry run, sometimes followed by the same run, which sends the same rows."""
        self.oracle.begin(run)
        statuses = add(run, client, self.file_of(run), dry_run=True).rows["status"]
        self.oracle.end(statuses.tolist())
        if run.pick != 0:
            return
        rows = zip(run.rows, statuses, strict=True)
        ready = {row.texts for row, status in rows if status == "would_send"}
        before = len(self.oracle.sent)
        self.cell(run._replace(how="cell"), client)
        sent = {one.texts for one in self.oracle.sent[before:]}
        if not sent <= ready or (self.oracle.is_clean and sent != ready):
            self.oracle.fail("dry run", f"{ready} would be sent, and {sent} was")

    def plan(self, run: Run, client: Client) -> None:
        plan = of.outreach(frame_of(run)).plan("s1", client=client, **options_of(run))
        self.plans.insert(0, (run, plan))
        self.oracle.begin(run)
        options: dict[str, Any] = {"progress": False, "send_again": [*run.send_again]}
        self.end(run, plan.submit(journal=self.file_of(run), **options))

    def again(self, run: Run, client: Client) -> None:
        """Submit an earlier plan again, with its unchanged frame."""
        if self.plans:
            former, plan = self.plans[run.pick % len(self.plans)]
            run = repeated(run, former)
            self.oracle.begin(run)
            options: dict[str, Any] = {"client": client, "send_again": [*run.send_again]}
            report = plan.submit(journal=self.file_of(run), progress=False, **options)
            self.end(run, report)

    def retry(self, run: Run, client: Client) -> None:
        """Resend the unknown rows of an earlier report."""
        open_ends = [one for one in self.reports if "unknown" in set(one[1].rows["status"])]
        if open_ends:
            former, report = open_ends[run.pick % len(open_ends)]
            run = repeated(run, former)
            self.oracle.begin(run)
            self.end(run, report.retry_unknown(client=client))

    def take_midway(self) -> None:
        """Take a report during a request; it sends nobody while the run goes on."""
        self.books.watch = lambda: None
        self.midway = of.last_report()
        try:
            self.midway.retry_unknown()
        except InvalidInputError:
            return
        self.oracle.fail("midway", "a report resent rows that were being sent")

    def end(self, run: Run, report: Any) -> None:
        self.books.watch = lambda: None
        last = of.last_report()
        if last is None or last.rows["status"].tolist() != report.rows["status"].tolist():
            self.oracle.fail("last report", "of.last_report() is another")
        self.take(run, report)
        if self.midway is not None:
            self.reports.insert(1, (run, self.midway))
            self.midway = None

    def take(self, run: Run, report: Any) -> None:
        self.reports.insert(0, (run, report))
        if (report.error is None) == bool(set(report.rows["status"]) & FAILED):
            self.oracle.fail("error", f"The report's error is {report.error!r}")
        self.oracle.end(report.rows["status"].tolist(), report.rows["detail"].tolist())
        # Of rows with the same texts but other data, the journal's report may keep another.
        texts = {(row.texts, row.note) for row in run.rows}
        has_twins = len({pair for pair, _ in texts}) < len(texts)
        journal = self.file_of(run)
        if journal and journal.exists() and not has_twins:
            options: dict[str, Any] = {"clean": run.clean, "data": DATA}
            read = of.outreach(frame_of(run)).report(journal=journal, **options)
            columns = ["status", "attempts", "sent_at"]
            # After a skip, a refused resend is the run's outcome and not the journal's; later, an
            # invalid row has the outcome of its person.
            is_kept = read.rows["status"].isin(RETRYABLE)
            is_other = report.rows["status"].isin(RETRYABLE) & ~is_kept
            is_other |= report.rows["status"].eq("invalid")
            # What an earlier run recorded of a row that this run did not reach.
            is_other |= report.rows["detail"].str.startswith("The run stopped before this row")
            rows = [one.rows.loc[~is_other, columns] for one in (read, report)]
            if not rows[0].equals(rows[1]):
                self.oracle.fail("report of the journal", "the journal's report is another")

    def widget(self, run: Run, client: Client) -> None:
        """Check and send in the widget, sometimes twice, then resend the unknown rows."""

        async def clicks() -> None:
            page = Page(frame_of(run), client, journal=self.file_of(run))
            columns = {"email": "email", "profnet_url": "profnet_url", "data": {"note": "note"}}
            for how in ("widget", *["widget"] * (run.pick == 0), "retry"):
                before = page.widget.report
                if how == "retry" and (before is None or "unknown" not in page.statuses):
                    return
                self.oracle.begin(run._replace(how=how, restores=0))
                if how == "retry":
                    page.click("retry", report=page.state["report"])
                else:
                    await page.check(**columns, overrides=dict.fromkeys(run.carries, True))
                    page.send()
                await page.idle()
                report = page.widget.report
                if report is None:
                    self.oracle.end_without_run()
                else:
                    self.take(run, report)

        asyncio.run(clicks())

    def killed(self, run: Run, _client: Client) -> None:
        """Kill a run's process during a request, or let a run without that request end."""
        result, task = self.folder / "report.json", self.folder / "task"
        result.write_text("[[], []]")
        options = {"journal": self.file_of(run), "progress": False, **options_of(run)}
        frame = frame_of(run._replace(library="str"))
        task.write_bytes(pickle.dumps((self.service.url, run.token, frame, options)))
        is_started = threading.Event()

        def kill() -> None:
            is_started.wait()
            process.kill()

        self.books.kill = kill
        self.oracle.begin(run)
        process = forked.Process(_SUBMIT, task, result)
        is_started.set()
        if process.wait() == -signal.SIGKILL:
            self.oracle.end()
        else:
            self.oracle.end(*json.loads(result.read_text()))


# Submits in a process that may be killed, and writes the outcomes to a file.
_SUBMIT = """
import json, pickle, sys, warnings
from pathlib import Path
import outreach_frames as of
from outreach_frames.client.client import Client

warnings.simplefilter("ignore")
task, result = map(Path, sys.argv[1:])
url, token, frame, options = pickle.loads(task.read_bytes())
with Client(url, token, cache=None, backoff=0, max_wait=5) as client:
    rows = of.outreach(frame).add_to_sequence("s1", client=client, **options).rows
result.write_text(json.dumps([rows["status"].tolist(), rows["detail"].tolist()]))
"""


def options_of(run: Run) -> dict[str, Any]:
    """Return the options of a run's plan."""
    overrides = dict.fromkeys(run.carries, True)
    return {
        "chunk_size": run.chunk_size,
        "clean": run.clean,
        "data": DATA,
        "overrides": overrides,
    }


def repeated(run: Run, former: Run) -> Run:
    """Return a run that repeats a former run's frame and options."""
    return run._replace(
        rows=former.rows, file=former.file, clean=former.clean, carries=former.carries
    )


def add(run: Run, client: Client, journal: Path | None, **more: Any) -> Any:
    """Add a run's rows to the sequence."""
    frame = of.outreach(frame_of(run))
    options = {"journal": journal, "client": client, "progress": False, **options_of(run)}
    options["send_again"] = [*run.send_again]
    return frame.add_to_sequence("s1", **options, **more)
