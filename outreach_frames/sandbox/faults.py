"""Simulated faults: each wraps an operation and replaces, changes or breaks its response."""

from __future__ import annotations

import gzip
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from email.utils import formatdate
from functools import partial
from typing import Any, Final, Literal, NamedTuple

import msgspec

from outreach_frames import spec
from outreach_frames.sandbox.rules import error_body

Delivery = Literal["whole", "dropped", "short", "slow"]


@dataclass(frozen=True, slots=True)
class Call:
    """A request, routed to its endpoint."""

    endpoint: spec.Endpoint
    path_values: Mapping[str, str]
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    @property
    def path(self) -> str:
        """The endpoint's path with the values inserted."""
        return self.endpoint.path.format_map(self.path_values)


@dataclass(frozen=True, slots=True)
class Reply:
    """A response, and how it is sent."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    delivery: Delivery = "whole"
    delay: float = 0.0
    media_type: str = "application/json"

    def with_header(self, name: str, value: str) -> Reply:
        """Return a copy with one more header."""
        return replace(self, headers=(*self.headers, (name, value)))


Handler = Callable[[Call], Reply]
Effect = Callable[["Fault", Handler, Call], Reply]
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """A simulated fault of the service, and the requests that it affects.

    Parameters
    ----------
    kind : str
        One of `outreach_frames.sandbox.FAULT_KINDS`, which describes their effects.
    endpoint : str, optional
        The name of an endpoint, such as `"search_people"`; by default all that the kind supports.
    times : int, optional
        The number of requests to affect; by default no limit.
    after : int, default 0
        The number of requests to skip first.
    probability : float, default 1.0
        The probability that the fault affects a request; the sandbox's seed determines which.
    retry_after : float or str, optional
        The seconds in `Retry-After` or `RateLimit-Reset` (default 1), for kinds that send one; a
        text is sent unchanged.
    delay : float, default 0.05
        Seconds between two bytes of a slow body.
    href : str, default "http://foreign.example/sequences"
        The target of a foreign next link.

    Raises
    ------
    ValueError
        If the kind or the endpoint is unknown, the kind does not support the endpoint, or a number
        is out of range.

    Examples
    --------
    >>> Fault("rate_limit", endpoint="search_people", times=2, retry_after=3).times
    2
    """

    kind: str
    endpoint: str | None = None
    times: int | None = None
    after: int = 0
    probability: float = 1.0
    retry_after: float | str | None = None
    delay: float = 0.05
    href: str = "http://foreign.example/sequences"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"Unknown fault {self.kind!r}. Pass one of {', '.join(KINDS)}.")
        supported = [endpoint.name for endpoint in KINDS[self.kind].endpoints]
        if self.endpoint is not None and self.endpoint not in supported:
            raise ValueError(f"The fault {self.kind!r} supports only {', '.join(supported)}.")
        if self.after < 0 or (self.times is not None and self.times < 0) or self.delay < 0:
            raise ValueError("A fault's after, times and delay must not be negative.")
        if not 0 <= self.probability <= 1:
            raise ValueError(f"A fault's probability must be 0 to 1, not {self.probability!r}.")


FaultLike = Fault | Mapping[str, Any] | str


def as_fault(value: FaultLike) -> Fault:
    """Convert the fields of a fault, or the name of its kind, to a fault."""
    if isinstance(value, Fault):
        return value
    try:
        return Fault(value) if isinstance(value, str) else Fault(**value)
    except TypeError as error:
        names = ", ".join(field.name for field in fields(Fault))
        raise ValueError(f"A fault needs a kind, and may have {names}: {error}.") from error


def _seconds(fault: Fault) -> str:
    value = 1 if fault.retry_after is None else fault.retry_after
    return value if isinstance(value, str) else f"{value:g}"


def _http_date(fault: Fault) -> str:
    """Return Retry-After as an HTTP date, rounded up so that it is never too early."""
    text = _seconds(fault)
    if text == fault.retry_after:
        return text
    return formatdate(math.ceil(time.time() + float(text)), usegmt=True)


def _refusing(
    status: int, value: Callable[[Fault], str] | None = None, header: str = spec.RETRY_AFTER_HEADER
) -> Effect:
    """Return the effect that refuses a request, with a header if it has a value."""

    def refuse(fault: Fault, *_: object) -> Reply:
        reply = Reply(status, error_body(status, _MESSAGES[status]))
        return reply.with_header(header, value(fault)) if value else reply

    return refuse


def _describe(status: int, *errors: Document) -> Reply:
    """Return a response with errors as objects, a form that services of this kind use."""
    body = msgspec.json.encode(
        {spec.ERRORS_KEY: [{"status": str(status), **error} for error in errors]}
    )
    return Reply(status, body)


def _object_sent(call: Call) -> Document:
    """Return the JSON object of a request's body, empty if the body is anything else."""
    with suppress(msgspec.DecodeError):
        sent = msgspec.json.decode(call.body)
        return sent if isinstance(sent, dict) else {}
    return {}


