"""Progress bars, shown only where somebody looks."""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from tqdm import tqdm

_DELAY_SECONDS = 0.5


def progress_bar(
    total: int | None,
    *,
    description: str,
    unit: str,
    progress: bool | None = None,
    done: int = 0,
) -> tqdm[NoReturn]:
    """Return a tqdm bar that shows in a notebook or a terminal when a read takes a while.

    `progress` True shows it everywhere and at once, False nowhere. `done` is where it starts.
    """
    shown = _is_watched() if progress is None else progress
    try:
        return _bar(total, done, description, unit, shown=shown, at_once=bool(progress))
    except Exception:  # noqa: BLE001 - no bar is worth the work that it shows
        return _bar(total, done, description, unit, shown=False, at_once=False)


def _bar(
    total: int | None, done: int, description: str, unit: str, *, shown: bool, at_once: bool
) -> tqdm[NoReturn]:
    with warnings.catch_warnings(action="ignore"):
        from tqdm.auto import tqdm  # noqa: PLC0415 - slow to import, and most calls show no bar

    return tqdm(
        total=total,
        initial=done,
        desc=description,
        unit=f" {unit}",
        file=None if _in_notebook() else _Lenient(sys.stderr),
        disable=not shown or sys.stderr is None,
        delay=0 if at_once else _DELAY_SECONDS,
        leave=at_once,
    )


class _Lenient:
    """A stream that drops what it cannot write: a closed pipe, a full disk, another encoding."""

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


def announce(message: str) -> None:
    """Say on a terminal why a call takes longer, above the bars that it shows."""
    with suppress(AttributeError, OSError, ValueError):
        if sys.stderr.isatty():
            from tqdm import tqdm  # noqa: PLC0415 - slow to import, and few calls wait

            tqdm.write(message, file=sys.stderr)


def _is_watched() -> bool:
    return _in_terminal() or _in_notebook()


def _in_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # none, or closed
        return False


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
