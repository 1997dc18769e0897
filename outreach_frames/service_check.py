"""Check whether the service conforms to the interface document, with read requests only."""

from __future__ import annotations

import math
import platform
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import pandas as pd

from outreach_frames import spec
from outreach_frames.client import request
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.client.response import load_object
from outreach_frames.client.retry import WaitBudget, parse_retry_after
from outreach_frames.client.session import Observation
from outreach_frames.common import terms
from outreach_frames.common.arguments import check_id, check_ids
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import duration, plural
from outreach_frames.errors import (
    BadRequestError,
    ConnectionFailedError,
    InvalidInputError,
    InvalidResponseError,
    NotFoundError,
    RateLimitedError,
    RequestTimeoutError,
    ServerError,
    ServiceError,
    UnsafeLinkError,
    WaitTooLongError,
)
from outreach_frames.reading.fast_reader import list_of_errors
from outreach_frames.reading.untyped_reader import RAW_SUFFIX, flatten_records
from outreach_frames.resources.paging import page_items, record_id
from outreach_frames.resources.search import network_advice
from outreach_frames.tables.columns import PROFNET_URL, find_profile_urls

OK: Final = "ok"
NOTE: Final = "note"
WARNING: Final = "warning"
FAILED: Final = "failed"
STATUSES: Final = (OK, NOTE, WARNING, FAILED)
COLUMNS: Final = ("check", "status", "detail", "advice")

MAX_EMAILS: Final = 5
_PAGES: Final = 2
_PAGE_SIZE: Final = 2

# Members that differ from page to page or have a check of their own.
_UNCHECKED: Final = frozenset({spec.LINKS_KEY, spec.ERRORS_KEY})
# Names of other forms may be personal data and are only counted, as are undocumented values.
_PLAIN: Final = re.compile(r"[a-z0-9_]{1,60}")
_SHOWN_NAMES: Final = 20
# Operations whose records have all documented fields.
_WITH_ALL: Final = (spec.LIST_SEQUENCES, spec.LIST_MAILBOXES, spec.SEARCH_PEOPLE)
_LIBRARIES: Final = ("outreach-frames", "pandas", "pyarrow", "requests")

# Statuses whose errors have a problem and advice for anybody: token, credits, permission.
_IN_OWN_WORDS: Final = (401, 402, 403)
_SENTENCES: Final = re.compile(r"[.:] ")
# Errors without any response, which end the run if no good response came before.
_UNREACHABLE: Final = (ConnectionFailedError, RequestTimeoutError)
_REPORT_TO_SERVICE: Final = "Report this to the service's support: results may be incomplete."
_REPORT_TO_AUTHORS: Final = "No data is lost. Report this to the authors of the package."
_CHECK_ARGUMENTS: Final = (
    "Check the address, the token (log in again), the network, and passed ids."
)
_TRY_LATER: Final = "Try again later, with fewer workers, or with a longer timeout or max_wait."
# The problem and the advice by class of error.
_WORDS: Final[Mapping[type[ServiceError], tuple[str, str]]] = {
    UnsafeLinkError: (
        "A link or redirect leads to another host, to an earlier page, or to endless pages",
        _REPORT_TO_SERVICE,
    ),
    InvalidResponseError: (
        "The response is invalid: not JSON, truncated, too large, or with an unexpected structure",
        _REPORT_TO_SERVICE,
    ),
    RateLimitedError: ("Status 429: too many requests", _TRY_LATER),
    RequestTimeoutError: ("The complete response did not arrive in time", _TRY_LATER),
    ServerError: ("Status 5xx: the service failed", _TRY_LATER),
    WaitTooLongError: ("The service asks for a longer wait than `max_wait` allows", _TRY_LATER),
    BadRequestError: ("Status 400: the request is malformed", _CHECK_ARGUMENTS),
    NotFoundError: (
        "Status 404: no object has this id, or no endpoint has this address",
        _CHECK_ARGUMENTS,
    ),
}
_OTHER_WORDS: Final = ("The service responded with an error status", _CHECK_ARGUMENTS)


class Finding(NamedTuple):
    """A row of the result."""

    check: str
    status: str
    detail: str
    advice: str = ""


