"""Call all functions without optional packages: those that need an extra, and all others.

`tests/test_without_extras.py` runs this module in a new interpreter. Both modules need only the
package and pytest.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

import outreach_frames as of
from outreach_frames import cli
from tests import foreign_mock, scripted

OPENAPI = Path(of.__file__).parent / "sandbox/data/openapi.json"
OPTIONAL = (
    "dask",
    "duckdb",
    "httptools",
    "jupyterlab",
    "keyring",
    "mcp",
    "polars",
    "openpyxl",
    "starlette",
    "statsmodels",
    "uvicorn",
    "xlsxwriter",
)
LEADS = pd.DataFrame({"email": ["anna@x.example"]})


def read_workbook() -> None:
    """Read a file with a workbook's extension, without assuming a folder."""
    with tempfile.NamedTemporaryFile(suffix=".xlsx") as file:
        of.read_prospects(file.name)


# Calls by the extra that each needs.
CALLS: dict[str, dict[str, Callable[[], Any]]] = {
    "sandbox": {
        'of.connect("sandbox")': lambda: of.connect("sandbox"),
        "of.sandbox.serve()": lambda: of.sandbox.serve(people=20),
    },
    "login": {
        "of.login()": lambda: of.login("https://x.example"),
        "of.logout()": of.logout,
        "of.connect(profile=)": lambda: of.connect(profile="crm"),
    },
    "excel": {
        "df.outreach.to_excel()": lambda: LEADS.outreach.to_excel("leads.xlsx"),
        "of.read_prospects()": read_workbook,
    },
}
COMMANDS = {
    "demo": "sandbox",
    "sandbox": "sandbox",
    "search --sandbox": "sandbox",
    "login": "login",
    "mcp --sandbox": "mcp",
}


def errors() -> dict[str, str]:
    """Return the error message of each call."""
    said = {}
    for calls in CALLS.values():
        for name, call in calls.items():
            try:
                call()
            except (of.OutreachError, ImportError) as error:
                said[name] = str(error)
    return said


def commands() -> dict[str, tuple[int, str]]:
    """Return each command's exit code and standard error output."""
    ended = {}
    for command in COMMANDS:
        with contextlib.redirect_stderr(io.StringIO()) as stream:
            code = cli.main(command.split())
        ended[command] = (code, stream.getvalue())
    return ended


def respond(request: scripted.Received) -> scripted.Reply:
    """Reply with the OpenAPI document's example."""
    for path, operations in json.loads(OPENAPI.read_bytes())["paths"].items():
        operation = operations.get(request.method.lower())
        if operation and re.fullmatch(re.sub(r"{\w+}", "[^/]+", path), request.path):
            content = operation["responses"]["200"]["content"]["application/json"]
            return scripted.json(content["example"])
    return scripted.json({}, 404)


def main() -> None:
    """Run all calls that need no extra, then print the errors of the others."""
    sys.modules.update(dict.fromkeys(OPTIONAL))
    with contextlib.redirect_stdout(io.StringIO()), scripted.scripted(respond) as service:
        foreign_mock.main(service.url)
        said = {"errors": errors(), "commands": commands()}
    print(json.dumps(said))


if __name__ == "__main__":
    main()
