"""Serve tools to an agent by the Model Context Protocol, over standard input and output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from inspect import Parameter, getdoc, signature
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import anyio.to_thread
import msgspec
import pandas as pd
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.accounts.find_people import find_people
from outreach_frames.accounts.result import AccountPeople
from outreach_frames.agents import plan_file
from outreach_frames.agents.folder import Folder, parse
from outreach_frames.analysis.brief import brief
from outreach_frames.client.client import Client
from outreach_frames.common.arguments import HEADCOUNTS
from outreach_frames.common.cancellation import CancellationToken, bind_thread
from outreach_frames.common.text import printable, quoted, shorten
from outreach_frames.common.warnings import collect_warnings
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.files.read import read_as_text
from outreach_frames.leads.plan import make_plan
from outreach_frames.tables.value_text import column_texts

_LISTS: Final = (of.sequences, of.mailboxes, of.contacts, of.lead_list, of.columns, of.filters)
_PEOPLE: Final = (of.search_people, of.count_people, of.explain_search, find_people)
# The functions whose signatures and docstrings make the tools.
TOOLS: Final[Mapping[str, Callable[..., Any]]] = {
    **{tool.__name__: tool for tool in (of.check, *_LISTS, *_PEOPLE, of.sending_capacity)},
    "plan_leads": make_plan,
    "plan_status": plan_file.plan_status,
}
_HIDDEN: Final = {"folder", "client", "progress", "dtype_backend", "cache"}
# The parameters that take the name of a file, and the functions that read it.
_READERS: Final[Mapping[str, Callable[[Path], object]]] = {
    "accounts": read_as_text,
    "mailboxes": read_as_text,
    "filters": of.load_filters,
}
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_TEXT_OR_NULL: Final = {"type": ["string", "null"]}
_INTEGER: Final = {"type": "integer"}
_INTEGER_OR_NULL: Final = {"type": ["integer", "null"]}
_INTEGERS: Final = {"type": "object", "additionalProperties": _INTEGER}
_BOOLEAN: Final = {"type": "boolean"}
_FILTERS: Final[Mapping[str, Any]] = {"string": _TEXT, "boolean": _BOOLEAN, "array": _TEXTS}
# The JSON Schema of each parameter that is not text, besides null if it is the default.
_TYPES: Final[Mapping[str, Mapping[str, Any]]] = {
    **{name: _FILTERS[known.type] for name, known in spec.FILTERS_BY_NAME.items()},
    **dict.fromkeys(["account_columns", "columns", "emails", "ids", "require"], _TEXTS),
    **dict.fromkeys(["chunk_size", "leads", "page_size"], _INTEGER),
    **dict.fromkeys(["limit", "max_requests", "per_company"], _INTEGER_OR_NULL),
    **dict.fromkeys(["clean", "refresh"], _BOOLEAN),
    **dict.fromkeys(["email", "profnet_url"], _TEXT_OR_NULL),
    "by": {"anyOf": [_TEXT, _TEXTS]},
    "data": {"anyOf": [_TEXTS, {"type": "object", "additionalProperties": _TEXT}]},
    "email_days": {"type": "array", "items": _INTEGER},
    "filters": {"anyOf": [{"type": "object"}, _TEXT]},
    "find_people.person_name": {"anyOf": [_TEXT, _TEXTS]},
    "headcount": {"enum": HEADCOUNTS},
    "overrides": {"type": "object", "additionalProperties": _BOOLEAN},
    "plan_leads.mailboxes": _TEXTS,
    "ramp": {"anyOf": [_INTEGERS, {"type": "object", "additionalProperties": _INTEGERS}]},
}
_PARALLEL_CALLS: Final = 4


class Agent(NamedTuple):
    """What an agent may use: an account, a folder, and a number of rows per reply."""

    client: Client
    folder: Folder
    rows: int

    def answer(self, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """Call a tool, and return its reply or its error."""
        try:
            with collect_warnings() as messages:
                reply = self._call(name, dict(arguments))
        except OutreachError as error:
            lines = [str(error), *getattr(error, "__notes__", ())]
            return _content(printable("\n".join(lines), keep="\n"), is_error=True)
        except Exception as error:  # noqa: BLE001 - a wrong argument must not end the server
            why = str(error) if isinstance(error, TypeError) else type(error).__name__
            return _content(f"{name} failed: {shorten(why)}. Check the arguments.", is_error=True)
        reply |= {"warnings": messages} if messages else {}
        return _content(msgspec.json.encode(reply).decode(), structured_content=reply)

    def _call(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        if name not in TOOLS or given.keys() & _HIDDEN:
            known = ", ".join(TOOLS)
            raise InvalidInputError(
                f"There is no tool {quoted(name)} with {quoted(sorted(given))}. The tools: {known}."
            )
        if name == "plan_leads":
            return plan_file.plan_leads(self.folder, self.client, **given)
        if name == "plan_status":
            return plan_file.plan_status(self.folder, **given)
        file = self.folder.new_name(given.pop("save_as", None), name)
        parameters = signature(TOOLS[name]).parameters
        for parameter in given.keys() & parameters.keys() & _READERS.keys():
            if not isinstance(given[parameter], dict | int | None):
                content = self.folder.read(given[parameter])
                given[parameter] = parse(content, _READERS[parameter])
        first = [given.pop("accounts")] if "accounts" in parameters else []
        client = {"client": self.client} if "client" in parameters else {}
        result = TOOLS[name](*first, **given | client)
        if isinstance(result, AccountPeople):
            others = f"{Path(file).stem}-accounts{Path(file).suffix}"
            tables = {"people": (result.people, file), "accounts": (result.accounts, others)}
            return {kind: self._table(*table) for kind, table in tables.items()}
        return self._table(result, file) if isinstance(result, pd.DataFrame) else {"result": result}

    def _table(self, frame: pd.DataFrame, file: str) -> dict[str, Any]:
        """Write a table to a file; return its name, shape, columns, first rows and total."""
        self.folder.write_table(frame, file)
        rows: list[dict[str, str | None]] = [{} for _ in range(min(self.rows, len(frame)))]
        for name, cells in brief(frame.head(self.rows)).items():
            for row, text in zip(rows, column_texts(cells).texts.to_pylist(), strict=True):
                row[shorten(str(name))] = text and shorten(text)
        columns = [shorten(str(name)) for name in frame.columns]
        table = {"file": file, "shape": frame.shape, "columns": columns, "rows": rows}
        return table | ({"total": frame.attrs["total"]} if "total" in frame.attrs else {})


def _content(text: str, **options: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **options)


def describe(name: str) -> types.Tool:
    """Describe a tool by the signature and the docstring of its function."""
    parameters = {
        "file" if key == "frame" else key: parameter.default
        for key, parameter in signature(TOOLS[name]).parameters.items()
        if key not in _HIDDEN and parameter.kind is not Parameter.VAR_KEYWORD
    }
    if not name.startswith("plan_"):
        parameters["save_as"] = None
    schema = {
        "type": "object",
        "properties": {key: _schema(name, key, default) for key, default in parameters.items()},
        "required": [key for key, default in parameters.items() if default is Parameter.empty],
        "additionalProperties": False,
    }
    return types.Tool(
        name=name,
        description=_description(TOOLS[name]),
        input_schema=schema,
        annotations=types.ToolAnnotations(read_only_hint=False, destructive_hint=False),
    )


def _schema(tool: str, parameter: str, default: Any) -> dict[str, Any]:
    """Return the JSON Schema of a tool's parameter."""
    schema = _TYPES.get(f"{tool}.{parameter}") or _TYPES.get(parameter, _TEXT)
    if default is None:
        schema = {"anyOf": [schema, {"type": "null"}]}
    return {**schema} if default is Parameter.empty else {**schema, "default": default}


