"""Progress bars in JupyterLab: a finished bar leaves nothing in a saved notebook."""

from __future__ import annotations

from tests.browser.lab import DARK, Notebook, connect_to
from tests.resources.search_service import service_of
from tests.scripted import Received, Reply, delayed, respond, scripted

CELLS = (
    "people = of.search_people(limit=30, page_size=10)\nprint('read', len(people))",
    "try:\n    of.search_people(limit=50, page_size=10, progress=True)\n"
    "except of.OutreachError:\n    print('failed')",
    "people[['name']].outreach.to_excel('people.xlsx').name",
)
RECORD_BARS = """() => {
    window.bars = new Set();
    new MutationObserver(() => {
        document.querySelectorAll('.jp-OutputArea progress')
            .forEach(bar => window.bars.add(bar.parentElement.textContent.trim()));
    }).observe(document.body, {childList: true, subtree: true});
}"""


def test_a_finished_bar_leaves_nothing_in_a_saved_notebook(notebook: Notebook) -> None:
    """A long run shows a bar that its end or an error clears; a short run shows none."""
    pages = service_of(50)

    def slow(received: Received) -> Reply:
        if received.json["page"] > 3:
            return respond(status=400)
        return delayed(0.6, pages(received))

    notebook.page.evaluate(RECORD_BARS)
    with scripted(slow) as service:
        notebook.run(connect_to(service), *CELLS)
    bars = notebook.page.evaluate("() => [...window.bars]")
    assert {bar.split()[2] for bar in bars} >= {"10/30", "20/50"}, bars
    assert all(bar.startswith("people:") for bar in bars), bars
    notebook.reopen()
    panel = notebook.page.locator(".jp-NotebookPanel")
    outputs = panel.locator(".jp-OutputArea-output")
    assert outputs.all_inner_texts() == ["read 30\n", "failed\n", "'people.xlsx'"]
    notebook.screenshot("progress", panel)
    notebook.theme(DARK)
    notebook.screenshot("progress_dark", panel)
