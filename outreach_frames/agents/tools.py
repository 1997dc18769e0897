"""The tools: public functions that read, with the schemas of their arguments."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from inspect import Parameter, getdoc, signature
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

import pandas as pd
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError

import outreach_frames as of
from outreach_frames.accounts.find_people import find_people
from outreach_frames.accounts.result import AccountPeople
from outreach_frames.agents import plan_file
from outreach_frames.agents.folder import Folder
from outreach_frames.analysis.brief import brief
from outreach_frames.client.client import Client
from outreach_frames.common.arguments import suggestion
from outreach_frames.common.text import quoted, shorten
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.leads.plan import make_plan
from outreach_frames.tables.value_text import column_texts

READING: Final = (
    of.check,
    of.filters,
    of.count_people,
    of.explain_search,
    of.search_people,
    find_people,
    of.contacts,
    of.sequences,
    of.mailboxes,
    of.lead_list,
    of.columns,
    of.sending_capacity,
)
_HIDDEN: Final = plan_file.HIDDEN | {"folder", "progress", "dtype_backend", "cache"}
# Types that JSON has instead of Python's.
_JSON_TYPES: Final = {"ListOfText": list[str], "Hashable": str, "Container": list}
_SAVE_AS: Final = "save_as"
_SAVE_AS_SCHEMA: Final = {
    "type": "string",
    "description": "The name of the new .parquet or .csv file for the table.",
}
_MAX_MESSAGE: Final = 400


class Tool(NamedTuple):
    """A function with the description and the schema of its arguments."""

    function: Callable[..., Any]
    description: str
    schema: Mapping[str, Any]
    # The arguments that name a file with a table, and those that may name another file.
    tables: frozenset[str]
    files: frozenset[str]

    def check(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Raise InvalidInputError for an unknown, missing or wrong argument."""
        known = self.schema["properties"]
        for argument in arguments.keys() - known.keys():
            close = suggestion(argument, known)
            raise InvalidInputError(f"{name} has no argument {quoted(argument)}.{close}")
        fault = best_match(Draft202012Validator(self.schema).iter_errors(arguments))
        if fault is not None:
            where = ".".join([name, *map(str, fault.absolute_path)])
            message = fault.message
            if fault.validator == "anyOf":
                types = dict.fromkeys(
                    str(one.get("type", "a value")) for one in fault.validator_value
                )
                message = f"{quoted(fault.instance)} is not of type {' or '.join(types)}"
            raise InvalidInputError(shorten(f"{where}: {message}.", _MAX_MESSAGE))


class Agent(NamedTuple):
    """What an agent may use: an account, a folder, and a number of rows per reply."""

    client: Client
    folder: Folder
    rows: int

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool, write its tables to new files, and return the reply."""
        tool = TOOLS[name]
        tool.check(name, arguments)
        given = dict(arguments)
        if tool.function is make_plan:
            return dict(plan_file.plan_leads(self.folder, given.pop("file"), given, self.client))
        if tool.function is plan_file.plan_status:
            return plan_file.plan_status(**given, folder=self.folder)
        file = self.folder.new_table(given.pop(_SAVE_AS, None), name)
        try:
            return self._reply(self._result(tool, given), file)
        except OutreachError as error:
            if isinstance(error.partial, pd.DataFrame) and not error.partial.empty:
                path = Path(file)
                kept = self._table(error.partial, f"{path.stem}-partial{path.suffix}")
                error.add_note(f"The rows that were read before the error: {kept}")
            raise

    def _result(self, tool: Tool, given: dict[str, Any]) -> Any:
        """Call a function, with the contents of files instead of their names."""
        for argument, value in given.items():
            if argument in tool.tables:
                given[argument] = self.folder.read(value).frame()
            elif argument in tool.files and isinstance(value, str):
                given[argument] = self.folder.read(value).parse(of.load_filters)
        parameters = signature(tool.function).parameters
        if "client" in parameters:
            given["client"] = self.client
        first = [
            given.pop(name)
            for name, parameter in parameters.items()
            if parameter.kind is Parameter.POSITIONAL_ONLY
        ]
        return tool.function(*first, **given)

    def _reply(self, result: Any, file: str) -> dict[str, Any]:
        """Write a result's tables, and return their files, shapes, columns and first rows."""
        if isinstance(result, AccountPeople):
            path = Path(file)
            accounts = f"{path.stem}-accounts{path.suffix}"
            return {
                "people": self._table(result.people, file),
                "accounts": self._table(result.accounts, accounts),
            }
        return self._table(result, file) if isinstance(result, pd.DataFrame) else {"result": result}

    def _table(self, frame: pd.DataFrame, file: str) -> dict[str, Any]:
        self.folder.write_table(frame, file)
        first = brief(frame.head(self.rows))
        cells = {
            shorten(str(name)): [
                text and shorten(text) for text in column_texts(column).texts.to_pylist()
            ]
            for name, column in first.items()
        }
        return {
            "file": file,
            "shape": list(frame.shape),
            "columns": [shorten(str(name)) for name in frame.columns],
            "rows": [
                dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)
            ],
        }