def _refuse_value(_fault: Fault, _handle: Handler, call: Call) -> Reply:
    """Refuse a value of the body, if possible of a list, or else the first parameter."""
    sent = _object_sent(call)
    names = sorted(sent, key=lambda name: not isinstance(sent[name], list))
    pointers = [f"/{name}/0" if isinstance(sent[name], list) else f"/{name}" for name in names]
    parameters = [name for name, _ in call.query]
    source = {"pointer": pointers[0]} if pointers else {"parameter": (*parameters, "id")[0]}
    words = {"code": "unsupported_value", "title": "Unsupported value"}
    return _describe(400, {**words, "detail": "This value is not supported.", "source": source})


def _refuse_lead(_fault: Fault, handle: Handler, call: Call) -> Reply:
    """Refuse requests with a lead whose email begins with `refused@`, and point at the lead."""
    leads = _object_sent(call).get(spec.LEADS_KEY)
    errors = [
        {
            "detail": "The address is refused.",
            "source": {"pointer": f"/{spec.LEADS_KEY}/{place}/email"},
        }
        for place, lead in enumerate(leads if isinstance(leads, list) else ())
        if isinstance(lead, dict) and str(lead.get("email")).startswith("refused@")
    ]
    return _describe(400, *errors) if errors else handle(call)


def _refuse_contact(*_: object) -> Reply:
    code = "unavailable_for_legal_reasons"
    return _describe(451, {"code": code, "title": "Unavailable for legal reasons"})


def _waiting(value: Callable[[Fault], str]) -> Effect:
    return lambda fault, handle, call: handle(call).with_header(
        spec.RETRY_AFTER_HEADER, value(fault)
    )


def _changing(**fields: Any) -> Effect:
    return lambda fault, handle, call: replace(handle(call), delay=fault.delay, **fields)


