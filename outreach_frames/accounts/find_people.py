"""Find the people at a list of companies in as few requests as possible."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import inf
from os import PathLike
from typing import Any, Final, Unpack

import pandas as pd

from outreach_frames import spec
from outreach_frames.accounts.companies import (
    IDENTIFIER_KINDS,
    SearchedAccount,
    identifier_columns,
    read_account_columns,
    read_accounts,
)
from outreach_frames.accounts.finder import AFFILIATES_FILTER, Finder
from outreach_frames.accounts.named_people import (
    NAMES,
    PERSON_NAME,
    NamedPeopleFinder,
    check_name_columns,
    read_people,
)
from outreach_frames.accounts.result import (
    IDENTITY,
    MATCHED,
    NAME_MATCH,
    RANK,
    ROW,
    STATUS,
    AccountPeople,
    add_account_columns,
)
from outreach_frames.accounts.searches import CompanyProgress
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common import terms
from outreach_frames.common.arguments import HEADCOUNTS, Headcount, check_choice
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.text import plural, quoted
from outreach_frames.errors import InvalidInputError, OutreachError, shorten_traceback
from outreach_frames.reading.flatten import DtypeBackend, check_dtype_backend
from outreach_frames.resources.paging import how_to_continue, now, report_errors
from outreach_frames.resources.people import (
    check_headcount,
    undocumented_columns,
    with_headcount,
    without_added,
)
from outreach_frames.resources.people_filters import FindPeopleFilters
from outreach_frames.resources.search import (
    other_network_field,
    report_dropped_values,
    report_other_network,
    report_unknown_values,
)
from outreach_frames.resources.search_arguments import (
    check_columns,
    check_filters,
    check_limit,
    check_split_by,
    shows_filters,
)
from outreach_frames.tables.columns import usual_names

# Number of companies whose people are searched for profile URLs under another network's name.
_TESTED_COMPANIES: Final = 20


class _Default(int):
    """A default value that differs from the same number if a caller passes it."""


_PER_COMPANY: Final = _Default(10)


@shows_filters(FindPeopleFilters)
def find_people(
    accounts: pd.DataFrame,
    /,
    filters: Mapping[str, Any] | str | PathLike[str] | None = None,
    *,
    domain: Hashable | None = None,
    company_id: Hashable | None = None,
    company_profnet_url: Hashable | None = None,
    company_name: Hashable | None = None,
    person_name: Hashable | Sequence[Hashable] | None = None,
    columns: Sequence[str] | None = None,
    account_columns: Sequence[Hashable] | None = None,
    per_company: int | None = _PER_COMPANY,
    split_by: str | None = None,
    headcount: Headcount = "all",
    dtype_backend: DtypeBackend = "numpy_nullable",
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
    **fields: Unpack[FindPeopleFilters],
) -> AccountPeople:
    """Find the first few people at each company of a table, or the people that it names.

    The function combines several companies into one search if possible, and searches a repeated
    identifier once. The result is the same as with one search per company. If a company has more
    matching people than `per_company`, the order of `person_seniorities` decides who is returned.
    Each person is listed once: if several rows name the same company, the first of these rows gets
    its people.

    If no column is passed, the columns with usual names, such as Website, Company Domain Name or
    Company, identify the companies, and a warning names them. Two such columns for one argument are
    an error, unless one has the argument's name.

    With `person_name`, each row is a person: one search per distinct person and company finds the
    people with the row's name there. The service does not document how it matches names, so the
    names that come back are checked: without case, accents and apostrophes, the whole name must be
    equal, or first and last name, if no middle name contradicts. With `company_name`, the company's
    name must be equal, too, but for its legal form.

    Parameters
    ----------
    accounts : DataFrame
        One company per row.
    filters : mapping or path, optional
        Search filters by name, or the path of a file from `save_filters`. `**fields` lacks the
        filters that a column may set, such as company_names: pass them here.
    domain : str, optional
        The column with web addresses, domains, or email addresses; only the registered domain is
        sent. A cell is ignored if it holds several domains, an email address of a free mail
        provider, such as gmail.com, or a page at a social network, link list or site builder, such
        as facebook.com/ada. A row without another identifier is then invalid.
    company_id : str, optional
        The column with the service's company ids, which are sent in lower case.
    company_profnet_url : str, optional
        The column with companies' profile URLs. Each URL is sent in three variants: unchanged; and
        as https without tracking parameters and trailing slash, once with www and once without.
    company_name : str, optional
        The column with company names. Each name takes a separate request per seniority. The result
        includes every company that the service matches to the name.
    person_name : str, list of str or True, optional
        The column with people's names ("Ada Lovelace", or "Lovelace, Ada"), a list of two columns
        with first and last names, or True for columns with usual names. Sent are names without
        titles, degrees and single initials. To filter by a name, pass
        ``filters={"person_name": ...}``.
    columns : list of str, optional
        The columns of `.people`, as for `search_people`, or matched_seniority; account_row,
        account_rank, the column of `split_by`, or account_status and name_match, and
        `account_columns` are appended if missing.
    account_columns : list of str, optional
        Columns of the table to add to `.people`, such as the owner of the account. A name that
        people already have gets the prefix `account_`.
    per_company : int or None
        The maximum number of people per company. None finds all. Not for `person_name`.
    split_by : str, optional
        A filter with several values, such as "person_departments": each company's people are
        ordered by these values instead of by `person_seniorities`. Without either, people are in
        the service's order. Not for `person_name`.
    headcount : {"all", "department", "none"}
        The company headcount columns to keep; `columns` must not contradict `headcount`.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' own nullable dtypes, or Arrow for every column.
    refresh : bool
        Ask the service even if the cache has a fresh response.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, for long runs.
    client : Client, optional
        By default the client of the last `connect`.
    **fields
        Search filters by name, such as ``person_departments=["marketing"]``; they override
        `filters`.

    Returns
    -------
    AccountPeople
        `.people`: the columns of `search_people`, then account_row (Int64, the position of the
        company's row in the table, from 0), account_rank (Int64, 1 is best), matched_seniority
        (str, the first of `person_seniorities` that the person matches; missing without
        seniorities, or if `split_by` is another filter), with `split_by` a column with the filter's
        name (ordered category, the value that matched), and the columns of `account_columns` with
        their own dtypes. With `person_name`, account_status and name_match (str, "equal" or
        "similar") replace matched_seniority; equal names come first, and up to 10 similar ones
        follow unless a row is found. `.accounts`: the
        table with account_status (found, nobody, invalid, duplicate_in_frame; with `person_name`
        also several, if more than one person may have the name, and similar), account_people
        (Int64, rows in `.people`), account_total (Int64, matching people; missing if a count would
        take further requests), account_company_id, account_company_name and account_detail (str).
        `.summary()`, `.explain_nobody()`, `.to_csv(folder)`, `.to_excel(path)`.

    Raises
    ------
    InvalidInputError
        A column or filter does not exist or has a wrong value, or no column or several columns have
        a usual name; no request was sent.
    ServiceError
        The service or the connection failed. The exception's `.partial` is an AccountPeople with
        the people found before the failure; account_status is missing for unfinished companies.

    Warns
    -----
    OutreachWarning
        The domain column has email addresses of free mail providers or pages of networks; these
        cells are not searched.
        No column was passed, and columns with usual names were used.

    Notes
    -----
    Interface: POST /people/search. If several columns are passed, each row is searched by its first
    identifier in the order company_id, company_profnet_url, domain, company_name. For each
    identifier column and value of `split_by`, else of `person_seniorities`, the function usually
    sends far fewer requests than one search per company, and at most as many, plus one per two
    companies. If people show another company than the searched one, such as a subsidiary, companies
    are searched several times, at worst in about five times as many requests. A row whose people
    are all listed for earlier rows is a duplicate. With
    `company_domains_match_subsidiaries_and_affiliates`, each company takes a separate request,
    because people at a subsidiary do not show which domain matched.

    With `person_name`, one page of 100 people is read per search; if the service counts more, no
    row of that name is `found`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> websites = ["https://www.thalincrest-ledger.example", "torverdyne-bank.example"]
    >>> accounts = pd.DataFrame({"website": [*websites, "nobody.example"]})
    >>> with of.connect("sandbox", cache=None):
    ...     found = accounts.outreach.find_people(
    ...         domain="website", per_company=2, person_departments=["revenue", "marketing"]
    ...     )
    >>> found.people[["account_row", "name", "title"]]
       account_row              name                             title
    0            0      Laura Brooks       Manager, Revenue Operations
    1            0   Felix von Ahlen  Working Student Search Marketing
    2            1      Zoe Grantham      Team Lead Revenue Operations
    3            1  Benjamin Norcott              Junior Sales Trainer
    >>> found.accounts[["website", "account_status", "account_people"]]
                                      website account_status  account_people
    0  https://www.thalincrest-ledger.example          found               2
    1                 torverdyne-bank.example          found               2
    2                          nobody.example         nobody               0
    """
    check_dtype_backend(dtype_backend)
    check_choice("headcount", headcount, HEADCOUNTS)
    is_by_name = person_name is not None
    if is_by_name:
        _reject_company_arguments(per_company, split_by)
    added = [ROW, RANK, *([STATUS, NAME_MATCH] if is_by_name else [MATCHED, split_by])]
    joined = read_account_columns(accounts, account_columns, [*spec.columns(spec.PERSON), *added])
    chosen, needed = _chosen_and_needed(columns, [*added, *joined], is_by_name=is_by_name)
    check_headcount(headcount, chosen)
    passed = {
        "company_id": company_id,
        "company_profnet_url": company_profnet_url,
        "domain": domain,
        "company_name": company_name,
    }
    _reject_column(filters, accounts, passed)
    body = check_filters(filters, fields, find_people)
    name_columns = check_name_columns(accounts, person_name) if is_by_name else []
    identifiers = identifier_columns(accounts, passed)
    _reject_filters(body, [*identifiers, *([PERSON_NAME] if is_by_name else [])])
    if split_by is not None:
        check_split_by(body, split_by)
    most = check_limit(per_company, "per_company")
    if is_by_name:
        searched, names, outcomes = read_people(accounts, name_columns, identifiers)
    else:
        searched, outcomes = read_accounts(accounts, identifiers)
    companies = [CompanyProgress(account, most or inf) for account in searched]
    connected = resolve(client)
    search = (connected, body, split_by, companies, accounts.index, most, refresh, needed)
    finder = NamedPeopleFinder(*search, names=names) if is_by_name else Finder(*search)

    description, unit = ("people", "requests") if is_by_name else ("companies", "companies")
    with progress_bar(len(searched), description=description, unit=unit, progress=progress) as bar:
        finder.on_finished = bar.update

        def result() -> AccountPeople:
            people, explained = finder.people(outcomes, dtype_backend)
            people = add_account_columns(with_headcount(people, headcount), joined)
            read_names = (name for batch in finder.batches for name in batch.people.column_names)
            read = [*dict.fromkeys(read_names)]
            report_dropped_values(chosen, read)
            people.attrs.update(
                filters=body,
                fetched_at=now(),
                errors=finder.errors,
                undocumented=undocumented_columns(read),
            )
            return AccountPeople(
                accounts,
                people,
                explained,
                requests=finder.requests,
                columns=chosen,
                searches=_company_searches(searched, body),
                client=connected,
                is_by_name=is_by_name,
            )

        try:
            finder.run()
            if searched:
                report_unknown_values(connected, body, is_empty=not finder.batches)
        except (OutreachError, KeyboardInterrupt) as error:
            _keep_partial(error, result(), connected)
            raise
    _report(finder)
    return result()


def _keep_partial(
    error: OutreachError | KeyboardInterrupt, partial: AccountPeople, client: Client
) -> None:
    """Attach the people found before an error to it as `.partial`."""
    # OutreachError declares .partial as a DataFrame, but this result is an AccountPeople.
    setattr(error, "partial", partial)  # noqa: B010
    count = plural(len(partial.people), "person", "people")
    error.add_note(f"{count} had been found. {how_to_continue(client)}")
    shorten_traceback(error)


def _report(finder: Finder) -> None:
    """Warn of the service's errors, and of people without profile URLs."""
    report_errors(finder.errors)
    tables = (batch.people for batch in finder.batches[:_TESTED_COMPANIES])
    report_other_network(finder.client, map(other_network_field, tables))


def _chosen_and_needed(
    columns: Sequence[str] | None, added: Sequence[str | None], *, is_by_name: bool
) -> tuple[list[str] | None, list[str] | None]:
    """Return the columns of `.people`, and those to read, which identify people, too."""
    chosen = check_columns(columns, added)
    if chosen is not None and not is_by_name and MATCHED not in (columns or ()):
        chosen.remove(MATCHED)
    needed = without_added(chosen, added)
    names = NAMES if is_by_name else ()
    if needed is not None:
        needed = [*dict.fromkeys([*needed, *IDENTITY, "company_name", *names])]
    return chosen, needed


def _company_searches(
    accounts: Sequence[SearchedAccount], filters: Mapping[str, Any]
) -> dict[int, dict[str, Any]]:
    """Return the filters that find all people of each row's company."""
    affiliates = {name: filters[name] for name in [AFFILIATES_FILTER] if name in filters}
    return {
        account.row: {account.kind.filter: [*account.search_values], **affiliates}
        for account in accounts
    }


def _reject_column(filters: object, frame: pd.DataFrame, identifiers: Mapping[str, object]) -> None:
    """Raise for a column's name in place of filters."""
    if isinstance(filters, str) and filters in frame.columns:
        kinds = [kind for kind in identifiers if usual_names(kind, [filters])] or ["domain"]
        raise InvalidInputError(
            f"{quoted(filters)} is a column of the table. Pass it by its argument: "
            f"{terms.argument(kinds[0], filters)}."
        )


def _reject_company_arguments(per_company: int | None, split_by: str | None) -> None:
    """Raise for arguments that do not apply to a search by name."""
    for name, value, default in (
        ("per_company", per_company, _PER_COMPANY),
        ("split_by", split_by, None),
    ):
        if value is not default:
            raise InvalidInputError(
                f"{terms.argument(name, value)} does not apply to a search by "
                f"{terms.argument(PERSON_NAME)}. Omit one of them."
            )


def _reject_filters(body: Mapping[str, Any], arguments: Sequence[str]) -> None:
    """Raise for filters that the table sets by these arguments."""
    filter_names = {kind.argument: kind.filter for kind in IDENTIFIER_KINDS}
    for argument in arguments:
        filter_name = filter_names.get(argument, argument)
        if filter_name in body:
            raise InvalidInputError(
                f"The filter {filter_name} conflicts with {terms.argument(argument)}. Remove "
                f"{filter_name} from the filters."
            )