def check(
    *,
    emails: Sequence[str] | None = None,
    lead_list_id: str | None = None,
    client: Client | None = None,
) -> pd.DataFrame:
    """Check whether the service can be used and conforms to the interface document.

    The check sends at most 15 requests, which only read, repeats those that meet a rate limit, and
    does not use the cache. The client's `max_wait` limits the waits of the whole check. The result
    has statuses, counts, documented names, and undocumented names of lower-case letters, digits and
    underscores. It has no texts of the service, but look at the names before you send the result to
    others.

    Parameters
    ----------
    emails : list of str, optional
        Up to 5 email addresses of contacts, to check how contacts are read.
    lead_list_id : str, optional
        The id of a lead list, to check how lead lists are read.
    client : Client, optional
        By default the client of the last `connect`.

    Returns
    -------
    DataFrame
        One row per finding: check (str), status (ordered category: ok < note < warning < failed),
        detail and advice (str). failed: the service or the endpoint cannot be used. warning:
        a difference from the interface document (results may be incomplete), or a problem of
        encryption or cache. note: undocumented data, or a skipped check.

    Raises
    ------
    InvalidInputError
        An argument is invalid; nothing was sent.

    Notes
    -----
    Interface: every endpoint that reads.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     found = of.check()
    >>> found[["check", "status"]]
                              check status
    0                      versions     ok
    1                       address     ok
    2                    encryption     ok
    3                         proxy     ok
    4                         cache     ok
    5                GET /sequences     ok
    6                GET /mailboxes     ok
    7           POST /people/search     ok
    8   GET /contacts/email/{email}   note
    9                 GET /contacts   note
    10         GET /lead-lists/{id}   note
    11                        token     ok
    >>> found.loc[found["status"] > "note", ["check", "detail", "advice"]]  # what needs attention
    Empty DataFrame
    Columns: [check, detail, advice]
    Index: []
    """
    addresses = [] if emails is None else check_ids("emails", emails)
    if len(addresses) > MAX_EMAILS:
        raise InvalidInputError(f"{terms.name('emails')} takes up to {MAX_EMAILS} email addresses.")
    if lead_list_id is not None:
        check_id("lead_list_id", lead_list_id)
    client = resolve(client)
    findings = [*_local_findings(client)]
    _Checker(client, findings).run(addresses, lead_list_id)
    frame = pd.DataFrame(findings, columns=list(COLUMNS), dtype=STR)
    frame["status"] = pd.Categorical(frame["status"], STATUSES, ordered=True)
    return frame


def _local_findings(client: Client) -> Iterator[Finding]:
    """Yield findings that need no request."""
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    yield Finding("versions", OK, f"Python {platform.python_version()}, {libraries}")
    address = urlsplit(client.base_url)
    where = f"{address.scheme}://{address.netloc}, path {address.path or '/'}"
    yield Finding("address", OK, where)
    if request.is_sent_unencrypted(client.base_url):
        advice = "Use https:// if the service supports it."
        yield Finding("encryption", WARNING, "Requests are not encrypted.", advice)
    else:
        encrypted = "encrypted" if address.scheme == "https" else "not encrypted, on this machine"
        yield Finding("encryption", OK, encrypted)
    yield Finding("proxy", OK, "by a proxy" if client._session.has_proxy else "none")
    yield _cache_finding(client)


def _cache_finding(client: Client) -> Finding:
    if client._session.cache is None:
        return Finding("cache", OK, "not used")
    if not client._session.cache.is_open or not client._session.cache.path.exists():
        advice = terms.wording(
            "Connect again, with cache=path for another file, or with cache=None.",
            in_shell="Delete the file.",
        )
        return Finding("cache", WARNING, "The cache's file is missing or cannot be used.", advice)
    return Finding("cache", OK, "used")