def _cut_gzip(_fault: Fault, handle: Handler, call: Call) -> Reply:
    reply = handle(call)
    packed = gzip.compress(reply.body)
    return replace(reply, body=packed[: len(packed) // 2]).with_header("Content-Encoding", "gzip")


def _editing(change: Callable[[Fault, Document], object]) -> Effect:
    """Return the effect that changes the JSON of a successful response."""

    def edit(fault: Fault, handle: Handler, call: Call) -> Reply:
        reply = handle(call)
        if reply.status != 200:
            return reply
        document = msgspec.json.decode(reply.body)
        change(fault, document)
        return replace(reply, body=msgspec.json.encode(document))

    return edit


def _repeat_next(_fault: Fault, document: Document) -> None:
    links = document[spec.LINKS_KEY]
    links["next"] = links["self"]


def _foreign_next(fault: Fault, document: Document) -> None:
    document[spec.LINKS_KEY]["next"] = {"href": fault.href}


def _add_errors(_fault: Fault, document: Document) -> None:
    error = {"code": "partial_result", "message": "A data source did not respond in time."}
    document[spec.ERRORS_KEY] = [*document.get(spec.ERRORS_KEY, ()), error]


def _drift(fault: Fault, handle: Handler, call: Call) -> Reply:
    """Shift pages after the first, as if a person had been inserted at the front meanwhile."""

    def change(_fault: Fault, document: Document) -> None:
        page_field = spec.SEARCH_PAGING[0].name
        search = msgspec.json.decode(call.body)
        page = search.get(page_field, 1)
        people = document[spec.RESULTS_KEY]
        if page > 1 and people:
            former = msgspec.json.encode(search | {page_field: page - 1})
            before = msgspec.json.decode(handle(replace(call, body=former)).body)
            document[spec.RESULTS_KEY] = before[spec.RESULTS_KEY][-1:] + people[:-1]

    return _editing(change)(fault, handle, call)


class Kind(NamedTuple):
    """The effect of a kind of fault, and the endpoints that it supports."""

    description: str
    apply: Effect
    endpoints: tuple[spec.Endpoint, ...] = spec.ENDPOINTS


_LISTS = (*spec.LISTS, spec.GET_LEAD_LIST)
_MESSAGES = {
    401: "The token was revoked.",
    429: "Too many requests.",
    500: "Something went wrong.",
    503: "The service is busy.",
}

KINDS: Mapping[str, Kind] = {
    "rate_limit": Kind("429 with Retry-After in seconds", _refusing(429, _seconds)),
    "rate_limit_date": Kind("429 with Retry-After as an HTTP date", _refusing(429, _http_date)),
    "rate_limit_bare": Kind("429 without Retry-After", _refusing(429)),
    "rate_limit_reset": Kind(
        "429 with RateLimit-Reset in seconds", _refusing(429, _seconds, "RateLimit-Reset")
    ),
    "retry_after": Kind("200 with Retry-After in seconds", _waiting(_seconds)),
    "retry_after_date": Kind("200 with Retry-After as an HTTP date", _waiting(_http_date)),
    "server_error": Kind("500", _refusing(500)),
    "unavailable": Kind("503 with Retry-After in seconds", _refusing(503, _seconds)),
    "unavailable_bare": Kind("503 without Retry-After", _refusing(503)),
    "refused_value": Kind(
        "400 with an error object that points at a value of the request", _refuse_value
    ),
    "refused_lead": Kind(
        "400 that points at each lead whose email begins with refused@; other requests succeed",
        _refuse_lead,
        (spec.ADD_LEADS,),
    ),
    "refused_contact": Kind(
        "451, unavailable for legal reasons", _refuse_contact, (spec.GET_CONTACT_BY_EMAIL,)
    ),
    "media_type": Kind(
        "the media type is application/vnd.sandbox+json",
        _changing(media_type="application/vnd.sandbox+json"),
    ),
    "token_revoked": Kind("401", _refusing(401)),
    "drop_before_commit": Kind(
        "the connection breaks before the request is handled",
        lambda *_: Reply(500, b"", delivery="dropped"),
    ),
    "drop_after_commit": Kind(
        "the connection breaks after the request is handled", _changing(delivery="dropped")
    ),
    "truncated_body": Kind("the body ends before its Content-Length", _changing(delivery="short")),
    "truncated_gzip": Kind("a gzip body that is cut in half", _cut_gzip),
    "slow_body": Kind("the body arrives one byte at a time", _changing(delivery="slow")),
    "repeated_next_link": Kind(
        "the next link leads to the same page", _editing(_repeat_next), _LISTS
    ),
    "foreign_next_link": Kind(
        "the next link leads to another host", _editing(_foreign_next), _LISTS
    ),
    "page_drift": Kind(
        "from page 2 on, people move back by one place: one person appears twice, another never",
        _drift,
        (spec.SEARCH_PEOPLE,),
    ),
    "errors": Kind(
        "200 with an entry in _errors",
        _editing(_add_errors),
        (spec.SEARCH_PEOPLE, spec.GET_LEAD_LIST),
    ),
}


class Faults:
    """The active faults and their counts; one thread serves all requests, so no lock is needed."""

    def __init__(self, faults: Iterable[FaultLike] | FaultLike | None, *, seed: int) -> None:
        if isinstance(faults, Fault | Mapping | str):
            faults = (faults,)
        self.active: Final = tuple(as_fault(fault) for fault in faults or ())
        # Requests by the place of a fault.
        self._seen: Counter[int] = Counter()
        self._affected: Counter[int] = Counter()
        self._rng = random.Random(f"faults {seed}")

    def respond(self, call: Call, handle: Handler) -> Reply:
        """Handle a request with the faults that affect it, the first fault outermost."""
        for place, fault in reversed([*enumerate(self.active)]):
            if self._affects(place, fault, call.endpoint):
                handle = partial(KINDS[fault.kind].apply, fault, handle)
        return handle(call)

    def _affects(self, place: int, fault: Fault, endpoint: spec.Endpoint) -> bool:
        named = fault.endpoint in {None, endpoint.name}
        if not named or endpoint not in KINDS[fault.kind].endpoints:
            return False
        self._seen[place] += 1
        is_affected = (
            self._seen[place] > fault.after
            and self._affected[place] != fault.times
            and self._rng.random() < fault.probability
        )
        self._affected[place] += is_affected
        return is_affected
