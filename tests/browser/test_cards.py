"""Cards of results in JupyterLab."""

from __future__ import annotations

import pytest

from outreach_frames.sandbox import Sandbox
from tests.browser.lab import DARK, Notebook, connect_to

CARD = """
from IPython.display import HTML
sequence = of.sequences(status="active")["id"].iloc[0]
people = of.search_people(limit=3)
report = people.outreach.add_to_sequence(sequence, dry_run=True, progress=False)
HTML(f'<div style="width:{width}px">{report._repr_html_()}</div>')
"""


@pytest.mark.parametrize(("width", "is_stacked"), [(300, True), (1000, False)])
def test_a_card_of_a_narrow_page_stacks_its_texts(
    notebook: Notebook, sandbox: Sandbox, width: int, *, is_stacked: bool
) -> None:
    """A status's explanation stands beside it, or below it where the page is narrow."""
    notebook.run(connect_to(sandbox), f"width = {width}", CARD)
    panel = notebook.page.locator(".jp-NotebookPanel")
    row = panel.locator("tr", has_text="would_send")
    name, text = row.locator("th").bounding_box(), row.locator("td").last.bounding_box()
    assert name is not None
    assert text is not None
    assert (text["y"] >= name["y"] + name["height"]) is is_stacked
    assert (text["x"] == name["x"]) is is_stacked
    notebook.screenshot(f"card_{width}", panel)
    notebook.theme(DARK)
    notebook.screenshot(f"card_{width}_dark", panel)