class _Checker:
    """The findings so far, and data from earlier responses that later checks need."""

    def __init__(self, client: Client, findings: list[Finding]) -> None:
        self._client = client
        self._findings = findings
        self._is_accepted = False  # whether there was a good response
        self._contact_ids: list[str] = []
        self._budget = WaitBudget(client._session.max_wait, is_renewed=False)

    def run(self, emails: Sequence[str], lead_list_id: str | None) -> None:
        """Check all operations that read; stop if the service cannot be used."""
        checks: dict[spec.Endpoint, Callable[[spec.Endpoint], None]] = {
            spec.LIST_SEQUENCES: self._check_list,
            spec.LIST_MAILBOXES: self._check_list,
            spec.SEARCH_PEOPLE: self._check_people,
            spec.GET_CONTACT_BY_EMAIL: partial(self._check_emails, emails=emails),
            spec.GET_CONTACTS: self._check_contacts,
            spec.GET_LEAD_LIST: partial(self._check_list, list_id=lead_list_id),
        }
        for endpoint, check_endpoint in checks.items():
            before = len(self._findings)
            try:
                check_endpoint(endpoint)
            except ServiceError as error:
                is_refused = error.status_code == HTTPStatus.UNAUTHORIZED
                if not self._is_accepted and (is_refused or isinstance(error, _UNREACHABLE)):
                    name = "token" if is_refused else "connection"
                    self._findings.append(Finding(name, FAILED, *_words(error)))
                    return
                del self._findings[before:]
                self._add(endpoint, FAILED, *_words(error))
            if len(self._findings) == before:
                self._add(endpoint, OK, "as documented")
        if self._is_accepted:
            self._findings.append(Finding("token", OK, "accepted"))

    def _observe(self, endpoint: spec.Endpoint, **request: Any) -> Observation:
        return self._client._session.observe(endpoint, self._budget, **request)

    def _add(self, endpoint: spec.Endpoint, status: str, detail: str, advice: str = "") -> None:
        finding = Finding(endpoint.label, status, detail, advice)
        if finding not in self._findings:
            self._findings.append(finding)

    def _check_list(self, endpoint: spec.Endpoint, list_id: str | None = "") -> None:
        """Check the first two pages of a list."""
        if list_id is None:
            advice = f"Pass {terms.argument('lead_list_id')} with the id of a lead list."
            self._add(endpoint, NOTE, "not checked", advice)
            return
        path = {"id": list_id} if list_id else {}
        query = {spec.PAGE_SIZE.name: _PAGE_SIZE}
        pages: list[dict[str, Any]] = []
        url: str | None = None
        while not pages or (url is not None and len(pages) < _PAGES):
            response = self._observe(endpoint, path=path, query=query, url=url)
            read = self._parse if pages else self._read
            pages.append(read(endpoint, response))
            url = self._next_url(endpoint, pages[-1], response.url)
            number = len(self._items(endpoint, pages[-1]))
            if number > _PAGE_SIZE or (number < _PAGE_SIZE and url is not None):
                detail = f"a page has {plural(number, 'item')} for page[size]={_PAGE_SIZE}"
                self._add(endpoint, WARNING, detail, _REPORT_TO_SERVICE)
        self._check_repeats(endpoint, pages)

    def _next_url(
        self, endpoint: spec.Endpoint, page: Mapping[str, Any], page_url: str
    ) -> str | None:
        try:
            href = request.next_href(page)
            base = self._client.base_url
            return href and request.resolve(href, page_url=page_url, base_url=base)
        except UnsafeLinkError as error:
            self._add(endpoint, WARNING, *_words(error))
        except InvalidResponseError:
            problem = f"the next page has no valid link in {spec.LINKS_KEY}.next.href"
            self._add(endpoint, WARNING, problem, _REPORT_TO_SERVICE)
        return None

    def _check_people(self, endpoint: spec.Endpoint) -> None:
        """Check the first two pages of all people."""
        (number, size), most = spec.SEARCH_PAGING, spec.MAX_SEARCH_PAGE_SIZE
        pages: list[dict[str, Any]] = []
        people = most
        while people == most and len(pages) < _PAGES:
            body = {number.name: len(pages) + 1, size.name: most}
            response = self._observe(endpoint, body=body)
            read = self._parse if pages else self._read
            pages.append(read(endpoint, response))
            people = len(self._items(endpoint, pages[-1]))
            self._check_network_name(endpoint, self._items(endpoint, pages[-1]))
            if errors := list_of_errors(pages[-1].get(spec.ERRORS_KEY)):
                self._add(
                    endpoint, WARNING, f"reports {plural(len(errors), 'error')}", _REPORT_TO_SERVICE
                )
            pagination = pages[-1].get(spec.PAGINATION_KEY)
            if not isinstance(pagination, dict):
                raise _UnusableError(f"the response has no object {spec.PAGINATION_KEY!r}")
            for problem in _wrong_totals(pagination, people, len(pages)):
                self._add(
                    endpoint,
                    WARNING,
                    problem,
                    "Pass a limit to searches, and compare it with the number of rows.",
                )
            if pagination.get("total_pages") == 1:
                break
        self._check_repeats(endpoint, pages)

    def _check_network_name(self, endpoint: spec.Endpoint, people: Sequence[Any]) -> None:
        """Check whether the profile URLs have the field name of another network."""
        records = [person for person in people if isinstance(person, dict)]
        names = dict.fromkeys(name for record in records for name in record)
        field = find_profile_urls(names, lambda name: (record.get(name) for record in records))
        if field is not None:
            network = field.removesuffix("_url")
            detail = f"people have no {PROFNET_URL}, but {field} has profile URLs"
            self._add(endpoint, WARNING, detail, network_advice(network))

    def _check_emails(self, endpoint: spec.Endpoint, emails: Sequence[str]) -> None:
        """Check reading contacts by email."""
        for email in emails:
            with suppress(NotFoundError):
                response = self._observe(endpoint, path={"email": email})
                self._contact_ids += filter(None, [record_id(self._read(endpoint, response))])
        if not emails:
            self._need_emails(endpoint, "not checked")
        elif not self._contact_ids:
            self._need_emails(endpoint, "no contact has these emails")

    def _need_emails(self, endpoint: spec.Endpoint, detail: str) -> None:
        advice = f"Pass {terms.argument('emails')} with addresses of contacts."
        self._add(endpoint, NOTE, detail, advice)

    def _check_contacts(self, endpoint: spec.Endpoint) -> None:
        """Check reading contacts by id, with the ids of the contacts found by email."""
        ids = self._contact_ids
        if not ids:
            self._need_emails(endpoint, "not checked")
            return
        page = self._read(endpoint, self._observe(endpoint, query={spec.CONTACT_IDS.name: ids}))
        if missing := set(ids).difference(map(record_id, self._items(endpoint, page))):
            detail = f"{len(missing)} of {plural(len(ids), 'known contact')} missing"
            self._add(endpoint, WARNING, detail, _REPORT_TO_SERVICE)

    def _parse(self, endpoint: spec.Endpoint, response: Observation) -> dict[str, Any]:
        """Check a response's headers and return its JSON object."""
        for problem in _wrong_headers(response.headers):
            self._add(endpoint, WARNING, problem, _REPORT_TO_SERVICE)
        page = _load(response.body)
        self._is_accepted = True
        return page

    def _read(self, endpoint: spec.Endpoint, response: Observation) -> dict[str, Any]:
        """Check the response with a list's first page or one record, and return its JSON object."""
        page = self._parse(endpoint, response)
        records: dict[tuple[spec.Field, ...], Sequence[Any]] = {endpoint.result: [page]}
        if endpoint not in (spec.GET_CONTACT_BY_EMAIL, spec.GET_LEAD_LIST):
            listed = endpoint.listed
            if not self._items(endpoint, page):
                self._add(endpoint, NOTE, f"no {listed.name}, so no fields were checked")
            others = {name: value for name, value in page.items() if name != listed.name}
            fields = tuple(field for field in endpoint.result if field != listed)
            records = {fields: [others], listed.members: self._items(endpoint, page)}
        for fields, read in records.items():
            for status, detail in _field_findings(read, fields, endpoint in _WITH_ALL):
                advice = _REPORT_TO_AUTHORS if status == NOTE else _REPORT_TO_SERVICE
                self._add(endpoint, status, detail, advice)
        return page

    def _check_repeats(self, endpoint: spec.Endpoint, pages: Sequence[Mapping[str, Any]]) -> None:
        records = [record for page in pages for record in self._items(endpoint, page)]
        repeated = Counter(filter(None, map(record_id, records)))
        if number := repeated.total() - len(repeated):
            self._add(endpoint, WARNING, f"{plural(number, 'id')} repeated", _REPORT_TO_SERVICE)

    def _items(self, endpoint: spec.Endpoint, page: Mapping[str, Any]) -> list[Any]:
        """Return the records of a list's page."""
        name = endpoint.listed.name
        if not isinstance(page.get(name), list):
            raise _UnusableError(f"the response has no list {name!r}")
        return page_items(page, endpoint)


