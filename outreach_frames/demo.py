"""The demo: run the main job step by step and show its Python code."""

from __future__ import annotations

import contextlib
import shutil
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from outreach_frames.common.atomic_files import unwritable
from outreach_frames.common.text import printable

CSV_NAME = "prospects.csv"
PLOT_NAME = "headcount.png"

_LINE_WIDTH = 104
_INDENT = "    "
_ROWS = 8


@dataclass(frozen=True)
class Step:
    """A step's title, its code, and the value to show: of a frame, only some columns."""

    title: str
    code: str
    value: str = ""
    columns: tuple[str, ...] = ()


STEPS = (
    Step(
        "Connect. The sandbox is a real HTTP service on this machine, with invented people.",
        """
        import outreach_frames as of
        client = of.connect("sandbox")
        """,
        value="client",
    ),
    Step(
        "List the sequences that accept leads now.",
        'sequences = of.sequences(status="active")',
        value="sequences",
        columns=("name", "status", "created_by_user_email"),
    ),
    Step(
        "List the mailboxes and their daily email limits.",
        "mailboxes = of.mailboxes()",
        value="mailboxes",
        columns=("email", "email_provider", "status", "daily_email_limit"),
    ),
    Step(
        "Find people: managers, directors and VPs in sales and marketing.",
        """
        people = of.search_people(
            person_seniorities=["manager", "director", "vp"],
            person_departments=["revenue", "marketing"],
            limit=None,
        )
        """,
        value="people",
        columns=("name", "title", "company_name", "company_size", "location"),
    ),
    Step(
        "List their companies' headcounts in a tidy table, largest first.",
        """
        headcount = people.outreach.headcount()
        headcount = headcount.sort_values("people", ascending=False)
        """,
        value="headcount",
        columns=("company", "department", "people", "share"),
    ),
    Step(
        "Plot the headcounts.",
        f"""
        axes = of.plots.headcount(people)
        axes.figure.savefig("{PLOT_NAME}", dpi=120)
        """,
    ),
    Step(
        "Write a CSV file with escaped formulas for a spreadsheet, and read it back unchanged.",
        f"""
        people.outreach.to_csv("{CSV_NAME}", excel=True)
        again = of.read_prospects("{CSV_NAME}")
        """,
        value="again.equals(people)",
    ),
    Step(
        "Plan how to add the first people to a sequence that takes profile URLs; nothing is sent.",
        """
        sequence_id = of.sequences(name="Founders Nordics: profile visits")["id"].item()
        plan = people.head(50).outreach.plan(sequence_id, data=["first_name", "company_name"])
        """,
        value="plan",
    ),
    Step(
        "Add them. Each row gets its outcome, and the service skips some of the leads.",
        "report = plan.submit()",
        value="report.summary()",
    ),
    Step("Close the connection and stop the sandbox.", "client.close()"),
)


def run_demo(*, folder: Path = Path()) -> None:
    """Run the main job on the embedded service, and write a CSV file and a plot.

    The job finds people, shows and saves them, and adds the first ones to a sequence.

    Parameters
    ----------
    folder : Path
        The folder for these files, created if missing; by default the current folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    names: dict[str, Any] = {}
    with contextlib.chdir(folder), contextlib.ExitStack() as stack:
        for step in STEPS:
            code = textwrap.dedent(step.code).strip()
            print(f"\n{step.title}\n\n{_as_prompt(code)}")
            exec(code, names)  # noqa: S102 - the demo runs the lines that it shows
            if step.value:
                value = eval(step.value, names)  # noqa: S307
                shown = _table(value, list(step.columns)) if step.columns else str(value)
                print(f"    >>> {step.value}\n{textwrap.indent(shown, _INDENT)}")
            if "client" in names:
                stack.callback(names["client"].close)
    print(
        f"\nFiles written: {folder / CSV_NAME} with its metadata file, and {folder / PLOT_NAME}.\n"
        "Next: outreach-frames --help for all commands; jupyter lab notebooks in a clone.\n"
    )


def _as_prompt(code: str) -> str:
    """Format code with Python's prompts."""
    lines = code.splitlines()
    prompts = ["..." if line.startswith((" ", ")")) else ">>>" for line in lines]
    return "\n".join(f"    {prompt} {line}" for prompt, line in zip(prompts, lines, strict=True))


def _table(frame: pd.DataFrame, columns: list[str]) -> str:
    with pd.option_context("display.unicode.east_asian_width", True):
        width = min(_LINE_WIDTH, shutil.get_terminal_size((_LINE_WIDTH, 0)).columns - len(_INDENT))
        text = frame[columns].head(_ROWS).to_string(max_colwidth=36, line_width=width)
    size = f"[{len(frame):,} rows x {frame.shape[1]} columns]"
    return printable(f"{text}\n\n{size}", keep="\n")
