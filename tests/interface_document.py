"""Extract the facts from the interface document's tables, without its sentences.

`tests/interface_facts.json` stores them for developers without a copy of the document. After a
change of the document, write the file again, review the diff, and update `spec` to agree with it:

    python -m tests.interface_document interface.md > tests/interface_facts.json
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outreach_frames import spec

FACTS_FILE = Path(__file__).with_name("interface_facts.json")

Fact = dict[str, Any]
Row = dict[str, str]

_TYPES = ("string", "integer", "number", "boolean", "object", "array")
_WORDS = r"\w+(?:, \w+)+"


def load_facts() -> Fact:
    """Read the stored facts."""
    facts: Fact = json.loads(FACTS_FILE.read_text(encoding="utf-8"))
    return facts


def read_facts(document: str) -> Fact:
    """Extract the facts from the document's text."""
    lead, overrides = _tables(document, "Lead (element of the `leads` request array")
    company, job_functions = _tables(document, "Company (the `company` of a person)")
    statuses, error_codes = _tables(document, "Errors")
    departments = re.search(r"`department_headcount` keys: (.*)\.", document)
    assert departments
    return {
        "Link object": _fields(*_tables(document, "Link object")),
        "Sequence": _fields(*_tables(document, "Sequence")),
        "Lead": _fields(lead),
        "Overrides": [row["Override"] for row in overrides],
        "Add-leads settings object": _fields(*_tables(document, "Add-leads settings object")),
        "Add-leads success result": _fields(*_tables(document, "Add-leads success result")),
        "Contact": _fields(*_tables(document, "Contact")),
        "Phone number": list(_members(_sentence(document, "Phone number: "))),
        "Activity item": list(_members(_sentence(document, "Activity item: "))),
        "Person": _fields(*_tables(document, "Person (element of `results` in people search)")),
        "Company": _fields(company),
        "Departments": departments[1].split(", "),
        "Job functions": {
            row["Department key"]: row["Job-function keys"].split(", ") for row in job_functions
        },
        "Pagination object": list(_members(_sentence(document, "`_pagination`: "))),
        "Search result": list(_members(_sentence(document, "Response 200: (?=`object`)"))),
        "Lead list": _fields(*_tables(document, "Lead list")),
        "Mailbox": _fields(*_tables(document, "Mailbox")),
        "Sequence statuses": {
            row["Status"]: next(cell for name, cell in row.items() if name != "Status").startswith(
                "yes"
            )
            for row in _tables(document, "States and transitions")[0]
        },
        "Endpoints": {
            label: _endpoint(chapter)
            for label, chapter in re.findall(
                r"^### ((?:GET|POST|PATCH) \S+)\n(.*?)(?=^##|\Z)", document, re.M | re.S
            )
        },
        "Error statuses": [int(row["Status"]) for row in statuses],
        "Error codes": [row["error_code"] for row in error_codes],
        "Limits": {
            row["Limit"]: [int(number) for number in re.findall(r"\d+", row["Value"].split(";")[0])]
            for row in _tables(document, "Limits")[0]
        },
    }


def _tables(document: str, heading: str) -> list[list[Row]]:
    """Return the tables below a heading; rows are dicts by column name."""
    chapter = re.search(
        rf"^#+ {re.escape(heading)}.*?\n(.*?)(?=^#|\Z)", document, re.MULTILINE | re.DOTALL
    )
    assert chapter, heading
    return [
        list(_rows(block.splitlines()))
        for block in re.findall(r"(?:^\|.*\n)+", chapter[1], re.MULTILINE)
    ]


def _rows(lines: list[str]) -> Iterator[Row]:
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    for row in rows:
        yield dict(zip(header, row, strict=True))


def _sentence(document: str, start: str) -> str:
    found = re.search(f"{start}(.*)", document)
    assert found, start
    return found[1]


def _fields(rows: list[Row]) -> list[Fact]:
    """Return the facts of each field; a row may describe several fields."""
    return [_field(name.strip(), row) for row in rows for name in row["Field"].split(",")]


