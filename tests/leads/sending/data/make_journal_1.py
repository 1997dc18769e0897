"""Writes `journal_1.sql`: a journal as version 0.1 of the package left it, killed in a request.

Run with that version on the path: `git worktree add old 1428c05`, then in `old`
`PYTHONPATH=. python <this file>`. The service's address is written as `{service}`.
"""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

ROWS = {
    "email": [
        "Ada@Example.com",
        "bo@example.com",
        None,
        "unknown",
        "bo@example.com",
        "cy@x.example",
    ]
    + [f"lead{row}@example.com" for row in range(4)],
    "profnet_url": [None, "https://profnet.example/in/bo", "https://profnet.example/in/di/"]
    + [None] * 7,
    "city": ["Bern", None, "Oslo", "Rome", "Kyiv", "Łódź", "Bern", "", "Lima", "Graz"],
}


def main() -> None:
    """Submit, and write the journal down."""
    from outreach_frames.client import Client
    from outreach_frames.leads.plan import make_plan
    from tests import scripted as script

    responses = [
        script.json({"total": 2, "total_added_to_sequence": 2}),
        script.json({"error": "odd"}, 400),
        script.reset(),
        script.json({"error": "who are you?"}, 401),
    ]
    warnings.simplefilter("ignore")
    with TemporaryDirectory() as folder, script.scripted(responses) as service:
        journal = Path(folder) / "journal"
        with Client(service.url, "token", cache=None, backoff=0) as client:
            plan = make_plan(pd.DataFrame(ROWS), "s1", data=["city"], chunk_size=2)
            report = replace(plan, client=client).submit(journal=journal)
        print(report.rows["status"].tolist())
        with closing(sqlite3.connect(journal)) as connection:
            pragmas = [
                f"PRAGMA {name} = {connection.execute(f'PRAGMA {name}').fetchone()[0]};"
                for name in ("application_id", "user_version")
            ]
            text = "\n".join([*pragmas, *connection.iterdump(), ""])
        text = text.replace(service.url, "{service}")
        Path(__file__).with_name("journal_1.sql").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
