"""MailboxLimits: change the daily limits of mailboxes by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import pandas as pd
import traitlets

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.common.text import printable
from outreach_frames.errors import InvalidInputError, OutreachError, ServiceError
from outreach_frames.resources.mailboxes import mailboxes, set_daily_email_limit, stops_all
from outreach_frames.widgets.base import Panel, error_notice, notice, read_assets
from outreach_frames.widgets.mailbox_limits.state import (
    Change,
    Mailbox,
    Result,
    changes_code,
    changes_frame,
    check_new_limit,
    count_mailboxes,
    describe_capacity,
    describe_results,
    list_changes,
    read_mailboxes,
    results_frame,
)

# The same id may belong to another mailbox in another account.
_OTHER_CONNECTION = (
    "The connection has changed since these mailboxes were read. Nothing was sent. Reload and "
    "check the changes again."
)
_CHANGES_DIFFER = "The changes differ from the page. Nothing was sent. Check the changes again."


class MailboxLimits(Panel):
    """Change daily limits of mailboxes in a notebook and see the result of each change.

    The widget reads the mailboxes when it is created. Nothing is sent until you press the button
    with the number of mailboxes to change.

    Parameters
    ----------
    client : Client, optional
        By default the client of the last `connect`.

    Attributes
    ----------
    value : dict of str to int
        The new limits by mailbox id; you can assign new limits.
    revision : int
        Increases with every edit. The button sends only the changes that the page has shown.

    Notes
    -----
    Interface: GET /mailboxes, PATCH /mailboxes/{id}. The bounds of a limit are undocumented.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None) as client:
    ...     limits = of.widgets.MailboxLimits(client=client)
    ...     mailbox = limits.mailboxes["id"].iloc[0]
    >>> limits.value = {mailbox: 60}
    >>> limits.changes["to"].tolist()
    [60]
    """

    actions: ClassVar[tuple[str, ...]] = ("ready", "edit", "discard", "reload", "apply", "cancel")

    _esm = read_assets("common.js", "mailbox_limits/widget.js")
    _css = read_assets("common.css", "mailbox_limits/widget.css")

    value: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)

    def __init__(self, client: Client | None = None) -> None:
        super().__init__(client)
        self._frame: pd.DataFrame | None = None
        self._read_from: Client | None = None
        self._listed: list[Mailbox] = []
        self._problems: dict[str, str] = {}
        self._results: dict[str, Result] = {}
        self._applied: dict[str, Change] = {}
        self._shown_changes: list[Change] = []
        self.revision: int = 0
        self._sent_revision = -1
        self._is_cancelled = False
        self._show_plan()
        self.reload()

    @property
    def mailboxes(self) -> pd.DataFrame:
        """The mailboxes as last read, with the limits that were changed since."""
        if self._frame is None:
            self._take(*self._read())
        assert self._frame is not None
        return self._frame.copy()

    @property
    def changes(self) -> pd.DataFrame:
        """The pending changes: id, email (str), from, to (Int64)."""
        return changes_frame(self._changes())

    @property
    def results(self) -> pd.DataFrame:
        """The results of the last changes, one row per mailbox.

        id, email (str), limit (Int64: the limit that the service reports now), status (str:
        `changed`; `differs`: the service reports another limit than the requested one; `failed`;
        `unknown`: the limit may have changed; `not_sent`), detail (str).
        """
        return results_frame(self._results.values())

    @property
    def code(self) -> str:
        """Python code for the changes that this widget made and the pending changes."""
        pending = {change.id: change for change in self._changes()}
        return changes_code((self._applied | pending).values())

    def reload(self) -> None:
        """Read the mailboxes again and keep pending changes."""
        self._start("Reading the mailboxes", self._read, self._on_read)

    def edit(self, limits: Mapping[str, object]) -> None:
        """Set new limits by mailbox id; None discards a new limit."""
        known = {one.id for one in self._listed}
        value = dict(self.value)
        for identity, limit in limits.items():
            if self._is_sending() or identity not in known:
                continue
            self._problems.pop(identity, None)
            value.pop(identity, None)
            if limit is not None:
                try:
                    value[identity] = check_new_limit(limit)
                except InvalidInputError:
                    self._problems[identity] = "Enter a whole number."
        self._set_value(value)

    def discard(self) -> None:
        """Discard all pending changes."""
        if not self._is_sending():
            self._problems = {}
            self._set_value({})

    def apply(self, revision: int) -> None:
        """Send the changes of this revision; a second call does nothing."""
        if self.busy or revision == self._sent_revision:
            return
        changes = self._changes()
        # Changing `value` in place does not change the revision.
        if revision != self.revision or self._problems or changes != self._shown_changes:
            self._notify(notice("warning", _CHANGES_DIFFER))
            self._on_changes()
            return
        if not changes:
            return
        client = self._client()
        if client is not self._read_from:
            self._notify(notice("warning", _OTHER_CONNECTION))
            return
        self._sent_revision = revision
        self._is_cancelled = False
        self._results = {}
        self._show_mailboxes()
        self._show_plan()
        self._start(
            f"Changing {count_mailboxes(len(changes))}",
            partial(self._send_all, client, changes),
            self._on_sent,
            partial(self._on_failed, changes),
            total=len(changes),
        )

    def cancel(self) -> None:
        """Send nothing after the current request."""
        self._is_cancelled = True
        if self.status or not self._is_sending():
            self._task.set()

    @traitlets.observe("value")
    def _on_value(self, _change: object) -> None:
        self._background.on_loop(self._on_changes)

    @traitlets.validate("value")
    def _check_value(self, proposal: Mapping[str, Any]) -> dict[str, int]:
        return {identity: check_new_limit(limit) for identity, limit in proposal["value"].items()}

    def _set_value(self, value: dict[str, int]) -> None:
        if value == self.value:
            self._on_changes()
        else:
            self.value = value

    def _changes(self) -> list[Change]:
        return list_changes(self._listed, self.value)

    def _on_changes(self) -> None:
        self.revision += 1
        self._notify_host()
        self._show_plan()

    def _read(self) -> tuple[Client, pd.DataFrame]:
        client = self._client()
        return client, mailboxes(refresh=True, progress=False, client=client)

    def _take(self, client: Client, frame: pd.DataFrame) -> None:
        self._read_from, self._frame, self._listed = client, frame, read_mailboxes(frame)
        self._on_changes()
        self._show_mailboxes()

    def _on_read(self, read: tuple[Client, pd.DataFrame], warnings: list[str]) -> None:
        self._take(*read)
        if gone := len(self.value.keys() - {one.id for one in self._listed}):
            verb = "is" if gone == 1 else "are"
            missing = f"{count_mailboxes(gone)} with a new limit {verb} no longer listed."
            warnings = [*warnings, missing]
        self._notify(warnings=warnings)

    def _send_all(self, client: Client, changes: Sequence[Change]) -> BaseException | None:
        """Send changes one after the other and return the error that stopped them, if any."""
        stopped_by: OutreachError | None = None
        for change in changes:
            if stopped_by is not None:
                result = _not_sent(change, "Not sent: the last error would have occurred again.")
            elif self._is_cancelled:
                result = _not_sent(change, "Not sent: cancelled.")
            else:
                result, error = _send_one(client, change)
                stopped_by = error if error is not None and stops_all(error) else None
                if error is not None and self._task.is_set and result.status == "failed":
                    stopped_by, result = None, _not_sent(change, "Not sent: cancelled.")
            self._background.deliver(self._record_result, result)
        return stopped_by

    def _record_result(self, result: Result) -> None:
        change = result.change
        self._results[change.id] = result
        self.progress = [len(self._results), self.progress[1]]
        self.status = ""
        if result.limit is not None:
            self._applied[change.id] = change
        # Store the result for views that open during the run, too.
        self._shown["mailboxes"]["results"][change.id] = _result_content(result)
        self.send({"kind": "result", "id": change.id, **_result_content(result)})

    def _on_sent(self, stopped_by: BaseException | None, warnings: list[str]) -> None:
        self._apply_results()
        results = self._results.values()
        all_changed = all(one.status == "changed" for one in results)
        notices = [notice("info" if all_changed else "warning", describe_results(results))]
        if stopped_by is not None:
            notices.insert(0, error_notice(stopped_by))
        self._notify(*notices, warnings=warnings)

    def _on_failed(self, changes: Sequence[Change], error: BaseException) -> None:
        """After an unexpected error, record a result for each change that has no result."""
        remaining = [change for change in changes if change.id not in self._results]
        for change in remaining[:1]:
            words = f"May have changed: {type(error).__name__}. Press Reload to see the limit."
            self._record_result(Result(change, None, "unknown", words))
        for change in remaining[1:]:
            self._record_result(_not_sent(change, "Not sent: an error stopped the run."))
        self._apply_results()

    def _apply_results(self) -> None:
        """Set the limits that the service reported; keep other changes pending."""
        done = {key: one for key, one in self._results.items() if one.limit is not None}
        assert self._frame is not None
        frame = self._frame.copy()
        limits = frame["id"].map({key: one.limit for key, one in done.items()}).astype("Int64")
        frame["daily_email_limit"] = limits.fillna(frame["daily_email_limit"])
        self._frame, self._listed = frame, read_mailboxes(frame)
        self._set_value(
            {
                identity: limit
                for identity, limit in self.value.items()
                if identity not in done or limit != done[identity].change.after
            }
        )
        self._show_mailboxes()

    def _show_mailboxes(self) -> None:
        known = dict.fromkeys([*spec.MAILBOX_STATUSES, *(one.status for one in self._listed)])
        self._show(
            "mailboxes",
            mailboxes=[_page_row(one) for one in self._listed],
            statuses=[printable(status) for status in known if status is not None],
            results={key: _result_content(one) for key, one in self._results.items()},
        )

    def _show_plan(self) -> None:
        changes = self._shown_changes = self._changes()
        self._show(
            "plan",
            revision=self.revision,
            limits=self.value,
            changes=[_page_row(one) for one in changes],
            problems=self._problems,
            button=f"Change {count_mailboxes(len(changes))}",
            capacity=describe_capacity(self._listed, self.value) if self._listed else "",
            code=self.code,
        )


def _send_one(client: Client, change: Change) -> tuple[Result, OutreachError | None]:
    try:
        updated = set_daily_email_limit(change.id, change.after, client=client)
    except OutreachError as error:
        return _error_result(change, error), error
    return _response_result(change, read_mailboxes(updated)[0]), None


def _response_result(change: Change, mailbox: Mailbox) -> Result:
    if mailbox.id != change.id or mailbox.limit is None:
        words = "May have changed: the response has no limit. Press Reload to see the limit."
        return Result(change, None, "unknown", words)
    if mailbox.limit != change.after:
        words = f"The service now reports {mailbox.limit:,}, not {change.after:,}."
        return Result(change, mailbox.limit, "differs", words)
    words = f"Changed: the service now reports {mailbox.limit:,}."
    return Result(change, mailbox.limit, "changed", words)


def _error_result(change: Change, error: OutreachError) -> Result:
    shown = error_notice(error)
    details = [one for one in shown["details"] if one not in shown["text"]]
    words = " ".join([shown["text"], *details])
    if isinstance(error, ServiceError) and error.may_have_acted:
        words = f"May have changed: press Reload to see the limit. {words}"
        return Result(change, None, "unknown", words)
    return Result(change, None, "failed", f"Not changed. {words}")


def _not_sent(change: Change, words: str) -> Result:
    return Result(change, None, "not_sent", words)


def _page_row(row: Mailbox | Change) -> dict[str, Any]:
    """Return a row for the page, with visible control characters except in the id."""
    return {
        name: printable(value) if isinstance(value, str) and name != "id" else value
        for name, value in row._asdict().items()
    }


def _result_content(result: Result) -> dict[str, str]:
    return {"status": result.status, "detail": printable(result.detail)}
