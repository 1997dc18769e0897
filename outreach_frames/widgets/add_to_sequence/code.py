"""The Python that does the same as a choice made by hand."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, Final

from outreach_frames.leads.planning.mapping import EMAIL, PROFNET_URL
from outreach_frames.widgets.add_to_sequence.state import plan_arguments

_LINE_LENGTH: Final = 88
_INDENT: Final = 4


def code_of(
    value: Mapping[str, Any],
    columns: Collection[Hashable],
    *,
    journal: str | None = None,
    with_client: bool = False,
) -> str:
    """Return Python that does the same; empty while no sequence is chosen.

    Parameters
    ----------
    value : mapping
        The choice, as `read_value` returns it.
    columns : collection
        The frame's columns: an identifier's default column need not be named.
    journal : str, optional
        The journal's path.
    with_client : bool
        Whether the call names its client.

    Examples
    --------
    >>> from outreach_frames.widgets.add_to_sequence.state import read_value
    >>> print(code_of(read_value({"sequence_id": "s1", "email": "Mail"}), ["Mail"]))
    report = df.outreach.add_to_sequence("s1", email="Mail")
    """
    if value["sequence_id"] is None:
        return ""
    arguments = plan_arguments(value)
    given: list[tuple[str, object]] = [("", arguments.pop("sequence_id"))]
    for name in (EMAIL, PROFNET_URL):
        chosen = arguments.pop(name)
        # The default is a column of the same name, where there is one.
        if chosen != (name if name in columns else None):
            given.append((f"{name}=", chosen))
    given += [(f"{name}=", chosen) for name, chosen in arguments.items() if chosen is not None]
    if journal is not None:
        given.append(("journal=", journal))
    return _call("report = df.outreach.add_to_sequence", given, ["client=client"] * with_client)


def _literal(value: object) -> str:
    """Return a value as Python, with the quotes that formatters give it."""
    match value:
        case Mapping() | list() | tuple():
            opening, closing = "{}" if isinstance(value, Mapping) else "[]"
            return f"{opening}{', '.join(_items(value))}{closing}"
        case str():
            text = repr(value)
            return f'"{text[1:-1]}"' if text.startswith("'") and '"' not in text else text
    return repr(value)


def _items(value: Mapping[Any, Any] | Sequence[Any]) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{_literal(key)}: {_literal(one)}" for key, one in value.items()]
    return [_literal(one) for one in value]


def _call(function: str, arguments: Sequence[tuple[str, object]], more: Sequence[str] = ()) -> str:
    """Write a call on one line where it fits, else with one argument, or one item, on each."""
    given = [*(f"{name}{_literal(value)}" for name, value in arguments), *more]
    line = f"{function}({', '.join(given)})"
    if len(line) <= _LINE_LENGTH:
        return line
    lines = []
    for (name, value), text in zip(arguments, given, strict=False):
        if isinstance(value, Mapping | list | tuple) and len(text) + _INDENT >= _LINE_LENGTH:
            opening, closing = "{}" if isinstance(value, Mapping) else "[]"
            items = [f"{' ' * _INDENT}{item}," for item in _items(value)]
            lines += [f"{name}{opening}", *items, f"{closing},"]
        else:
            lines.append(f"{text},")
    lines += [f"{one}," for one in more]
    return "\n".join([f"{function}(", *(f"{' ' * _INDENT}{one}" for one in lines), ")"])
