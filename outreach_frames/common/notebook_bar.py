"""Show a progress bar in a notebook's cell."""

from __future__ import annotations

from contextlib import suppress
from html import escape
from typing import Any

from IPython.display import DisplayHandle, display
from tqdm import tqdm


class NotebookBar(tqdm):  # type: ignore[type-arg]  # not generic at run time
    """A bar in HTML, removed from the cell's output at its end, also after an error.

    A widget would leave an error in a saved notebook, which does not contain the widget's state.
    """

    def __init__(self, **options: Any) -> None:
        self._handle: DisplayHandle | None = None
        super().__init__(gui=True, **options)  # tqdm writes no text
        if not self.disable and not self.delay:
            self.refresh()

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Show the bar as it is now."""
        del msg, pos
        text = self.format_meter(**{**self.format_dict, "ncols": 0})
        done = f' value="{self.n}" max="{self.total}"' if self.total else ""
        shown = {"text/plain": text, "text/html": f"<progress{done}></progress> {escape(text)}"}
        with suppress(Exception):  # a broken bar must not stop the work
            if self._handle is None:
                self._handle = display(shown, raw=True, display_id=True)
            else:
                self._handle.update(shown, raw=True)

    def clear(self, *_options: Any, **_more: Any) -> None:
        """Leave the bar where it is: other output in the cell does not overwrite it."""

    def close(self) -> None:
        """End the bar, and remove it from the cell's output."""
        super().close()
        if self._handle is not None:
            with suppress(Exception):
                self._handle.update({}, raw=True)
            self._handle = None