def _make_tool(function: Callable[..., Any], *, table: str = "", saves: bool = False) -> Tool:
    """Make a tool from a function's signature and docstring; `table` renames the first frame."""
    shown = {
        name: parameter
        for name, parameter in signature(function).parameters.items()
        if name not in _HIDDEN and parameter.kind is not Parameter.VAR_KEYWORD
    }
    notes = {name: parameter.annotation for name, parameter in shown.items()}
    holder = type("Parameters", (), {"__annotations__": notes, "__module__": function.__module__})
    types = {name: _arms(one) for name, one in get_type_hints(holder, None, _JSON_TYPES).items()}
    frames = {name for name, arms in types.items() if pd.DataFrame in arms}
    names = {name: table or name if name in frames else name for name in shown}
    properties = {
        names[name]: {"type": "string"} if name in frames else _schema(types[name], parameter)
        for name, parameter in shown.items()
    }
    return Tool(
        function,
        _description(function, names, frames),
        {
            "type": "object",
            "properties": properties | ({_SAVE_AS: _SAVE_AS_SCHEMA} if saves else {}),
            "required": [names[name] for name, one in shown.items() if one.default is one.empty],
            "additionalProperties": False,
        },
        frozenset(frames),
        frozenset(name for name, arms in types.items() if os.PathLike in map(get_origin, arms)),
    )


def _arms(annotation: Any) -> tuple[Any, ...]:
    is_union = get_origin(annotation) in {Union, UnionType}
    return get_args(annotation) if is_union else (annotation,)


def _schema(arms: tuple[Any, ...], parameter: Parameter) -> dict[str, Any]:
    """Return the schema of a parameter; types that JSON lacks are left out."""
    schemas = []
    for arm in arms:
        with suppress(PydanticSchemaGenerationError):
            schemas.append(TypeAdapter(arm).json_schema())
    default = parameter.default
    known = {"default": default} if type(default) in {bool, int, str} else {}
    return {**(schemas[0] if len(schemas) == 1 else {"anyOf": schemas}), **known}


def _description(
    function: Callable[..., Any], names: Mapping[str, str], frames: Collection[str]
) -> str:
    """Return a docstring without its examples and hidden parameters."""
    text = str(getdoc(function)).partition("\n\nExamples\n---")[0]
    hidden = "|".join(sorted(_HIDDEN))
    text = re.sub(rf"^(?:{hidden}) : .*\n(?: +.*\n)*", "", text, flags=re.MULTILINE)
    for name in frames:
        text = re.sub(rf"^{name} : .*", f"{names[name]} : name of a file", text, flags=re.MULTILINE)
    return text


TOOLS: Final[Mapping[str, Tool]] = MappingProxyType(
    {
        **{one.__name__: _make_tool(one, saves=True) for one in READING},
        "plan_leads": _make_tool(make_plan, table="file"),
        "plan_status": _make_tool(plan_file.plan_status),
    }
)