def _description(function: Callable[..., Any]) -> str:
    """Return a function's docstring without its examples and the hidden parameters."""
    lines: list[str] = []
    is_hidden = False
    for line in str(getdoc(function)).partition("\n\nExamples\n---")[0].splitlines():
        # An indented line belongs to the parameter above.
        if not line.startswith(" "):
            is_hidden = line.partition(" : ")[0] in _HIDDEN
        if not is_hidden:
            lines.append("file : str" if line.startswith("frame : ") else line)
    return "\n".join(lines)


async def _call_tool(
    agent: Agent, threads: anyio.CapacityLimiter, _: object, params: types.CallToolRequestParams
) -> types.CallToolResult:
    """Call a tool in a thread, and cancel its requests if it is cancelled."""
    token = CancellationToken()

    def work() -> types.CallToolResult:
        bind_thread(token)
        return agent.answer(params.name, params.arguments or {})

    try:
        return await anyio.to_thread.run_sync(work, limiter=threads, abandon_on_cancel=True)
    finally:
        token.set()


async def _list_tools(*_: object) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[describe(name) for name in TOOLS])


async def _serve(agent: Agent) -> None:
    # The protocol's own reading and writing needs other threads.
    threads = anyio.CapacityLimiter(_PARALLEL_CALLS)
    server: Server[Any] = Server(
        "outreach-frames",
        version=version("outreach-frames"),
        on_list_tools=_list_tools,
        on_call_tool=partial(_call_tool, agent, threads),
    )
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


def serve(client: Client, folder: Folder, rows: int) -> None:
    """Serve the tools until the agent's program closes the connection."""
    anyio.run(_serve, Agent(client, folder, max(rows, 0)))
