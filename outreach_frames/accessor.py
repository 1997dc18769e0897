"""`df.outreach`: methods that call the package's functions on a frame."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

import pandas as pd

from outreach_frames.accounts.find_people import find_people
from outreach_frames.accounts.matching import match, without
from outreach_frames.analysis import companies as company_tables
from outreach_frames.analysis.brief import brief
from outreach_frames.analysis.child_tables import CHILD_FUNCTIONS
from outreach_frames.analysis.segments import segments
from outreach_frames.analysis.tenure import tenure
from outreach_frames.analysis.unlist import unlist
from outreach_frames.common.arguments import suggestion
from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.excel import write_excel
from outreach_frames.files.parquet import write_parquet
from outreach_frames.leads.plan import add_to_sequence, make_plan, report, validate
from outreach_frames.tables.interchange import FrameLike, as_frame

P = ParamSpec("P")
R = TypeVar("R")


def _method(
    function: Callable[Concatenate[pd.DataFrame, P], R], name: str = ""
) -> Callable[Concatenate[OutreachAccessor, P], R]:
    """Convert a function of a frame to a method."""
    signature = inspect.signature(function)
    frame, *others = signature.parameters.values()
    known = [parameter.name for parameter in others]
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in others)

    @wraps(function)
    def method(self: OutreachAccessor, /, *args: P.args, **kwargs: P.kwargs) -> R:
        for argument in kwargs:
            if argument not in known and not takes_any:
                raise TypeError(
                    f"{method.__name__}() got an unexpected keyword argument {argument!r}."
                    f"{suggestion(argument, known)}"
                )
        return function(self._frame, *args, **kwargs)

    method.__name__ = name or method.__name__
    method.__qualname__ = f"OutreachAccessor.{method.__name__}"
    own = frame.replace(name="self", annotation=inspect.Parameter.empty)
    vars(method)["__signature__"] = signature.replace(parameters=[own, *others])
    method.__doc__ = _without_parameter(str(inspect.getdoc(function)), frame.name)
    return method


def _without_parameter(docstring: str, name: str) -> str:
    """Drop a parameter from a docstring, and the section if the parameter is its only one."""
    text = re.sub(rf"(?m)^{name} : .*\n(?:    .*\n)*", "", docstring)
    return re.sub(r"Parameters\n-{10}\n\s*\n", "", text)


class OutreachAccessor:
    """The methods of `df.outreach`; they never change the frame.

    Parameters
    ----------
    frame : FrameLike
        A frame of pandas or another library; see `outreach_frames.outreach`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=20)
    >>> people.outreach.headcount().shape[1]
    5
    """

    def __init__(self, frame: FrameLike) -> None:
        self._frame = as_frame(frame, "outreach()")

    plan: Final = _method(make_plan, "plan")
    validate: Final = _method(validate)
    add_to_sequence: Final = _method(add_to_sequence)
    report: Final = _method(report)
    to_csv: Final = _method(write_csv, "to_csv")
    to_excel: Final = _method(write_excel, "to_excel")
    to_parquet: Final = _method(write_parquet, "to_parquet")
    unlist: Final = _method(unlist)
    brief: Final = _method(brief)
    companies: Final = _method(company_tables.companies)
    headcount: Final = _method(company_tables.headcount)
    segments: Final = _method(segments)
    tenure: Final = _method(tenure)
    experiences: Final = _method(CHILD_FUNCTIONS["experiences"])
    educations: Final = _method(CHILD_FUNCTIONS["educations"])
    languages: Final = _method(CHILD_FUNCTIONS["languages"])
    locations: Final = _method(CHILD_FUNCTIONS["locations"])
    phone_numbers: Final = _method(CHILD_FUNCTIONS["phone_numbers"])
    recent_activity: Final = _method(CHILD_FUNCTIONS["recent_activity"])
    find_people: Final = _method(find_people)
    match: Final = _method(match)
    without: Final = _method(without)
