"""Supervise a run from the calling thread: show progress, and handle stop requests and signals."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from outreach_frames.common.cancellation import CancellationToken, bind_thread, current_status
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.signals import HeldSignals
from outreach_frames.errors import OutreachError
from outreach_frames.leads import statuses
from outreach_frames.leads.sending.run import Monitor, Run

if TYPE_CHECKING:
    from tqdm import tqdm

_INTERRUPTED: Final = (
    "Interrupted. Rows of the current request are unknown if the request may have arrived; later "
    "rows were not sent."
)
_CANCELLED: Final = "Cancelled. Rows after the last request were not sent."
_POLL_SECONDS: Final = 0.1
# Wait for the current request's response after Ctrl-C; without a response, its rows are unknown.
_RESPONSE_SECONDS: Final = 1.5
# Then wait for the cancelled run to end, before abandoning it.
_ABANDON_SECONDS: Final = 5.0


def supervise(
    run: Run,
    signals: HeldSignals,
    *,
    progress: bool | None,
    monitor: Monitor | None,
) -> OutreachError | None:
    """Run a submission in a thread; return its error, or raise the error if nothing was sent.

    In a separate thread, no signal can interrupt between a response and its journal entry.
    """
    supervision = _Supervision(run, signals, monitor)
    supervision.run_to_end(progress)
    if supervision.requested == "abort":
        return OutreachError(_INTERRUPTED)
    fault = supervision.fault
    if fault is not None and not isinstance(fault, OutreachError):
        error = OutreachError(
            f"Unexpected internal error: {type(fault).__name__}. Report the error with the "
            "traceback in error.__cause__."
        )
        error.__cause__ = fault
        return error
    if run.error is not None and not run.requests:
        raise type(run.error)(f"{run.error} Nothing was sent.") from run.error
    if run.error is None and supervision.requested == "drain" and run.pending:
        return OutreachError(_CANCELLED)
    return run.error


@dataclass
class _Supervision:
    """A run, the request to stop, and the exception that the run or its monitor raised."""

    run: Run
    signals: HeldSignals
    monitor: Monitor | None
    requested: Literal["continue", "drain", "abort"] = "continue"
    fault: BaseException | None = None

    def run_to_end(self, progress: bool | None) -> None:
        """Run until all rows are sent, or the run is stopped or abandoned."""
        run, token = self.run, CancellationToken()
        executor = ThreadPoolExecutor(
            1, "outreach_frames", initializer=bind_thread, initargs=(token, current_status.get())
        )
        future: Future[None] | None = None
        rows = sum(len(chunk.positions) for chunk in run.pending)
        try:
            with progress_bar(rows, description="Adding", unit="leads", progress=progress) as bar:
                self._ask_monitor()
                run.over = self.requested != "continue"
                future = executor.submit(run.send)
                self._poll(bar)
        except KeyboardInterrupt:  # no signal handler could be installed
            self.requested = "abort"
        finally:
            # Send nothing more after supervision ends, for whatever reason.
            run.over = True
            executor.shutdown(wait=False)
            if future is None:
                run.journal.close()
        if self.requested == "abort":
            for seconds in (_RESPONSE_SECONDS, _ABANDON_SECONDS):
                # Another Ctrl-C must not lose the report.
                with suppress(KeyboardInterrupt):
                    run.done.wait(seconds)
                token.set()
        elif future is not None:
            self.fault = self.fault or future.exception()

    def _poll(self, bar: tqdm[NoReturn]) -> None:
        """Show progress until the run is done or an abort is requested."""
        done = False
        while not done:
            done = self.run.done.wait(_POLL_SECONDS)
            counts = statuses.count_kinds(self.run.tally)
            bar.set_postfix(counts, refresh=False)
            bar.update(sum(counts.values()) - bar.n)
            before = self.requested
            self._ask_monitor()
            if self.requested == "abort":
                if not done:
                    return
                self.requested = before
            self.run.over |= self.requested != "continue"

    def _ask_monitor(self) -> None:
        """Update `requested`; a request to stop is final."""
        if self.monitor is not None and self.fault is None:
            try:
                if self.monitor(self.run):
                    self.requested = "drain"
            except Exception as error:  # noqa: BLE001 - no error may lose the report
                self.fault, self.requested = error, "drain"
        if self.signals.count:
            self.requested = "abort"