def _field(name: str, row: Row) -> Fact:
    kind = row.get("Type", "")
    other = [cell for column, cell in row.items() if column not in {"Field", "Type"}]
    # The document has two names for one property; the notes contain the neutral name.
    neutral = re.search(f"`({spec.DUPLICATE_URLS_PATTERN})`", " ".join(other))
    fact: Fact = {"name": neutral[1] if neutral else name, "type": _type(kind)}
    required = {cell for column, cell in row.items() if column.startswith("Required")}
    items = _items(kind, " ".join(other))
    says: Fact = {
        "items": items,
        "format": _format(" ".join((kind, *other))) if "string" in {fact["type"], items} else "",
        "nullable": "or null" in kind or row.get("Nullable") == "yes",
        "required": required == {"yes"},
        "constant": _constant(" ".join((kind, *other))),
        "values": _values(other),
    }
    if "object" in {fact["type"], items} and name != spec.LINKS_KEY:
        says["members"] = list(_members(" ".join((kind, *other))))
    return fact | {key: value for key, value in says.items() if value}


def _type(kind: str) -> str:
    """Return the JSON type of a description; "Company object" and the like are objects."""
    plain = next((known for known in _TYPES if kind.startswith(known)), "")
    return plain or ("object" if kind.endswith(" object") else "")


def _items(kind: str, notes: str) -> str:
    """Return the type of an array's elements, or "" if the document does not show it."""
    if not kind.startswith("array"):
        return ""
    element = re.match(r"array of (?:enum |domain )?([\w ]+)", kind)
    if element is None:
        return "object" if "Element:" in notes else ""
    # An element type that is not a plain JSON type is a resource.
    return "string" if element[1] == "uuid" else _type(element[1]) or "object"


def _format(words: str) -> str:
    for form, pattern in (
        ("uuid", r"\buuid\b"),
        ("date-time", r"date-time|ISO 8601"),
        ("date", r"\bdate\b"),
        ("uri", r"\(uri\)"),
        ("email", r"\(email"),
        ("domain", r"domain string"),
    ):
        if re.search(pattern, words):
            return form
    return ""


def _constant(words: str) -> str:
    found = re.search(r"constant (\w+)", words)
    return found[1] if found and "`" not in words else ""


def _values(cells: list[str]) -> list[str]:
    """Return the closed list of values in a row, as bare words or in backticks."""
    for cell in cells:
        if re.fullmatch(_WORDS, cell):
            return cell.split(", ")
        if re.fullmatch(r"`\w+` \(default\)(?:, `\w+`)+", cell):
            return re.findall(r"`(\w+)`", cell)
    return []


def _members(words: str) -> Iterator[Fact]:
    """Yield each name in backticks with the facts from the parentheses behind it."""
    for name, says in re.findall(r"`([\w\[\]]+)`(?: \(([^)]*)\))?", words):
        fact: Fact = {
            "name": name,
            "format": _format(says),
            "nullable": "or null" in says,
            "required": "required" in says.split(", "),
            "constant": _constant(says),
            "values": _values([says]) if not says.startswith(_TYPES) else [],
            "maximum": next((int(most) for most in re.findall(r"(?:maximum|most) (\d+)", says)), 0),
        }
        yield {key: value for key, value in fact.items() if value}


def _endpoint(chapter: str) -> Fact:
    queries = re.findall(r"^- (?:Query|Paging).*?: (.*)$", chapter, re.MULTILINE)
    # The links with a parameter's value are in parentheses and backticks too.
    queries = [re.sub(r" \(a sequence id .*?\)", "", query) for query in queries]
    bodies = re.findall(r"(?:^\| (?:Field|leads) .*\n)(?:^\|.*\n)+", chapter, re.MULTILINE)
    inline = re.search(r"^- Body \(JSON\): `(\w+)` \((\w+), required\)", chapter, re.MULTILINE)
    body = [field for block in bodies for field in _fields(list(_rows(block.splitlines())))]
    if inline:
        body.append({"name": inline[1], "type": inline[2], "required": True})
    return {
        "query": [member for query in queries for member in _members(query)],
        "body": body,
        "statuses": [int(status) for status in re.findall(r"(?:Response|HTTP) (\d{3})", chapter)],
    }


if __name__ == "__main__":
    read = read_facts(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(json.dumps(read, indent=1))
