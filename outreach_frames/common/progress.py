"""Progress bars: where somebody looks at them, and nowhere else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

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
    from tqdm.auto import tqdm  # noqa: PLC0415 - slow to import, and most calls show no bar

    shown = _is_watched() if progress is None else progress
    return tqdm(
        total=total,
        initial=done,
        desc=description,
        unit=f" {unit}",
        disable=not shown,
        delay=0 if progress else _DELAY_SECONDS,
        leave=bool(progress),
    )


def _is_watched() -> bool:
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
