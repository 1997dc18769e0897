"""Watching over a run from the calling thread: progress, requests to end, signals."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from outreach_frames.common.cancellation import CancellationToken, bind_thread, current_status
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.signals import HeldSignals
from outreach_frames.errors import OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.sending.run import Directive, Monitor, Run

if TYPE_CHECKING:
    from tqdm import tqdm

_INTERRUPTED: Final = (
    "Interrupted. Rows that the request under way held are unknown if it may have arrived; "
    "what came after it was not sent."
)
_CANCELLED: Final = "Cancelled. What came after the last request was not sent."
# What monitors returned in earlier versions.
_OLD_DIRECTIVES: Final[Mapping[object, Directive]] = {
    "go on": "continue",
    "finish": "drain",
    "break off": "abort",
}
# Seconds between two looks at a run's progress.
_SLICE: Final = 0.1
# Seconds that Ctrl-C leaves the request under way for its response: without it, the outcomes of its
# rows are unknown.
_GRACE: Final = 1.5
# Seconds until an interrupted run that does not end is left to itself.
_PATIENCE: Final = 5.0


def supervise(
    run: Run,
    signals: HeldSignals,
    *,
    progress: bool | None,
    monitor: Monitor | None,
) -> OutreachError | None:
    """Run a submission in a thread of its own.

    So a signal never falls between two steps that belong together, such as a response and its entry
    in the journal.

    Returns
    -------
    OutreachError or None
        What ended the run early, or kept rows from being added.

    Raises
    ------
    OutreachError
        Nothing at all was sent.
    """
    watched = _Supervision(run, signals, monitor)
    watched.carry_out(progress)
    if watched.requested == "abort":
        return OutreachError(_INTERRUPTED)
    fault = watched.fault
    if fault is not None and not isinstance(fault, OutreachError):
        error = OutreachError(
            f"Unexpected internal error: {type(fault).__name__}. Report it, with the traceback "
            "that error.__cause__ holds."
        )
        error.__cause__ = fault
        return error
    if run.error is not None and not run.requests:
        raise run.error
    if run.error is None and watched.requested == "drain" and run.pending:
        return OutreachError(_CANCELLED)
    return run.error


@dataclass
class _Supervision:
    """A run under watch, and whether it was asked to end.

    Attributes
    ----------
    requested : {"continue", "drain", "abort"}
    fault : BaseException or None
        What the run, or its monitor, raised.
    """

    run: Run
    signals: HeldSignals
    monitor: Monitor | None
    requested: Directive = "continue"
    fault: BaseException | None = None

    def carry_out(self, progress: bool | None) -> None:
        """Let the run send until it is done, or to be left."""
        run, token = self.run, CancellationToken()
        executor = ThreadPoolExecutor(
            1, "outreach_frames", initializer=bind_thread, initargs=(token, current_status.get())
        )
        future: Future[None] | None = None
        rows = sum(len(chunk.positions) for chunk in run.pending)
        try:
            with progress_bar(rows, description="Adding", unit="leads", progress=progress) as bar:
                self._ask()
                run.over = self.requested != "continue"
                future = executor.submit(run.send)
                self._poll(bar)
        except KeyboardInterrupt:  # where no handler could be installed
            self.requested = "abort"
        finally:
            # Whatever ends the watch, nothing more is sent without a report.
            run.over = True
            executor.shutdown(wait=False)
            if future is None:
                run.close()
        if self.requested == "abort":
            for seconds in (_GRACE, _PATIENCE):
                # A further Ctrl-C, from somebody who cannot wait, must not cost the report.
                with suppress(KeyboardInterrupt):
                    run.done.wait(seconds)
                token.set()
        elif future is not None:
            self.fault = self.fault or future.exception()

    def _poll(self, bar: tqdm[NoReturn]) -> None:
        """Show the run's progress until it is done or to be aborted."""
        done = False
        while not done:
            done = self.run.done.wait(_SLICE)
            _show(self.run.tally, bar)
            before = self.requested
            self._ask()
            if self.requested == "abort":
                if not done:
                    return
                self.requested = before
            self.run.over |= self.requested != "continue"

    def _ask(self) -> None:
        """Ask the monitor; a request to end is never taken back."""
        directive: Directive = "continue"
        if self.monitor is not None and self.fault is None:
            try:
                answer = self.monitor(self.run)
                directive = _OLD_DIRECTIVES.get(answer, answer)
            except Exception as error:  # noqa: BLE001 - whatever it is, the report must not be lost
                self.fault, directive = error, "drain"
        if directive == "abort" or self.signals.count:
            self.requested = "abort"
        elif directive != "continue":
            self.requested = "drain"


def _show(tally: Mapping[str, int], bar: tqdm[NoReturn]) -> None:
    counts = dict.fromkeys(statuses.KINDS, 0)
    for status, rows in tally.items():
        counts[statuses.kind_of(status)] += rows
    bar.set_postfix(counts, refresh=False)
    bar.update(sum(counts.values()) - bar.n)
