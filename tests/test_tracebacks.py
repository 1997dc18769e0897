"""A notebook shows an error's message and the caller's line, and everything on request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

TOKEN = "a-secret-token-0123456789"
BEGIN = f"""
import os
import pandas as pd
import outreach_frames as of

os.environ["OUTREACH_API_KEY"] = "{TOKEN}"
frame = pd.DataFrame({{"email": ["lovelace@example.com"], "name": ["A. Lovelace"]}})
client = of.connect("http://127.0.0.1:9", cache=None, max_wait=0)
sandbox = of.connect("sandbox", cache=None)
"""
FAILURES = {
    "not found": ('of.lead_list("abc")', "NotFoundError: There is no lead list 'abc'"),
    "no service": ("of.sequences(client=client)", "ConnectionFailedError: Nothing answers at http"),
    "argument": ("of.search_people(titel=['CEO'])", "InvalidInputError: 'titel' is not a search"),
    "frame": ('frame.outreach.plan("s1", email="E-Mail")', "InvalidInputError: "),
    "file": ("of.load_filters('missing.json')", "InvalidInputError: missing.json cannot be read"),
    "configuration": ("of.connect('x y')", "ConfigurationError: The service's address is invalid"),
    "own function": ("def read():\n    return of.lead_list('abc')\n\nread()", "NotFoundError: "),
}


# A search is interrupted half a second after it begins to wait.
INTERRUPTING = """
import logging, signal, threading
class Interrupting(logging.Handler):
    def emit(self, record):
        if record.msg.startswith("waiting"):
            logger.removeHandler(self)
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
logger = logging.getLogger("outreach_frames.client.retry")
logger.setLevel("INFO")
logger.addHandler(Interrupting())
fault = of.sandbox.Fault("rate_limit", "search_people", after=15, retry_after=60)
of.connect("sandbox", cache=None).sandbox.faults = fault
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    """Start a kernel with two connections and a frame."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel()
    assert traceback_of(client, BEGIN) == ""
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def traceback_of(kernel: Any, source: str) -> str:
    """Run a cell, and return its traceback without colours."""
    shown: list[str] = []

    def collect(message: dict[str, Any]) -> None:
        shown.extend(message["content"].get("traceback", []))

    kernel.execute_interactive(source, timeout=120, output_hook=collect)
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(shown))


@pytest.mark.parametrize("case", FAILURES)
def test_a_notebook_shows_the_line_and_the_message(kernel: Any, case: str) -> None:
    """The traceback has the caller's lines and the message, but no line of the package."""
    source, message = FAILURES[case]
    shown = traceback_of(kernel, source)
    assert f"\n{message}" in shown
    assert f"> {source.count(chr(10)) + 1} {source.splitlines()[-1]}" in shown
    assert len(shown.splitlines()) <= 14
    assert "outreach_frames" not in shown
    assert "lovelace" not in shown.lower()
    assert TOKEN not in shown


@pytest.mark.parametrize(
    "call", ["of.search_people(limit=None)", "of.export_people('people.csv', limit=None)"]
)
def test_ctrl_c_shows_the_line_and_the_notes(kernel: Any, call: str, tmp_path: Path) -> None:
    """After Ctrl-C a notebook shows the caller's line and the people read, as for an error."""
    shown = traceback_of(
        kernel,
        f"{INTERRUPTING}\nos.chdir({str(tmp_path)!r})\n{call}",
    )
    # The interrupted client would have the next test wait for a minute.
    assert traceback_of(kernel, "of.connect('sandbox', cache=None)") == ""
    assert f" {call}" in shown
    assert re.search("KeyboardInterrupt: ?\n.* (rows had been read|people are kept)", shown)
    assert "/outreach_frames/" not in shown


@pytest.mark.parametrize("mode", ["Plain", "Verbose"])
def test_the_whole_traceback_is_shown_on_request(kernel: Any, mode: str) -> None:
    """`%tb Plain` shows the package's lines of the last error; no mode shows the token."""
    assert "check_filters" not in traceback_of(kernel, "of.search_people(titel=['CEO'])")
    shown = traceback_of(kernel, f"%tb {mode}")
    assert "check_filters" in shown
    assert shown.rstrip().count("InvalidInputError: 'titel' is not a search filter") == 1
    assert TOKEN not in traceback_of(kernel, "of.sequences(client=client)\n")
    assert TOKEN not in traceback_of(kernel, f"%tb {mode}")


def test_notes_are_shown_and_causes_are_not(kernel: Any) -> None:
    """The message keeps its notes; the traceback of the cause is left to `%tb Plain`."""
    shown = traceback_of(
        kernel,
        "error = of.OutreachError('Ours.')\nerror.add_note('A note.')\n"
        "raise error from ValueError('the cause')",
    )
    assert shown.endswith("OutreachError: Ours.\nA note.")
    assert "ValueError: the cause" not in shown
    assert "ValueError: the cause" in traceback_of(kernel, "%tb Plain")
