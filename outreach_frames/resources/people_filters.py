"""The search filters as types; written by `python -m tools.people_filters`."""

from __future__ import annotations

from typing import TypedDict

from outreach_frames.common.arguments import ListOfText


class FindPeopleFilters(TypedDict, total=False):
    """All filters but those that `find_people` sets from its table."""

    person_titles: ListOfText | None
    person_title_exact_match: bool | None
    person_seniorities: ListOfText | None
    person_departments: ListOfText | None
    person_job_functions: ListOfText | None
    person_locations: ListOfText | None
    person_exclude_locations: ListOfText | None
    company_locations: ListOfText | None
    company_exclude_locations: ListOfText | None
    company_exclude_names: ListOfText | None
    company_exclude_ids: ListOfText | None
    education_company_ids: ListOfText | None
    education_company_names: ListOfText | None
    company_exclude_domains: ListOfText | None
    company_exclude_profnet_urls: ListOfText | None
    company_domains_match_subsidiaries_and_affiliates: bool | None
    company_focuses: ListOfText | None
    company_types: ListOfText | None
    company_sizes: ListOfText | None
    company_industries: ListOfText | None
    company_exclude_industries: ListOfText | None
    profnet_networks: ListOfText | None
    exclude_profnet_networks: ListOfText | None
    company_investors: ListOfText | None
    company_shares_investors_with: ListOfText | None


class PeopleFilters(FindPeopleFilters, total=False):
    """The filters of a people search; `filters()` lists their known values."""

    person_name: str | None
    company_names: ListOfText | None
    company_ids: ListOfText | None
    company_domains: ListOfText | None
    company_profnet_urls: ListOfText | None
