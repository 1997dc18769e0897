"""Check whether the service keeps to the interface document, by reads only."""

from __future__ import annotations

import platform
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import partial
from importlib.metadata import version
from math import ceil
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import pandas as pd

from outreach_frames import spec
from outreach_frames.client import links
from outreach_frames.client.client import Client, Observation
from outreach_frames.client.connect import resolve
from outreach_frames.client.response import load_object
from outreach_frames.client.retry import parse_retry_after
from outreach_frames.common.arguments import check_id
from outreach_frames.common.text import plural, shorten
from outreach_frames.errors import (
    AuthenticationError,
    ConnectionFailedError,
    InvalidInputError,
    InvalidResponseError,
    NotFoundError,
    OutreachError,
    ServiceError,
    UnsafeLinkError,
)
from outreach_frames.reading.deviations import find_deviations

OK: Final = "ok"
NOTE: Final = "note"
WARNING: Final = "warning"
FAILED: Final = "failed"
STATUSES: Final = (OK, NOTE, WARNING, FAILED)
COLUMNS: Final = ("check", "status", "detail", "advice")

MAX_EMAILS: Final = 5
_PAGE_SIZE: Final = 2
_CLOCK_SECONDS: Final = 60
_IDS: Final = spec.CONTACT_IDS.name
_NOTED_KINDS: Final = ("undocumented", "unknown value")
# Operations whose records have all documented fields.
_WITH_ALL: Final = (spec.LIST_SEQUENCES, spec.LIST_MAILBOXES, spec.SEARCH_PEOPLE)
_LIBRARIES: Final = ("outreach-frames", "pandas", "pyarrow", "requests")

_TELL_SERVICE: Final = "Tell the service's support; the columns may be incomplete."
_TELL_AUTHORS: Final = "Nothing to do: it is an extra column. Tell the authors of this package."


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
    """Check whether the service can be used and keeps to the interface document.

    It reads with at most 15 requests, changes nothing and does not use the cache. The result has
    names of fields, counts and labels, but no values of people or mailboxes, so it can be sent to
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
        detail and advice (str). failed: it cannot be used. warning: it differs from the interface
        document, and results may be incomplete. note: it goes beyond the document.

    Raises
    ------
    InvalidInputError
        An argument is invalid; nothing was sent.

    Notes
    -----
    Interface: all reads.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     found = of.check()
    >>> found.loc[found["status"] > "note"].empty
    True
    """
    addresses = _check_emails(emails)
    if lead_list_id is not None:
        check_id("lead_list_id", lead_list_id)
    client = resolve(client)
    findings = [*_local_findings(client)]
    _Checker(client, findings).run(addresses, lead_list_id)
    frame = pd.DataFrame(findings, columns=list(COLUMNS), dtype="str")
    frame["status"] = pd.Categorical(frame["status"], STATUSES, ordered=True)
    return frame


def _check_emails(emails: Sequence[str] | None) -> list[str]:
    addresses = [] if emails is None else [emails] if isinstance(emails, str) else list(emails)
    if len(addresses) > MAX_EMAILS or not all(isinstance(one, str) for one in addresses):
        raise InvalidInputError(f"emails takes up to {MAX_EMAILS} email addresses as text.")
    return addresses


def _local_findings(client: Client) -> Iterator[Finding]:
    """Yield findings that need no request."""
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    yield Finding("versions", OK, f"Python {platform.python_version()}, {libraries}")
    address = urlsplit(client.base_url)
    where = f"{address.scheme}://{address.netloc}, path {address.path or '/'}"
    yield Finding("address", OK, where)
    if links.is_sent_unencrypted(client.base_url):
        advice = "Use https:// if the service supports it."
        yield Finding("encryption", WARNING, "Requests are not encrypted.", advice)
    else:
        encrypted = "encrypted" if address.scheme == "https" else "not encrypted, on this machine"
        yield Finding("encryption", OK, encrypted)
    yield Finding("proxy", OK, "by a proxy" if client.has_proxy else "none")
    yield _cache_finding(client)


