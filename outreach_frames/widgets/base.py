"""What all widgets share: their files, their messages, and how a click becomes a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from typing import Any, ClassVar, Literal, TypeVar

import anywidget
import traitlets

from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.cancellation import CancellationToken
from outreach_frames.common.text import printable
from outreach_frames.errors import OutreachError, ValidationFailedError
from outreach_frames.widgets.background import Background, Done

T = TypeVar("T")
Kind = Literal["info", "warning", "error"]


def source(*names: str) -> str:
    """Return the text of files in this folder, joined.

    A module in a notebook has no address of its own, so it cannot import its neighbours.
    """
    folder = files("outreach_frames.widgets")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def notice(kind: Kind, text: str, details: Iterable[str] = ()) -> dict[str, Any]:
    """Return a message for the analyst, as the page shows it.

    >>> notice("info", "Saved.")
    {'kind': 'info', 'text': 'Saved.', 'details': []}
    """
    return {"kind": kind, "text": printable(text), "details": [printable(one) for one in details]}


def error_notice(error: BaseException) -> dict[str, Any]:
    """Return an error as a message for the page, with each validation error of a 422 on its own.

    >>> error_notice(OutreachError("No service is connected."))["text"]
    'No service is connected.'
    """
    if not isinstance(error, OutreachError):
        return notice(
            "error",
            f"Unexpected internal error: {type(error).__name__}. Nothing else was done. Please "
            "report it with the traceback from the notebook's log.",
        )
    problems = error.validation_errors if isinstance(error, ValidationFailedError) else ()
    return notice("error", str(error), [f"{one.error_code}: {one.message}" for one in problems])


class Panel(anywidget.AnyWidget):
    """A widget of this package: its messages, and how a click in the page becomes a call.

    A subclass names its methods in `actions`; the page calls one by sending
    ``{"action": name, ...}``, and the rest becomes the method's keyword arguments. An error that
    the method raises is shown in the widget.

    Attributes
    ----------
    notices : list of dict
        The messages at the top of the page: `kind`, `text`, `details`.
    busy : str
        What is under way, in words; empty when nothing is.
    progress : list of int
        How much of it is done, and of how much in all; 0 where that is not known.
    status : str
        Why it takes longer than usual; empty where there is nothing to say.
    """

    # These may quote the service, so they go to the page as messages: a synced trait would lie,
    # unseen, in a notebook that is saved with its widgets' state.
    unsaved: ClassVar[tuple[str, ...]] = ("notices", "status")
    actions: ClassVar[tuple[str, ...]] = ()
    # These do not wait for the cell that may be running.
    immediate: ClassVar[tuple[str, ...]] = ("cancel",)

    notices: traitlets.List[dict[str, Any]] = traitlets.List(traitlets.Dict())
    busy: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)
    progress: traitlets.List[int] = traitlets.List(traitlets.Int(), [0, 0]).tag(sync=True)
    status: traitlets.Unicode[str, str | bytes] = traitlets.Unicode()
    # The page counts up after each result: a host that runs cells again when the page changes a
    # trait, as marimo does, then runs those that use the result.
    seen: traitlets.Int[int, int] = traitlets.Int().tag(sync=True)

    def __init__(self, client: Client | None, **traits: Any) -> None:
        super().__init__(**traits)
        self._given_client = client
        self._background = Background()
        # Cancels what is under way, or what was.
        self._task = CancellationToken()
        self._shown: dict[str, dict[str, Any]] = {}
        self.observe(lambda change: self._show(change.name, value=change.new), list(self.unsaved))
        self.on_msg(self._on_message)

    def ready(self) -> None:
        """Send a new view in the page everything that was shown and is not in a trait."""
        for kind, content in list(self._shown.items()):
            self.send({"kind": kind, **content})

    def _show(self, kind: str, **content: Any) -> None:
        """Send content to all views, later ones included; a saved notebook does not hold it."""
        self._shown[kind] = content
        self.send({"kind": kind, **content})

    def _is_sending(self) -> bool:
        # Only what changes something has a total from its beginning.
        return bool(self.busy) and self.progress[1] > 0

    def _tell_host(self) -> None:
        """Have the host run the cells again that use this widget, where it does that."""
        self.send({"kind": "changed"})

    def _client(self) -> Client:
        return resolve(self._given_client)

    def _notify(self, *notices: dict[str, Any], warnings: Iterable[str] = ()) -> None:
        """Replace the messages at the top of the page."""
        self.notices = [*notices, *(notice("warning", warning) for warning in warnings)]

    def _on_message(self, _widget: object, content: object, _buffers: object) -> None:
        match content:
            case {"action": name, **arguments} if name in self.actions:
                if name in self.immediate:
                    self._call(name, arguments)
                else:
                    self._background.on_loop(self._call, name, arguments)

    def _call(self, name: str, arguments: Mapping[Any, Any]) -> None:
        with self._showing_errors():
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
        """Do long work in a thread unless some is under way.

        `then` is called with the result and the warnings that came with it, `failed` with an error,
        which is shown too. Both are called on the kernel's loop. `total` is where the progress
        ends, if that is known.
        """
        if self.busy:
            return
        self.progress = [0, total]
        self.busy, self.status = busy, ""
        self._notify()

        def done(future: Done[T]) -> None:
            self.busy, self.status = "", ""
            try:
                with self._showing_errors():
                    error = future.exception()
                    if error is None:
                        then(*future.result())
                        return
                    failed(error)
                    raise error
            finally:
                self._tell_host()

        def show_status(words: str) -> None:
            if self.busy:
                self.status = words

        self._task = CancellationToken()
        self._background.start(self._task, work, done, show_status)

    @contextmanager
    def _showing_errors(self) -> Iterator[None]:
        """Show what is raised; what is not an error of this package goes on to the log."""
        try:
            yield
        except Exception as error:
            self._notify(error_notice(error))
            if not isinstance(error, OutreachError):
                raise
