"""Progress bars for terminals and notebooks."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakSet

if TYPE_CHECKING:
    from tqdm import tqdm

_DELAY_SECONDS = 0.5
_bars: WeakSet[tqdm[NoReturn]] = WeakSet()


def progress_bar(
    total: int | None,
    *,
    description: str,
    unit: str,
    progress: bool | None = None,
    done: int = 0,
) -> tqdm[NoReturn]:
    """Return a tqdm bar, shown by default for long runs in terminals and notebooks."""
    shown = _in_terminal() or _in_notebook() if progress is None else progress
    try:
        return _bar(total, done, description, unit, shown=shown, at_once=bool(progress))
    except Exception:  # noqa: BLE001 - a broken bar must not stop the work
        return _bar(total, done, description, unit, shown=False, at_once=False)


def _bar(
    total: int | None, done: int, description: str, unit: str, *, shown: bool, at_once: bool
) -> tqdm[NoReturn]:
    # Slow to import, and most calls show no bar.
    from tqdm import tqdm  # noqa: PLC0415

    kind: type[tqdm[NoReturn]] = tqdm
    if shown and _in_notebook():
        from outreach_frames.common.notebook_bar import NotebookBar  # noqa: PLC0415

        kind = NotebookBar
    bar = kind(
        total=total,
        initial=done,
        desc=description,
        unit=f" {unit}",
        file=_BestEffortStream(sys.stderr),
        disable=not shown or sys.stderr is None,
        delay=0 if at_once else _DELAY_SECONDS,
        leave=at_once,
    )
    _bars.add(bar)
    return bar


class _BestEffortStream:
    """A stream that ignores write errors: a closed pipe, a full disk, an unsupported character."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def set_step(bar: tqdm[NoReturn], step: str) -> None:
    """Name the current step at a bar; a refresh would show the bar of a short run."""
    bar.set_postfix_str(step, refresh=bar.format_dict["elapsed"] > _DELAY_SECONDS)


def announce(message: str) -> None:
    """Show a message in the progress bars, or print it if there is no bar and a terminal.

    "" removes the message from the bars.
    """
    with suppress(Exception):  # a broken bar must not stop the work
        bars = [bar for bar in list(_bars) if not bar.disable]
        for bar in bars:
            bar.set_postfix_str(message)
        if message and not bars and sys.stderr.isatty():
            from tqdm import tqdm  # noqa: PLC0415 - slow to import, and few calls wait

            tqdm.write(message, file=sys.stderr)


def _in_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # missing or closed
        return False


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