def _cache_finding(client: Client) -> Finding:
    if client.cache is None:
        return Finding("cache", OK, "not used")
    if not client.cache.is_open:
        advice = "Connect with cache=path for another file, or cache=None."
        return Finding("cache", WARNING, "The cache's file cannot be used.", advice)
    mode = stat.S_IMODE(client.cache.path.stat().st_mode)
    if platform.system() != "Windows" and mode & 0o077:
        advice = "Set the file's mode to 0600: it has people's data."
        return Finding("cache", WARNING, f"Others can read the file (mode {mode:04o}).", advice)
    return Finding("cache", OK, "private and writable")


class _UnusableError(Exception):
    """The service cannot be used at all."""


class _Checker:
    """The findings so far, and whether a request has succeeded."""

    def __init__(self, client: Client, findings: list[Finding]) -> None:
        self._client = client
        self._findings = findings
        self._is_accepted = False

    def run(self, emails: Sequence[str], lead_list_id: str | None) -> None:
        """Check all operations; stop if the service cannot be used."""
        operations: dict[spec.Endpoint, Callable[[], None]] = {
            spec.LIST_SEQUENCES: partial(self._check_list, spec.LIST_SEQUENCES),
            spec.LIST_MAILBOXES: partial(self._check_list, spec.LIST_MAILBOXES),
            spec.SEARCH_PEOPLE: self._check_people,
            spec.GET_CONTACT_BY_EMAIL: partial(self._check_emails, emails),
            spec.GET_LEAD_LIST: partial(self._check_lead_list, lead_list_id),
        }
        with suppress(_UnusableError):
            for endpoint, check_operation in operations.items():
                self._try(endpoint, check_operation)

    def _try(self, endpoint: spec.Endpoint, check_operation: Callable[[], None]) -> None:
        """Run the checks of an operation; add one row if it fails or if nothing is wrong."""
        before = len(self._findings)
        try:
            check_operation()
        except ServiceError as error:
            what, advice = _words(error)
            if not self._is_accepted and isinstance(error, AuthenticationError):
                self._findings.append(Finding("token", FAILED, what, advice))
                raise _UnusableError from None
            if not self._is_accepted and isinstance(error, ConnectionFailedError):
                self._findings.append(Finding("connection", FAILED, what, advice))
                raise _UnusableError from None
            del self._findings[before:]
            self._add(endpoint, FAILED, what, advice)
        if all(finding.check != endpoint.label for finding in self._findings):
            self._add(endpoint, OK, "as documented")

    def _add(self, endpoint: spec.Endpoint, status: str, detail: str, advice: str = "") -> None:
        finding = Finding(endpoint.label, status, detail, advice)
        if finding not in self._findings:
            self._findings.append(finding)

    def _check_list(
        self, endpoint: spec.Endpoint, path: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Check the first two pages of a list."""
        query = {spec.PAGE_SIZE.name: _PAGE_SIZE}
        response = self._client.observe(endpoint, path=path, query=query)
        page = self._read(endpoint, response)
        following = self._next_address(endpoint, response, page)
        if len(_records(endpoint, page)) != _PAGE_SIZE and following is not None:
            detail = f"a page of {len(_records(endpoint, page))} for page[size]={_PAGE_SIZE}"
            self._add(endpoint, WARNING, detail, _TELL_SERVICE)
        elif len(_records(endpoint, page)) > _PAGE_SIZE:
            self._add(endpoint, WARNING, f"page[size]={_PAGE_SIZE} is ignored", _TELL_SERVICE)
        if following is not None:
            second = self._client.observe(endpoint, path=path, url=following)
            self._compare_ids(endpoint, page, self._read(endpoint, second, is_first=False))

    def _check_people(self) -> None:
        """Check the first two pages of all people."""
        endpoint, size = spec.SEARCH_PEOPLE, spec.MAX_SEARCH_PAGE_SIZE
        page = self._read(endpoint, self._search(1))
        people = len(_records(endpoint, page))
        for problem in _wrong_totals(page[spec.PAGINATION_KEY], people):
            self._add(endpoint, WARNING, problem, "Pass limit= and compare the number of rows.")
        if people == size and page[spec.PAGINATION_KEY].get("total_pages") != 1:
            second = self._read(endpoint, self._search(2), is_first=False)
            self._compare_ids(endpoint, page, second)
            if second[spec.PAGINATION_KEY].get("page") != 2:
                self._add(endpoint, WARNING, "page 2 has another page number", _TELL_SERVICE)

    def _search(self, page: int) -> Observation:
        number, size = spec.SEARCH_PAGING
        body = {number.name: page, size.name: spec.MAX_SEARCH_PAGE_SIZE}
        return self._client.observe(spec.SEARCH_PEOPLE, body=body)

    def _check_emails(self, emails: Sequence[str]) -> None:
        """Check contacts by email, and by the ids that were found."""
        endpoint = spec.GET_CONTACT_BY_EMAIL
        if not emails:
            for unchecked in (endpoint, spec.GET_CONTACTS):
                self._add(unchecked, NOTE, "not checked", "Pass emails=[...] of contacts.")
            return
        contacts = []
        for email in emails:
            try:
                response = self._client.observe(endpoint, path={"email": email})
            except NotFoundError:
                continue
            contacts.append(self._read(endpoint, response))
        ids = [found["id"] for found in contacts if isinstance(found.get("id"), str)]
        if not ids:
            for unchecked in (endpoint, spec.GET_CONTACTS):
                self._add(unchecked, NOTE, "no contact has these emails", "Pass other emails.")
            return
        self._try(spec.GET_CONTACTS, partial(self._check_contacts, ids))

    def _check_contacts(self, ids: Sequence[str]) -> None:
        endpoint = spec.GET_CONTACTS
        page = self._read(endpoint, self._client.observe(endpoint, query={_IDS: ids}))
        missing = set(ids).difference(_ids(endpoint, page))
        if missing:
            detail = f"{len(missing)} of {plural(len(ids), 'known contact')} missing"
            self._add(endpoint, WARNING, detail, _TELL_SERVICE)

    def _check_lead_list(self, lead_list_id: str | None) -> None:
        endpoint = spec.GET_LEAD_LIST
        if lead_list_id is None:
            self._add(endpoint, NOTE, "not checked", "Pass lead_list_id= of a lead list.")
        else:
            self._check_list(endpoint, {"id": lead_list_id})

    def _read(
        self, endpoint: spec.Endpoint, response: Observation, *, is_first: bool = True
    ) -> dict[str, Any]:
        """Check a response and return its JSON object."""
        for problem in _wrong_headers(response.headers):
            self._add(endpoint, WARNING, problem, _TELL_SERVICE)
        page = load_object(response.body)
        is_contact = endpoint == spec.GET_CONTACT_BY_EMAIL
        if not is_contact:
            _require_envelope(endpoint, page)
        if not self._is_accepted:
            self._is_accepted = True
            self._findings += [Finding("token", OK, "accepted"), _clock_finding(response.headers)]
        if is_first and not is_contact and not _records(endpoint, page):
            self._add(endpoint, NOTE, f"no {endpoint.listed.name}, so no fields were checked")
        if is_first:
            found = find_deviations([page], endpoint.result, all_expected=endpoint in _WITH_ALL)
            for kind, path, detail in found:
                is_note = kind in _NOTED_KINDS
                advice = _TELL_AUTHORS if is_note else _TELL_SERVICE
                self._add(endpoint, NOTE if is_note else WARNING, f"{path}: {detail}", advice)
        return page

    def _next_address(
        self, endpoint: spec.Endpoint, response: Observation, page: Mapping[str, Any]
    ) -> str | None:
        """Return the address of the next page; add a row if the link cannot be followed."""
        try:
            href = links.next_href(page)
            if href is None:
                return None
            url = links.resolve(href, page_url=response.url, base_url=self._client.base_url)
        except (UnsafeLinkError, InvalidResponseError) as error:
            self._add(endpoint, WARNING, *_words(error))
            return None
        if url == response.url:
            advice = "The list cannot be read to its end. Tell the service's support."
            self._add(endpoint, WARNING, "the next link leads back to its page", advice)
            return None
        return url

    def _compare_ids(
        self, endpoint: spec.Endpoint, page: Mapping[str, Any], following: Mapping[str, Any]
    ) -> None:
        both = _ids(endpoint, page) & _ids(endpoint, following)
        if both:
            detail = f"{plural(len(both), 'id')} of page 1 again on page 2"
            self._add(endpoint, WARNING, detail, "Results may be incomplete. " + _TELL_SERVICE)


def _words(error: OutreachError) -> tuple[str, str]:
    """Split an error's message into what happened and what to do."""
    text = str(error)
    what, point, advice = text.partition(". ")
    return what + point.rstrip(), advice


def _require_envelope(endpoint: spec.Endpoint, page: Mapping[str, Any]) -> None:
    """Raise an error if a response lacks the parts that hold its records."""
    needed = [endpoint.listed.name]
    if endpoint == spec.SEARCH_PEOPLE:
        needed.append(spec.PAGINATION_KEY)
    for name in needed:
        field = next(field for field in endpoint.result if field.name == name)
        if not isinstance(page.get(name), list if field.type == "array" else dict):
            raise InvalidResponseError(
                f"{endpoint.label}: the response has no {field.type} {name!r}. It cannot be used."
            )


def _records(endpoint: spec.Endpoint, page: Mapping[str, Any]) -> list[Any]:
    records: list[Any] = page[endpoint.listed.name]
    return records


def _ids(endpoint: spec.Endpoint, page: Mapping[str, Any]) -> set[str]:
    records = [record for record in _records(endpoint, page) if isinstance(record, dict)]
    return {record["id"] for record in records if isinstance(record.get("id"), str)}


def _wrong_totals(pagination: Mapping[str, Any], people: int) -> Iterator[str]:
    """Yield what does not add up on the first page of a search."""
    size = spec.MAX_SEARCH_PAGE_SIZE
    total, pages = pagination.get("total"), pagination.get("total_pages")
    if not isinstance(total, int) or not isinstance(pages, int):
        return  # reported as a missing field or a wrong type
    if pagination.get("page") != 1 or pagination.get("page_size") != size:
        yield f"page and page_size are not the requested 1 and {size}"
    if people != min(total, size):
        yield f"{people:,} people on the first page of {size} where the total is {total:,}"
    if pages != ceil(total / size):
        yield f"{pages:,} pages of {size} where the total is {total:,}"


def _wrong_headers(headers: Mapping[str, str]) -> Iterator[str]:
    media_type = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        yield f"the media type is {shorten(media_type) or 'missing'}, not application/json"
    wait = headers.get(spec.RETRY_AFTER_HEADER)
    if wait is not None and parse_retry_after(wait) is None:
        yield "the Retry-After header is neither seconds nor a date"


def _clock_finding(headers: Mapping[str, str]) -> Finding:
    """Compare the service's clock with this machine's."""
    try:
        moment = parsedate_to_datetime(headers.get("Date", ""))
    except ValueError:
        return Finding("clock", NOTE, "the service sends no readable Date header")
    seconds = moment.timestamp() - time.time()
    if abs(seconds) <= _CLOCK_SECONDS:
        return Finding("clock", OK, "within a minute of the service's")
    direction = "behind" if seconds > 0 else "ahead of"
    advice = "Set this machine's clock: waits and the cache depend on it."
    return Finding("clock", WARNING, f"{abs(seconds):,.0f} s {direction} the service's", advice)
