"""Serve tools to an agent by the Model Context Protocol, over standard input and output."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from inspect import Parameter, getdoc, signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, Optional, get_type_hints

import anyio
import anyio.to_thread
import msgspec
import pandas as pd
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from pydantic import ConfigDict, create_model

import outreach_frames as of
from outreach_frames.accounts.find_people import find_people
from outreach_frames.accounts.result import AccountPeople
from outreach_frames.agents import plan_file
from outreach_frames.agents.folder import Folder, parse
from outreach_frames.analysis.brief import brief
from outreach_frames.client.client import Client
from outreach_frames.common.cancellation import CancellationToken, bind_thread
from outreach_frames.common.text import printable, quoted, shorten
from outreach_frames.common.warnings import collect_warnings
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.files.read import read_as_text
from outreach_frames.leads.plan import make_plan
from outreach_frames.resources.search_arguments import DefaultLimit
from outreach_frames.tables.value_text import column_texts

_LISTS: Final = (of.sequences, of.mailboxes, of.contacts, of.lead_list, of.columns, of.filters)
_PEOPLE: Final = (of.search_people, of.count_people, of.explain_search, find_people)
# The functions whose signatures and docstrings make the tools.
TOOLS: Final[Mapping[str, Callable[..., Any]]] = {
    **{one.__name__: one for one in (of.check, *_LISTS, *_PEOPLE, of.sending_capacity)},
    "plan_leads": make_plan,
    "plan_status": plan_file.plan_status,
}
_HIDDEN: Final = {"folder", "client", "progress", "dtype_backend", "cache"}
# The functions that read the file of an argument, by a word of its type.
_READERS: Final[Mapping[str, Callable[[Path], object]]] = {
    "DataFrame": read_as_text,
    "FrameLike": read_as_text,
    "PathLike": of.load_filters,
}
# What JSON has in place of Python's types.
_JSON_TYPES: Final = {
    **dict.fromkeys(["Iterable", "Sequence", "Container"], list),
    **dict.fromkeys(["Hashable", "FrameLike", "date"], str),
    **{"ListOfText": list[str], "PathLike": Optional, "Sized": int},
    "pd": SimpleNamespace(DataFrame=str, offsets=SimpleNamespace(BaseOffset=str)),
}
_SAVE_AS: Final = Parameter(
    "save_as", Parameter.KEYWORD_ONLY, default=None, annotation="str | None"
)
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
        for one in given.keys() & parameters.keys():
            for word, read in _READERS.items():
                if word in parameters[one].annotation and not isinstance(
                    given[one], dict | int | None
                ):
                    given[one] = parse(self.folder.read(given[one]), read)
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
    function = TOOLS[name]
    parameters = {
        "file" if argument == "frame" else argument: parameter
        for argument, parameter in signature(function).parameters.items()
        if argument not in _HIDDEN and parameter.kind is not Parameter.VAR_KEYWORD
    }
    if not name.startswith("plan_"):
        parameters["save_as"] = _SAVE_AS
    annotations = {argument: one.annotation for argument, one in parameters.items()}
    holder = type(name, (), {"__annotations__": annotations, "__module__": function.__module__})
    hints = get_type_hints(holder, None, _JSON_TYPES)
    defaults = {
        one: ... if each.default is each.empty else each.default for one, each in parameters.items()
    }
    if isinstance(limit := defaults.get("limit"), DefaultLimit):
        defaults["limit"] = int(limit)  # JSON Schema shows only plain numbers
    fields: Any = {argument: (hint, defaults[argument]) for argument, hint in hints.items()}
    model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    with warnings.catch_warnings(action="ignore"):  # some defaults are not JSON
        schema = model.model_json_schema()
    text = str(getdoc(function)).partition("\n\nExamples\n---")[0]
    hidden = rf"^(?:{'|'.join(sorted(_HIDDEN))}) : .*\n(?: +.*\n)*"
    return types.Tool(
        name=name,
        description=re.sub(hidden, "", text, flags=re.MULTILINE).replace("\nframe : ", "\nfile : "),
        input_schema=schema,
        annotations=types.ToolAnnotations(read_only_hint=False, destructive_hint=False),
    )


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