class _UnusableError(InvalidResponseError):
    """A response that cannot be checked further; the message has no text of the service."""


def _field_findings(
    records: Sequence[Any], fields: tuple[spec.Field, ...], all_expected: bool
) -> Iterator[tuple[str, str]]:
    """Yield how the columns of records differ from the documented columns.

    With `all_expected`, also report optional fields that all records lack.
    """
    fields = tuple(field for field in fields if field.name not in _UNCHECKED)
    table, _ = flatten_records(records, fields, drop=_UNCHECKED)
    documented = spec.columns(fields)
    present = {name for record in records for name in _column_names(record)}
    for name, field in documented.items():
        column, raw = table[name], f"{name}{RAW_SUFFIX}"
        is_expected = field.required or (all_expected and name not in present)
        if is_expected and column.null_count and raw not in table.column_names:
            yield WARNING, f"{name}: missing in {column.null_count:,} of {len(table):,}"
        if field.values and (unknown := {*column.drop_null().to_pylist()} - {*field.values}):
            yield NOTE, f"{name}: has {plural(len(unknown), 'undocumented value')}"
    added = [name for name in table.column_names if name not in documented]
    misfits = [name for name in added if _is_raw(name, documented)]
    plain = [name for name in added if name not in misfits and _PLAIN.fullmatch(name)]
    for name in (*misfits, *plain[:_SHOWN_NAMES]):
        share = f"{len(table) - table[name].null_count:,} of {len(table):,}"
        if name in misfits:
            yield WARNING, f"{name.removesuffix(RAW_SUFFIX)}: undocumented type in {share}"
        else:
            yield NOTE, f"{name}: in {share}"
    if others := len(added) - len(misfits) - len(plain[:_SHOWN_NAMES]):
        yield NOTE, plural(others, "other undocumented column")


