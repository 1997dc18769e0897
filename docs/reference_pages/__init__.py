"""The reference pages, made from docstrings, `spec` and the command line in each build."""

from __future__ import annotations

from pathlib import Path

from docs.reference_pages.commands import command_line_page, exit_codes_page
from docs.reference_pages.docstrings import overview, task_page
from docs.reference_pages.facts import (
    columns_page,
    errors_page,
    faults,
    filters_page,
    statuses_page,
)
from docs.reference_pages.tasks import TASKS


def pages() -> dict[str, str]:
    """Return the pages' reStructuredText by name."""
    functions = {task.page: task_page(task) for task in TASKS}
    functions["sandbox"] += faults()
    return {
        "functions": overview(),
        **functions,
        "filters": filters_page(),
        "columns": columns_page(),
        "statuses": statuses_page(),
        "errors": errors_page(),
        "exit-codes": exit_codes_page(),
        "command-line": command_line_page(),
    }


def write(folder: Path) -> None:
    """Write the pages into a folder, and skip unchanged pages so that builds are fast."""
    for name, text in pages().items():
        file = folder / f"{name}.rst"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
