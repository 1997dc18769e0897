"""The browser tests' own harness detects errors."""

from __future__ import annotations

import pytest

from outreach_frames.sandbox import Sandbox
from tests.browser.lab import DARK, CellFailedError, Notebook, connect_to

COUNTER = '''
import anywidget, traitlets
class Counter(anywidget.AnyWidget):
    _esm = """
    export default { render({ model, el }) {
        el.classList.add("outreach");
        const button = document.createElement("button");
        button.textContent = "More";
        button.onclick = () => {
            model.set("value", model.get("value") + 1);
            model.save_changes();
        };
        el.append(button);
    } };
    """
    value = traitlets.Int(0).tag(sync=True)
counter = Counter()
counter
'''


def test_a_click_reaches_python(notebook: Notebook, sandbox: Sandbox) -> None:
    """A click in the page changes the trait, and a restart resets it."""
    notebook.run(connect_to(sandbox), COUNTER)
    notebook.widget.get_by_role("button", name="More").click()
    notebook.wait_until("counter.value == 1")
    assert notebook.add("counter.value") == "1"
    assert notebook.ask("print(len(of.mailboxes()) > 0)") == "True\n"
    notebook.theme(DARK)
    assert notebook.screenshot("harness").stat().st_size > 0
    assert '"value": 1' in notebook.save().read_text()
    notebook.restart(COUNTER)
    notebook.widget.get_by_role("button", name="More").click()
    notebook.wait_until("counter.value == 1")


def test_a_cell_that_raises_fails_the_test(notebook: Notebook) -> None:
    """A cell with an error fails the test with the kernel's traceback."""
    with pytest.raises(CellFailedError, match=r"(?s)1 / 0.*ZeroDivisionError"):
        notebook.run("1 / 0")
    with pytest.raises(CellFailedError, match="NameError"):
        notebook.add("missing")
    with pytest.raises(CellFailedError, match="NameError"):
        notebook.ask("missing")


def test_a_request_to_another_machine_is_recorded(notebook: Notebook) -> None:
    """A request to another machine is blocked and recorded."""
    notebook.run("1")
    notebook.page.evaluate("() => fetch('https://elsewhere.example/').catch(() => null)")
    assert notebook.watched.outgoing == ["https://elsewhere.example/"]
    notebook.watched.forget()


def test_an_error_of_a_widget_is_recorded(notebook: Notebook) -> None:
    """An error in a widget's module is recorded."""
    notebook.run(COUNTER.replace('model.get("value") + 1', "missing"))
    with notebook.page.expect_event("pageerror"):
        notebook.widget.get_by_role("button", name="More").click()
    assert "missing is not defined" in notebook.watched.errors[0]
    notebook.watched.forget()
