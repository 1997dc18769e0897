"""The home page at `/`. The page needs no token, so it shows neither the token nor added leads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Final

from outreach_frames.sandbox import openapi
from outreach_frames.sandbox.examples import curl, requests
from outreach_frames.sandbox.faults import KINDS, Call, Fault
from outreach_frames.sandbox.world import TODAY

if TYPE_CHECKING:
    from outreach_frames.sandbox.store import Store

PATH: Final = "/"
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
# Environment variables that the toolkit reads; requests on the page use the token's variable.
_URL_VARIABLE, _TOKEN_VARIABLE = "OUTREACH_BASE_URL", "OUTREACH_API_KEY"

_COUNT_LABELS: Final[Mapping[str, str]] = {
    "people": "people in people search",
    "companies": "companies, some without people",
    "contacts": "contacts of the account",
    "sequences": "sequences in all statuses",
    "mailboxes": "mailboxes",
    "lead_lists": "lead lists",
    "exclusion_list": "leads in the exclusion list",
    "recently_contacted": "recently contacted leads",
    "leads": "leads in sequences",
}


def render(store: Store, faults: Iterable[Fault], base_url: str) -> str:
    """Render the page of the sandbox at this address, with its active faults."""
    with store.lock:
        world = store.world()
        values = {
            "seed": escape(str(world["seed"])),
            "today": (TODAY + timedelta(days=world["days"])).isoformat(),
            "world": _table(("", ""), _counts(store)),
            "sequences": _sequences(store),
            "lead_lists": _lead_lists(store),
            "operations": "\n".join(
                _operation(each, base_url) for each in requests(store).values()
            ),
        }
    active = ", ".join(fault.kind for fault in faults)
    return _template().substitute(
        values,
        description=openapi.PATH,
        connect=escape(f"export {_URL_VARIABLE}={base_url}\nexport {_TOKEN_VARIABLE}=..."),
        python=escape(f'import outreach_frames as of\n\nclient = of.connect("{base_url}", "...")'),
        active_faults=escape(f"Active faults: {active}." if active else "No fault is active."),
        faults=_table(
            ("kind", "effect"),
            ((_code(name), escape(kind.description)) for name, kind in KINDS.items()),
        ),
    )


@cache
def _template() -> Template:
    folder = resources.files("outreach_frames.sandbox") / "data"
    return Template((folder / "home_page.html").read_text(encoding="utf-8"))


def _counts(store: Store) -> Iterable[tuple[str, str]]:
    for table, label in _COUNT_LABELS.items():
        yield f"{store.count(table):,}", escape(label)


def _sequences(store: Store) -> str:
    rows = [
        (_code(row["shows"]), escape(row["name"]), escape(row["status"]), _code(row["id"]))
        for row in store.sequences()
        if row["shows"]
    ]
    return _table(("shows", "name", "status", "id"), sorted(rows))


def _lead_lists(store: Store) -> str:
    found = (store.lead_list(each) for each in store.ids("lead_lists"))
    rows = (
        (escape(row["name"]), escape(row["type"]), f"{len(row['leads']):,}", _code(row["id"]))
        for row in filter(None, found)
    )
    return _table(("name", "type", "leads", "id"), rows)


def _operation(call: Call, base_url: str) -> str:
    endpoint = call.endpoint
    lines = [
        f"<h3><code>{escape(endpoint.label)}</code></h3>",
        f"<p>{escape(endpoint.note.capitalize())}.</p>",
    ]
    for label, fields in (("Query", endpoint.query), ("Body", endpoint.body)):
        if fields:
            names = ", ".join(_code(field.name) for field in fields)
            lines.append(f'<p class="quiet">{label}: {names}</p>')
    return "\n".join((*lines, f"<pre>{escape(curl(call, base_url, f'${_TOKEN_VARIABLE}'))}</pre>"))


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _table(names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Render a table of HTML cells; without column names, the first cells are numbers."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    cells = '<td class="number">' if not any(names) else "<td>"
    body = "\n".join(
        f"<tr>{cells}{row[0]}</td>{''.join(f'<td>{cell}</td>' for cell in row[1:])}</tr>"
        for row in rows
    )
    header = f"<tr>{head}</tr>" if any(names) else ""
    return f'<div class="wide" tabindex="0"><table>{header}{body}</table></div>'
