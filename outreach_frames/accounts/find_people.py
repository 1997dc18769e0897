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
    identifier_columns,
    read_account_columns,
    read_accounts,
)
from outreach_frames.accounts.finder import AFFILIATES_FILTER, Finder
from outreach_frames.accounts.result import (
    IDENTITY,
    MATCHED,
    RANK,
    ROW,
    SENIORITIES,
    AccountPeople,
    add_account_columns,
    list_once,
    people_table,
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
    columns: Sequence[str] | None = None,
    account_columns: Sequence[Hashable] | None = None,
    per_company: int | None = 10,
    split_by: str | None = None,
    headcount: Headcount = "all",
    dtype_backend: DtypeBackend = "numpy_nullable",
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
    **fields: Unpack[FindPeopleFilters],
) -> AccountPeople:
    """Find the first few people at each company of a table, in few requests.

    The function combines several companies into one search if possible, and searches a repeated
    identifier once. The result is the same as with one search per company. If a company has more
    matching people than `per_company`, the order of `person_seniorities` decides who is returned.
    Each person is listed once: if several rows name the same company, the first of these rows gets
    its people.

    If no column is passed, the columns with usual names, such as Website, Company Domain Name or
    Company, identify the companies, and a warning names them. Two such columns for one argument are
    an error, unless one has the argument's name.

    Parameters
    ----------
    accounts : DataFrame
        One company per row.
    filters : mapping or path, optional
        Search filters by name, or the path of a file from `save_filters`. `**fields` lacks the
        filters that select companies, such as company_names: pass them here.
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
    columns : list of str, optional
        The columns of `.people`, as for `search_people`, or matched_seniority; account_row,
        account_rank, the column of `split_by` and `account_columns` are appended if missing.
    account_columns : list of str, optional
        Columns of the table to add to `.people`, such as the owner of the account. A name that
        people already have gets the prefix `account_`.
    per_company : int or None
        The maximum number of people per company. None finds all.
    split_by : str, optional
        A filter with several values, such as "person_departments": each company's people are
        ordered by these values instead of by `person_seniorities`. Without either, people are in
        the service's order.
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
        their own dtypes. `.accounts`: the
        table with account_status (found, nobody, invalid, duplicate_in_frame), account_people
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
    added = [ROW, RANK, MATCHED, split_by]
    joined = read_account_columns(accounts, account_columns, [*spec.columns(spec.PERSON), *added])
    chosen = check_columns(columns, [*added, *joined])
    if chosen is not None and MATCHED not in (columns or ()):
        chosen.remove(MATCHED)
    check_headcount(headcount, chosen)
    needed = without_added(chosen, [*added, *joined])
    needed = None if needed is None else [*dict.fromkeys([*needed, *IDENTITY, "company_name"])]
    passed = {
        "company_id": company_id,
        "company_profnet_url": company_profnet_url,
        "domain": domain,
        "company_name": company_name,
    }
    if isinstance(filters, str) and filters in accounts.columns:
        kinds = [kind for kind in passed if usual_names(kind, [filters])] or ["domain"]
        raise InvalidInputError(
            f"{quoted(filters)} is a column of the table. Pass it by its argument: "
            f"{terms.argument(kinds[0], filters)}."
        )
    body = check_filters(filters, fields, find_people)
    identifiers = identifier_columns(accounts, passed)
    searched, outcomes = read_accounts(accounts, identifiers)
    _reject_company_filters(body, identifiers)
    order_by = SENIORITIES if split_by is None and SENIORITIES in body else split_by
    values = [None] if order_by is None else [*dict.fromkeys(body[check_split_by(body, order_by)])]
    most = check_limit(per_company, "per_company")
    connected = resolve(client)
    companies = [CompanyProgress(account, most or inf) for account in searched]
    affiliates = {name: body[name] for name in [AFFILIATES_FILTER] if name in body}
    searches = {
        account.row: {account.kind.filter: [*account.search_values], **affiliates}
        for account in searched
    }

    with progress_bar(
        len(companies), description="companies", unit="companies", progress=progress
    ) as bar:
        finder = Finder(connected, companies, most, refresh, bar.update, needed)

        def result() -> AccountPeople:
            searched = {company.account.row: company.outcome() for company in companies}
            rows, explained = list_once(finder.batches, {**outcomes, **searched}, accounts.index)
            people = people_table(
                finder.batches, rows, dtype_backend, split_by, body, columns=needed
            )
            people = add_account_columns(with_headcount(people, headcount), joined)
            names = (name for batch in finder.batches for name in batch.people.column_names)
            read = [*dict.fromkeys(names)]
            report_dropped_values(chosen, read)
            undocumented = undocumented_columns(read)
            people.attrs.update(
                filters=body, fetched_at=now(), errors=finder.errors, undocumented=undocumented
            )
            return AccountPeople(
                accounts,
                people,
                explained,
                requests=finder.requests,
                columns=chosen,
                searches=searches,
                client=connected,
            )

        try:
            finder.run(body, order_by, values)
            if companies:
                report_unknown_values(connected, body, is_empty=not finder.batches)
        except (OutreachError, KeyboardInterrupt) as error:
            partial = result()
            # OutreachError declares .partial as a DataFrame, but this result is an AccountPeople.
            setattr(error, "partial", partial)  # noqa: B010
            count = plural(len(partial.people), "person", "people")
            error.add_note(f"{count} had been found. {how_to_continue(connected)}")
            shorten_traceback(error)
            raise
    _report(finder)
    return result()


def _report(finder: Finder) -> None:
    """Warn of the service's errors, and of people without profile URLs."""
    report_errors(finder.errors)
    tables = (batch.people for batch in finder.batches[:_TESTED_COMPANIES])
    report_other_network(finder.client, map(other_network_field, tables))


def _reject_company_filters(body: Mapping[str, Any], columns: Mapping[str, Hashable]) -> None:
    for kind in IDENTIFIER_KINDS:
        if kind.argument in columns and kind.filter in body:
            raise InvalidInputError(
                f"The filter {kind.filter} conflicts with {terms.argument(kind.argument)}. Remove "
                f"{kind.filter} from the filters."
            )
