"""What all widgets share: their files, their messages, and how a click becomes a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from importlib.resources import files
from typing import Any, ClassVar, Literal, TypeVar

import anywidget
import traitlets

from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.text import printable
from outreach_frames.common.warnings import collected
from outreach_frames.errors import OutreachError, ValidationFailedError
from outreach_frames.widgets.background import Background, Task

T = TypeVar("T")
Kind = Literal["info", "warning", "error"]
# The action that a page sends once it listens.
READY = "ready"


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
    status: traitlets.Unicode[str, str | bytes] = traitlets.Unicode()
    # The page counts up after each result: a host that runs cells again when the page changes a
    # trait, as marimo does, then runs those that use the result.
    seen: traitlets.Int[int, int] = traitlets.Int().tag(sync=True)

    def __init__(self, client: Client | None, **traits: Any) -> None:
        super().__init__(**traits)
        self._given_client = client
        self._background = Background()
        self._task: Task | None = None
        self.observe(lambda change: self._send_trait(change["name"]), list(self.unsaved))
        self.on_msg(self._on_message)

    def _send_trait(self, name: str) -> None:
        self.send({"kind": "trait", "name": name, "value": getattr(self, name)})

    def _tell_host(self) -> None:
        """Have the host run the cells again that use this widget, where it does that."""
        self.send({"kind": "changed"})

    def _client(self) -> Client:
        return resolve(self._given_client)

    def _notify(self, *notices: Mapping[str, Any]) -> None:
        """Replace the messages at the top of the page."""
        self.notices = [dict(one) for one in notices]

    def _on_message(self, _widget: object, content: object, _buffers: object) -> None:
        name = content.get("action") if isinstance(content, dict) else None
        if name in self.actions:
            assert isinstance(content, dict)
            arguments = {key: value for key, value in content.items() if key != "action"}
            if name in self.immediate:
                self._call(name, arguments)
            else:
                self._background.on_loop(self._call, name, arguments)

    def _call(self, name: str, arguments: Mapping[str, Any]) -> None:
        if name == READY:
            for trait in self.unsaved:
                self._send_trait(trait)
        with self._showing_errors():
            getattr(self, name)(**arguments)

    def _start(
        self,
        busy: str,
        work: Callable[[Task], T],
        then: Callable[[T, list[str]], object],
        failed: Callable[[BaseException], object] | None = None,
    ) -> bool:
        """Do long work in a thread unless some is under way; return whether it was begun.

        `then` is called with the result and the warnings that came with it, `failed` with an error,
        which is shown too. Both are called on the kernel's loop.
        """
        if self.busy:
            return False
        self.busy, self.status = busy, ""
        self._notify()

        def collecting(task: Task) -> tuple[T, list[str]]:
            with collected() as warnings:
                return work(task), warnings

        def done(future: Future[tuple[T, list[str]]]) -> None:
            self.busy, self.status, self._task = "", "", None
            try:
                with self._showing_errors():
                    error = future.exception()
                    if error is None:
                        then(*future.result())
                        return
                    if failed is not None:
                        failed(error)
                    raise error
            finally:
                self._tell_host()

        def show_status(words: str) -> None:
            if self.busy:
                self.status = words

        self._task = self._background.start(collecting, done, show_status)
        return True

    @contextmanager
    def _showing_errors(self) -> Iterator[None]:
        """Show what is raised; what is not an error of this package goes on to the log."""
        try:
            yield
        except OutreachError as error:
            self._notify(error_notice(error))
        except Exception as error:
            self._notify(error_notice(error))
            raise
