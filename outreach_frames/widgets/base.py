"""What all widgets share: their files, what they tell, and how a click becomes a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from importlib.resources import files
from types import TracebackType
from typing import Any, ClassVar, Literal, TypeVar

import anywidget
import traitlets

from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.warnings import collected
from outreach_frames.errors import OutreachError, ValidationFailedError
from outreach_frames.widgets.background import Background, Task

T = TypeVar("T")
Kind = Literal["info", "warning", "error"]
# What a page sends when it begins to listen.
READY = "ready"


def source(*names: str) -> str:
    """Return the text of files of this folder, one behind the other.

    A module in a notebook has no address of its own, so it cannot import what lies beside it.
    """
    folder = files("outreach_frames.widgets")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def notice(kind: Kind, text: str, details: Iterable[str] = ()) -> dict[str, Any]:
    """Return something to tell the analyst, as the page shows it.

    >>> notice("info", "Saved.")
    {'kind': 'info', 'text': 'Saved.', 'details': []}
    """
    return {"kind": kind, "text": text, "details": list(details)}


def error_notice(error: BaseException) -> dict[str, Any]:
    """Return what an error says, for the page: every validation error of a 422 on its own.

    >>> error_notice(OutreachError("No service is connected."))["text"]
    'No service is connected.'
    """
    if not isinstance(error, OutreachError):
        return notice(
            "error",
            f"Something that should not happen: {type(error).__name__}. Nothing else was done. "
            "Report it, with the traceback from the notebook's log.",
        )
    problems = error.validation_errors if isinstance(error, ValidationFailedError) else ()
    return notice("error", str(error), [f"{one.error_code}: {one.message}" for one in problems])


class Panel(anywidget.AnyWidget):
    """A widget of this package: what it tells, and how a click in the page becomes a call.

    A subclass names its methods in `actions`; the page calls one by sending
    ``{"action": name, ...}``, and the method is given the rest as keywords. What such a method
    raises is told in the widget.

    Attributes
    ----------
    notices : list of dict
        What the page shows on top: `kind`, `text`, `details`.
    busy : str
        What is under way, in words; empty when nothing is.
    news : str
        Why it takes longer; empty where there is nothing to say.
    """

    # What these say may quote the service, so it goes to the page in messages: a synced trait would
    # lie, unseen, in a notebook that is saved with its widgets' state.
    told: ClassVar[tuple[str, ...]] = ("notices", "news")
    actions: ClassVar[tuple[str, ...]] = ()
    # These do not wait for the cell that may be running.
    at_once: ClassVar[tuple[str, ...]] = ("cancel",)

    notices = traitlets.List(traitlets.Dict())
    busy = traitlets.Unicode().tag(sync=True)
    news = traitlets.Unicode()

    def __init__(self, client: Client | None, **traits: Any) -> None:
        super().__init__(**traits)
        self._given_client = client
        self._background = Background()
        self._task: Task | None = None
        self.observe(lambda change: self._send_told(change["name"]), list(self.told))
        self.on_msg(self._on_message)

    def _send_told(self, name: str) -> None:
        self.send({"kind": "told", "name": name, "value": getattr(self, name)})

    def _client(self) -> Client:
        return resolve(self._given_client)

    def _tell(self, *notices: Mapping[str, Any]) -> None:
        self.notices = [dict(one) for one in notices]

    def _on_message(self, _widget: object, content: object, _buffers: object) -> None:
        name = content.get("action") if isinstance(content, dict) else None
        if name in self.actions:
            assert isinstance(content, dict)
            given = {key: value for key, value in content.items() if key != "action"}
            if name in self.at_once:
                self._act(name, given)
            else:
                self._background.on_loop(self._act, name, given)

    def _act(self, name: str, given: Mapping[str, Any]) -> None:
        if name == READY:
            for one in self.told:
                self._send_told(one)
        with _Telling(self._tell):
            getattr(self, name)(**given)

    def _start(
        self,
        busy: str,
        work: Callable[[Task], T],
        then: Callable[[T, list[str]], object],
        failed: Callable[[BaseException], object] | None = None,
    ) -> bool:
        """Do long work in a thread unless some is under way; return whether it was begun.

        `then` gets the result and the warnings that came with it. What is raised is told; `failed`
        gets it too. Both are called on the kernel's loop.
        """
        if self.busy:
            return False
        self.busy, self.news = busy, ""
        self._tell()

        def collecting(task: Task) -> tuple[T, list[str]]:
            with collected() as warnings:
                return work(task), warnings

        def done(future: Future[tuple[T, list[str]]]) -> None:
            self.busy, self.news, self._task = "", "", None
            with _Telling(self._tell):
                error = future.exception()
                if error is None:
                    then(*future.result())
                    return
                if failed is not None:
                    failed(error)
                raise error

        def said(words: str) -> None:
            if self.busy:
                self.news = words

        self._task = self._background.start(collecting, done, said)
        return True


class _Telling:
    """Tells in the widget what is raised; what is no error of this package goes on to the log."""

    def __init__(self, notify: Callable[..., None]) -> None:
        self._tell = notify

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, Exception):
            self._tell(error_notice(error))
        return isinstance(error, OutreachError)