def _is_raw(name: str, documented: Collection[str]) -> bool:
    """Check whether a column has values that do not fit a documented column or object."""
    base = name.removesuffix(RAW_SUFFIX)
    return base != name and any(f"{column}_".startswith(f"{base}_") for column in documented)


def _column_names(record: object, prefix: str = "") -> Iterator[str]:
    """Yield the names of columns that a record's members have, also those of null."""
    for name, value in record.items() if isinstance(record, dict) else ():
        yield f"{prefix}{name}"
        yield from _column_names(value, f"{prefix}{name}_")


def _words(error: ServiceError) -> tuple[str, str]:
    """Return the problem and the advice, without the error's own text, which may be personal."""
    if isinstance(error, _UnusableError):
        return str(error), _REPORT_TO_SERVICE
    if isinstance(error, ConnectionFailedError) or error.status_code in _IN_OWN_WORDS:
        problem, _, advice = _SENTENCES.sub("\n", error.summary, count=1).partition("\n")
        advice = advice[:1].upper() + advice[1:]
    else:
        problem, advice = _WORDS.get(type(error), _OTHER_WORDS)
    if isinstance(error, WaitTooLongError) and error.retry_after is not None:
        problem += f": {duration(math.ceil(error.retry_after))}"
    return (f"{problem} (status {error.status_code})" if error.status_code else problem), advice


def _load(body: bytes) -> dict[str, Any]:
    """Return a body's JSON object; errors hide the body, which may be personal."""
    with suppress(InvalidResponseError):
        return load_object(body)
    kind = "a web page" if b"<" in body.lstrip()[:4] else "not a JSON object in UTF-8"
    raise _UnusableError(f"the response is {kind}")


def _wrong_totals(pagination: Mapping[str, Any], people: int, number: int) -> Iterator[str]:
    """Yield the contradictions between a search's page and the page's pagination."""
    size = spec.MAX_SEARCH_PAGE_SIZE
    total, pages = pagination.get("total"), pagination.get("total_pages")
    if not isinstance(total, int) or not isinstance(pages, int):
        if None in (total, pages):
            yield "total or total_pages has no value"
        return  # the check of the fields reports wrong types
    if pagination.get("page") != number or pagination.get("page_size") != size:
        yield f"page and page_size are not the requested {number} and {size}"
    wanted = f"page_size is {size} and total is {total:,}"
    if people != min(max(total - (number - 1) * size, 0), size):
        yield f"page {number} has {people:,} people, but {wanted}"
    if pages != -(-total // size):
        yield f"total_pages is {pages:,}, but {wanted}"


def _wrong_headers(headers: Mapping[str, str]) -> Iterator[str]:
    wait = headers.get(spec.RETRY_AFTER_HEADER)
    if wait is not None and parse_retry_after(wait) is None:
        yield "the Retry-After header is neither seconds nor a date"
