"""Adding leads as Python code."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any

from outreach_frames.leads.planning.mapping import EMAIL, PROFNET_URL
from outreach_frames.widgets.add_to_sequence.state import plan_arguments
from outreach_frames.widgets.python_code import one_line_call


def code_of(
    value: Mapping[str, Any],
    columns: Collection[Hashable],
    *,
    journal: str | None = None,
    with_client: bool = False,
    is_pandas: bool = True,
) -> str:
    """Return Python code for a choice; empty while no sequence is chosen.

    Parameters
    ----------
    value : mapping
        The choice, as `read_value` returns it.
    columns : collection
        The frame's columns; an identifier's default column is left out.
    journal : str, optional
        The journal's path.
    with_client : bool
        Whether the call names its client.
    is_pandas : bool
        Whether the frame has the accessor; one of another library goes through `outreach`.

    Examples
    --------
    >>> from outreach_frames.widgets.add_to_sequence.state import read_value
    >>> print(code_of(read_value({"sequence_id": "s1", "email": "Mail"}), ["Mail"]))
    report = df.outreach.add_to_sequence("s1", email="Mail")
    """
    if value["sequence_id"] is None:
        return ""
    arguments = plan_arguments(value)
    given: list[str | tuple[str, object]] = [("", arguments.pop("sequence_id"))]
    for name in (EMAIL, PROFNET_URL):
        chosen = arguments.pop(name)
        # The default is a column of the same name, where there is one.
        if chosen != (name if name in columns else None):
            given.append((f"{name}=", chosen))
    given += [(f"{name}=", chosen) for name, chosen in arguments.items() if chosen is not None]
    if journal is not None:
        given.append(("journal=", journal))
    given += ["client=client"] * with_client
    accessor = "df.outreach" if is_pandas else "of.outreach(df)"
    return one_line_call(f"report = {accessor}.add_to_sequence", given)
