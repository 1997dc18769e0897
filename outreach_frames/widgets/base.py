"""The base of all widgets: assets, messages, calls from the page, and work in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from importlib.resources import files
from typing import Any, ClassVar, Literal, TypeVar

import anywidget
import traitlets

from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.cancellation import (
    CancellationToken,
    Progress,
    StatusListener,
    bind_thread,
)
from outreach_frames.common.text import printable
from outreach_frames.common.warnings import collect_warnings
from outreach_frames.errors import OutreachError, ValidationFailedError

T = TypeVar("T")
# A result and its warnings.
Done = Future[tuple[T, list[str]]]
Kind = Literal["info", "warning", "error"]


def read_assets(*names: str) -> str:
    """Join files of this folder: a JavaScript module in a notebook cannot import other modules."""
    folder = files("outreach_frames.widgets")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def notice(kind: Kind, text: str, details: Iterable[str] = ()) -> dict[str, Any]:
    """Build a message for the page.

    >>> notice("info", "Saved.")
    {'kind': 'info', 'text': 'Saved.', 'details': []}
    """
    return {"kind": kind, "text": printable(text), "details": [*map(printable, details)]}


def error_notice(error: BaseException) -> dict[str, Any]:
    """Build a message from an error, with all validation errors of a 422 response as details."""
    if not isinstance(error, OutreachError):
        return notice(
            "error",
            f"Unexpected internal error: {type(error).__name__}. Nothing else was done. Report the "
            "error with the traceback from the notebook's log.",
        )
    problems = error.validation_errors if isinstance(error, ValidationFailedError) else ()
    details = [f"{problem.error_code}: {problem.message}" for problem in problems]
    return notice("error", str(error), details)


class Background:
    """Run a widget's long work in threads, and all changes of the widget on the event loop."""

    # Without an event loop, as in a script, each call runs in the calling thread.

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.current_thread()
        with suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()

    @property
    def over(self) -> bool:
        """Whether the loop has ended, for example because the kernel is shutting down."""
        return self._loop is not None and not self._loop.is_running()

    def deliver(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the loop, from any thread."""
        if self._loop is None:
            function(*arguments)
        else:
            # Ignore a closed loop: the kernel is shutting down.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(function, *arguments)

    def on_loop(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the loop: at once in the loop's thread, later in other threads."""
        # Messages from the page may arrive in another thread: JupyterLab uses a subshell.
        if threading.current_thread() is self._thread:
            function(*arguments)
        else:
            self.deliver(function, *arguments)

    def start(
        self,
        cancellation: CancellationToken,
        work: Callable[[], T],
        then: Callable[[Done[T]], object],
        show_status: StatusListener,
    ) -> None:
        """Do work in a new thread; call `then` and `show_status` on the loop."""
        # `show_status` gets the progress, or the reason for a delay, and "" when the delay is over.

        def in_thread() -> tuple[T, list[str]]:
            bind_thread(cancellation, partial(self.deliver, show_status))
            with collect_warnings() as warnings:
                return work(), warnings

        executor = ThreadPoolExecutor(1, "outreach_frames_widget")
        executor.submit(in_thread).add_done_callback(partial(self.deliver, then))
        executor.shutdown(wait=False)


class Panel(anywidget.AnyWidget):
    """A widget whose page calls the methods named in `actions` and shows their errors."""

    # These traits may contain texts of the service. They are sent as messages, because a saved
    # notebook may contain synced traits.
    message_traits: ClassVar[tuple[str, ...]] = ("notices", "status")
    # The page sends {"action": name, **arguments}.
    actions: ClassVar[tuple[str, ...]] = ()

    notices: traitlets.List[dict[str, Any]] = traitlets.List(traitlets.Dict())
    # A description of the running work, or "".
    busy: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)
    # The numbers of finished items and of all items; the latter is 0 if unknown.
    progress: traitlets.List[int] = traitlets.List(traitlets.Int(), [0, 0]).tag(sync=True)
    # The reason for a delay of the work, or "".
    status: traitlets.Unicode[str, str | bytes] = traitlets.Unicode()
    # The page increments this trait after each result. Reactive hosts such as marimo then rerun the
    # cells that use the result.
    seen: traitlets.Int[int, int] = traitlets.Int().tag(sync=True)

    def __init__(self, client: Client | None, **traits: Any) -> None:
        super().__init__(**traits)
        self._client_argument = client
        self._background = Background()
        # The token that cancels the current work.
        self._cancellation = CancellationToken()
        self._shown: dict[str, dict[str, Any]] = {}
        self.observe(
            lambda change: self._show(change.name, value=change.new), list(self.message_traits)
        )
        self.on_msg(self._on_message)

    def ready(self) -> None:
        """Send all content that is not in a synced trait to a new view."""
        for kind, content in list(self._shown.items()):
            self.send({"kind": kind, **content})

    def _show(self, kind: str, **content: Any) -> None:
        """Send content to all current and future views, but not to saved notebooks."""
        self._shown[kind] = content
        self.send({"kind": kind, **content})

    def _is_sending(self) -> bool:
        # Only work that sends changes starts with a total.
        return bool(self.busy) and self.progress[1] > 0

    def _client(self) -> Client:
        return resolve(self._client_argument)

    def _notify(self, *notices: dict[str, Any], warnings: Iterable[str] = ()) -> None:
        """Replace the messages at the top of the page."""
        self.notices = [*notices, *(notice("warning", warning) for warning in warnings)]

    def _on_message(self, _widget: object, content: object, _buffers: object) -> None:
        match content:
            case {"action": name, **arguments} if name in self.actions:
                # Cancel at once, even while a cell is running.
                if name == "cancel":
                    self._call(name, arguments)
                else:
                    self._background.on_loop(self._call, name, arguments)

    def _call(self, name: str, arguments: Mapping[Any, Any]) -> None:
        with self._show_errors():
            getattr(self, name)(**arguments)

    def _start(
        self,
        busy: str,
        work: Callable[[], T],
        then: Callable[[T, list[str]], object],
        failed: Callable[[BaseException], object] = lambda _error: None,
        *,
        total: int = 0,
    ) -> None:
        """Do long work in a thread, unless other work is running; show errors."""
        # `then` gets the result and its warnings; `then` and `failed` run on the kernel's loop.
        if self.busy:
            return
        self.progress = [0, total]
        self.busy, self.status = busy, ""
        self._notify()

        def done(future: Done[T]) -> None:
            self.busy, self.status = "", ""
            try:
                with self._show_errors():
                    error = future.exception()
                    if error is None:
                        then(*future.result())
                        return
                    failed(error)
                    raise error
            finally:
                # Reactive hosts rerun the cells that use this widget.
                self.send({"kind": "changed"})

        def show_status(status: str | Progress) -> None:
            if self.busy and isinstance(status, Progress):
                self.progress = [status.done, status.total or 0]
            elif self.busy:
                self.status = str(status)

        self._cancellation = CancellationToken()
        self._background.start(self._cancellation, work, done, show_status)

    @contextmanager
    def _show_errors(self) -> Iterator[None]:
        """Show errors; re-raise unexpected errors for the log."""
        try:
            yield
        except Exception as error:
            self._notify(error_notice(error))
            if not isinstance(error, OutreachError):
                raise
