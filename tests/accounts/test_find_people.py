"""One search for many companies finds the same people as one per company, in fewer requests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.accounts.result import AccountPeople
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachError, OutreachWarning
from tests.accounts.world import SENIORITIES, Firm, World, world_of
from tests.examples import share_of_examples
from tests.resources.search_service import connected
from tests.resources.search_service import result as search_result
from tests.scripted import Received, Reply, json, scripted

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:Nobody matches:outreach_frames.errors.OutreachWarning"),
]

FILTER_OF = {
    "domain": "company_domains",
    "company_id": "company_ids",
    "company_profnet_url": "company_profnet_urls",
    "company_name": "company_names",
}
ATTRIBUTES = {"company_id": "id", "company_profnet_url": "profnet_url", "company_name": "name"}


def one_by_one(
    world: World,
    kind: str,
    keys: Sequence[str],
    most: int | None,
    values: Sequence[str] | None,
) -> list[list[str]]:
    """Return the people that one search per company and seniority finds, in order."""
    found = []
    for key in keys:
        ids: dict[str, None] = {}
        for value in values or [None]:
            filters = {FILTER_OF[kind]: [key]}
            if value:
                filters["person_seniorities"] = [value]
            ids |= dict.fromkeys(person["id"] for person in world.search(filters))
        found.append(list(ids)[:most])
    return found


def listed_once(found: Sequence[list[str]]) -> list[list[str]]:
    """Drop people who are already in an earlier row."""
    seen: set[str] = set()
    once = []
    for ids in found:
        once.append([one for one in ids if one not in seen])
        seen.update(ids)
    return once


def by_account(result: AccountPeople, rows: int) -> list[list[str]]:
    """Return the person ids per account, in order."""
    people = result.people.sort_values(["account_row", "account_rank"])
    groups = {row: part["id"].tolist() for row, part in people.groupby("account_row")}
    return [groups.get(row, []) for row in range(rows)]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw companies with shared domains and names, subsidiaries, and 0 to 5,000 people."""
    count = draw(st.integers(1, 14))
    sizes = st.sampled_from([0, 0, 1, 1, 2, 3, 5, 9, 40, 130])
    giant = draw(st.sampled_from([7] + [None] * 9))
    firms = []
    for number in range(1, count + 1):
        size = 5_000 if number == giant else draw(sizes)
        known = draw(st.integers(0, number))
        domain = draw(st.sampled_from([f"firm{number}.example"] * 8 + [f"firm{known}.example", ""]))
        parents = draw(st.sampled_from([()] * 6 + [(f"parent{known % 3}.example",)]))
        name = draw(st.sampled_from([f"Firm {number}"] * 3 + ["Twin"]))
        kinds = draw(
            st.lists(st.sampled_from([*SENIORITIES, "vp director"]), min_size=1, max_size=4)
        )
        seniorities = tuple(kinds[place % len(kinds)] for place in range(size))
        firms.append(Firm(number, domain, name, seniorities, parents))
    seed = draw(st.integers(0, 9))
    return World(firms, random.Random(seed).shuffle if seed else lambda people: None)


def requests_one_by_one(
    world: World,
    kind: str,
    keys: Sequence[str],
    most: int | None,
    values: Sequence[str] | None = None,
) -> int:
    """Count the requests of one search per company and seniority, until a company has enough."""
    page_size = min(100, most or 100)
    requests = 0
    for key in keys:
        kept: dict[str, None] = {}
        for value in values or [None]:
            if len(kept) == most:
                break
            filters = {FILTER_OF[kind]: [key]} | ({"person_seniorities": [value]} if value else {})
            people, read = world.search(filters), 0
            while read == 0 or (read < len(people) and len(kept) != most):
                requests += 1
                ids = [person["id"] for person in people[read : read + page_size]]
                kept = dict.fromkeys([*dict.fromkeys([*kept, *ids])][:most])
                read += page_size
    return requests


def has_subsidiaries(world: World) -> bool:
    """Return whether a search by a parent's domain finds people who show another domain."""
    return any(firm.found_by and firm.seniorities for firm in world.firms)


@share_of_examples(0.3)
@given(data=st.data(), world=worlds())
def test_it_equals_a_search_of_each_company(data: st.DataObject, world: World) -> None:
    """Each row has the people of a separate search, without the people of earlier rows."""
    kind = data.draw(st.sampled_from(["domain", *FILTER_OF]), label="kind")
    most = data.draw(st.sampled_from([1, 2, 3, 10, 50, 150, None]), label="most")
    values = data.draw(st.sampled_from([None, SENIORITIES, ["vp", "director"]]), label="values")
    attribute = ATTRIBUTES.get(kind, kind)
    keys = [getattr(firm, attribute) for firm in world.firms]
    if kind == "domain":
        keys += ["parent0.example", "parent1.example", "nobody.example"]
    keys = [key for key in dict.fromkeys(keys) if key]
    options: dict[str, Any] = {"person_seniorities": values} if values else {}
    if values and data.draw(st.booleans(), label="split"):
        options["split_by"] = "person_seniorities"
    with scripted(world.reply) as service, connected(service):
        accounts = pd.DataFrame({"key": keys})
        result = accounts.outreach.find_people(
            **{kind: "key"}, per_company=most, headcount="none", **options
        )
    expected = one_by_one(world, kind, keys, most, values)
    once = listed_once(expected)
    assert by_account(result, len(keys)) == once
    assert result.accounts["account_people"].tolist() == [len(ids) for ids in once]
    assert result.accounts["account_status"].tolist() == [
        "found" if mine else "duplicate_in_frame" if ids else "nobody"
        for ids, mine in zip(expected, once, strict=True)
    ]
    everybody = one_by_one(world, kind, keys, None, values)
    for ids, total in zip(everybody, result.accounts["account_total"], strict=True):
        assert pd.isna(total) or total == len(ids)
    assert result.requests == len(service.requests)
    matched = [
        next((value for value in values or () if value in title), None)
        for title in result.people["title"]
    ]
    assert (
        result.people["matched_seniority"].astype(object).where(pd.notna, None).tolist() == matched
    )

    alone = requests_one_by_one(world, kind, keys, most, values)
    if kind == "domain" and has_subsidiaries(world):
        assert result.requests <= 5 * alone
    else:
        assert result.requests <= alone + len(values or [None]) * (len(keys) // 2)


@pytest.mark.parametrize("own", [["director"], ["vp director", "director"]])
def test_a_subsidiarys_people_are_not_lost_for_later_seniorities(own: list[str]) -> None:
    """People who show a subsidiary are listed, even if a later seniority has people of the parent.

    The first seniority has only people of another company.
    """
    world = World(
        [
            Firm(1, "subsidiary.example", "Subsidiary", ["vp"], ("one.example",)),
            Firm(2, "one.example", "One", own),
            Firm(3, "two.example", "Two", ["c_suite"]),
        ]
    )
    keys = ["one.example", "two.example"]
    with scripted(world.reply) as service, connected(service):
        accounts = pd.DataFrame({"site": keys})
        result = accounts.outreach.find_people(domain="site", person_seniorities=SENIORITIES)
    assert by_account(result, 2) == one_by_one(world, "domain", keys, 10, SENIORITIES)


WRITTEN = {
    "company_id": [str, str.upper, "{{{}}}".format, lambda text: text.replace("-", "")],
    "company_profnet_url": [str, str.upper, "{}/?utm_source=x".format],
    "domain": [str, str.upper, "https://www.{}/about".format, "info@{}".format],
    "company_name": [str, str.upper, " {} ".format],
}


@share_of_examples(0.3)
@given(data=st.data(), world=worlds())
def test_a_company_with_several_spellings_is_listed_once(data: st.DataObject, world: World) -> None:
    """If rows spell a company differently, each person is listed once, and all counts add up."""
    firms = [firm for firm in world.firms if len(firm.seniorities) < 1000]
    world = replace(world, firms=firms)
    rows: list[tuple[str, str, str]] = []
    for firm in data.draw(st.lists(st.sampled_from(firms), max_size=10)) if firms else []:
        kind = data.draw(st.sampled_from(list(FILTER_OF)))
        known = [getattr(firm, ATTRIBUTES.get(kind, kind))]
        key = data.draw(st.sampled_from([*known, *(firm.found_by if kind == "domain" else ())]))
        if key:
            rows.append((kind, key, data.draw(st.sampled_from(WRITTEN[kind]))(key)))
    most = data.draw(st.sampled_from([1, 3, 10, None]), label="most")
    options: dict[str, Any] = {}
    values = data.draw(st.sampled_from([None, ["vp", "director"]]), label="values")
    if values:
        options = {"person_seniorities": values, "split_by": "person_seniorities"}

    def reply(request: Received) -> Reply:
        # Names and URLs match regardless of case.
        body = request.json
        known = {
            getattr(firm, name).lower(): getattr(firm, name)
            for firm in firms
            for name in ("name", "profnet_url")
        }
        for name in ("company_names", "company_profnet_urls"):
            if name in body:
                body[name] = [known.get(value.lower(), value) for value in body[name]]
        return world.reply(replace(request, body=dumps(body).encode()))

    with scripted(reply) as service, connected(service):
        columns = {
            kind: [text if kind == one else None for one, _, text in rows] for kind in FILTER_OF
        }
        accounts = pd.DataFrame(columns, dtype="str")
        result = accounts.outreach.find_people(
            per_company=most, headcount="none", **{kind: kind for kind in FILTER_OF}, **options
        )
    people, outcomes = result.people, result.accounts
    if not values:
        separate = sum(requests_one_by_one(world, kind, [key], most) for kind, key, _ in rows)
        most_requests = 5 * separate if has_subsidiaries(world) else separate + len(rows) // 2
        assert result.requests <= most_requests
    alone = [one_by_one(world, kind, [key], most, values)[0] for kind, key, _ in rows]
    once = listed_once(alone)
    assert by_account(result, len(rows)) == once
    assert outcomes["account_people"].tolist() == [len(ids) for ids in once]
    assert result.summary()["people"].sum() == len(people)
    assert people["account_rank"].tolist() == [n for ids in once for n in range(1, len(ids) + 1)]
    assert (outcomes["account_people"] > 0).eq(outcomes["account_status"] == "found").all()
    later = outcomes[outcomes["account_status"] == "duplicate_in_frame"]
    for row, detail in zip(later.index, later["account_detail"], strict=True):
        named = int(detail.rpartition(" as row ")[2].partition(":")[0])
        assert named < row
        assert outcomes["account_status"].iloc[named] != "invalid"


ACME = Firm(1, "acme.example", "Acme Holding", ["vp", "director"] * 2, ("acme.co", "Acme"))
OTHER = Firm(2, "other.example", "Other", ["vp"])
ONE_COMPANY: list[dict[str, str]] = [
    {"company_id": ACME.id},
    {"company_id": f"{{{ACME.id.upper()}}}"},
    {"company_profnet_url": ACME.profnet_url},
    {"domain": "acme.example"},
    {"domain": "acme.co"},
    {"company_name": "Acme Holding"},
]


@pytest.mark.parametrize("most", [1, 3, None])
def test_rows_of_one_company_have_its_people_once(most: int | None) -> None:
    """The first row of a company has its people; the details of later rows name the first row."""
    world = World([ACME, OTHER])
    accounts = pd.DataFrame([{"domain": "other.example"}, *ONE_COMPANY], index=list("abcdefg"))
    kinds: dict[str, Any] = {kind: kind for kind in FILTER_OF}
    with scripted(world.reply) as service, connected(service):
        result = accounts.outreach.find_people(per_company=most, headcount="none", **kinds)
        sent = [one for request in service.requests for one in request.json.get("company_ids", [])]
    assert result.accounts["account_status"].tolist() == ["found"] * 2 + ["duplicate_in_frame"] * 5
    assert result.accounts["account_people"].tolist() == [1, min(most or 4, 4), *[0] * 5]
    assert result.people["account_row"].tolist() == [0, *[1] * min(most or 4, 4)]
    assert result.accounts["account_detail"].tolist()[3:] == ["same company as row 'b'"] * 4
    assert set(sent) == {ACME.id}
    assert f"{len(result.people)} people at 7 accounts" in repr(result)


def test_a_company_is_listed_once_in_a_partial_result() -> None:
    """After an error, people of a finished row are not repeated; unfinished rows have no status."""
    world = World([ACME, OTHER])

    def reply(request: Received) -> Reply:
        if request.json.get("company_names") == ["Other"]:
            return json({"error": "down"}, status=400)
        return world.reply(request)

    accounts = pd.DataFrame(
        {"name": ["Acme Holding", None, "Other"], "domain": [None, "acme.example", None]}
    )
    with scripted(reply) as service, connected(service, workers=1):
        with pytest.raises(OutreachError) as caught:
            accounts.outreach.find_people(company_name="name", domain="domain")
    partial = caught.value.partial
    assert isinstance(partial, AccountPeople)
    statuses = partial.accounts["account_status"].fillna("").tolist()
    assert statuses == ["found", "duplicate_in_frame", ""]
    stopped = "the search stopped before this company was finished"
    assert partial.accounts["account_detail"].tolist()[::2] == ["", stopped]
    assert partial.people["account_row"].tolist() == [0] * 4
    assert "The search stopped" in repr(partial)


def test_a_free_mail_provider_is_not_an_employer() -> None:
    """An email address at a free mail provider is not searched, but the provider's website is."""
    free = ["a@gmail.com", " B@GMAIL.COM.", "mailto:c@gmx.de", "d@mail.yahoo.com", "e\uff20web.de"]
    searched = ["web.de", "https://www.Yahoo.com/mail", "f@one.example", "medium.com/@gmail.com"]
    accounts = pd.DataFrame({"site": [*searched, *free], "name": [None] * 8 + ["Firm 1"]})
    world = world_of({"one.example": 2})
    with scripted(world.reply) as service, connected(service):
        with pytest.warns(OutreachWarning) as caught:
            result = accounts.outreach.find_people(domain="site", company_name="name")
        sent = service.requests[0].json["company_domains"]
    assert sent == ["web.de", "yahoo.com", "one.example", "medium.com"]
    assert result.accounts["account_status"].tolist() == [
        *["nobody", "nobody", "found", "nobody"],
        *["invalid"] * 4,
        "duplicate_in_frame",
    ]
    assert "domain 'mailto:c@gmx.de'" in result.accounts["account_detail"].iloc[6]
    (said,) = [str(one.message) for one in caught]
    assert "'site' has 5 email addresses of free mail providers, such as gmail.com in row 4" in said
    assert "a@" not in said


def test_a_page_of_a_network_is_not_a_companys_domain() -> None:
    """A company's page at a network is not searched: its other identifier is, or it is invalid."""
    accounts = pd.DataFrame(
        {
            "site": ["facebook.com/ada", "instagram.com/one", "one.example"],
            "name": [None, "One", ""],
        }
    )
    with scripted(world_of({"one.example": 2}).reply) as service, connected(service):
        with pytest.warns(OutreachWarning, match="has 2 pages of networks"):
            found = accounts.outreach.find_people(domain="site", company_name="name")
        assert [request.json.get("company_domains") for request in service.requests] == [
            *[["one.example"], None]
        ]
    assert found.accounts["account_status"].tolist() == ["invalid", "nobody", "found"]


def test_people_of_an_unrequested_company_have_no_account() -> None:
    """A person of an unrequested company has no account; each company is then searched alone."""
    stranger = Firm(9, "stranger.example", "Stranger", ["vp"])
    world = world_of({"one.example": 1, "two.example": 1})
    together = World([*world.firms, stranger])

    def reply(request: Received) -> Reply:
        filters = request.json
        if len(filters["company_domains"]) == 1:
            return world.reply(request)
        return together.reply(
            replace(request, body=dumps(filters | {"company_domains": DOMAINS}).encode())
        )

    with scripted(reply) as service, connected(service):
        accounts = pd.DataFrame({"site": DOMAINS[:2]})
        result = accounts.outreach.find_people(domain="site", per_company=5, headcount="none")
    sites = ["https://www.one.example/", "https://www.two.example/"]
    assert result.people["company_website"].tolist() == sites
    assert result.accounts["account_people"].tolist() == [1, 1]
    assert result.summary()["account_status"].tolist() == ["found"]
    assert service.requests[0].json["company_domains"] == DOMAINS[:2]


DOMAINS = ["one.example", "two.example", "stranger.example"]


def test_two_hundred_companies_take_few_requests() -> None:
    """Companies of uneven size need at most a tenth of a request each."""
    uneven = random.Random(1)
    sizes = {f"firm{n}.example": int(2 * uneven.paretovariate(0.8)) for n in range(195)}
    sizes |= {f"giant{n}.example": 500 for n in range(5)}
    with scripted(world_of(sizes).reply) as service, connected(service):
        accounts = pd.DataFrame({"site": list(sizes)})
        counts = {
            most: accounts.outreach.find_people(domain="site", per_company=most).requests
            for most in (1, 3, 10)
        }
        assert len(service.requests) == sum(counts.values())
    assert counts[1] <= 20
    assert counts[3] <= 40
    assert counts[10] <= 80


def test_the_frames_have_the_promised_columns(client: Client, people: pd.DataFrame) -> None:
    """People have the columns of a search and four more; accounts keep theirs and get six more."""
    sites = people["company_website"].drop_duplicates().head(3)
    accounts = pd.DataFrame({"Site": [*sites, "nobody.example"]}, index=list("abcd"))
    options: dict[str, Any] = {
        "person_seniorities": SENIORITIES,
        "split_by": "person_seniorities",
    }
    result = accounts.outreach.find_people(domain="Site", per_company=2, **options)
    added = {"account_row": "Int64", "account_rank": "Int64", "matched_seniority": "str"}
    plain = of.search_people(limit=None)
    assert result.people.columns.tolist() == [*plain.columns, *added, "person_seniorities"]
    pd.testing.assert_series_equal(
        result.people.dtypes[:-1], pd.concat([plain.dtypes, pd.Series(added)]), check_dtype=False
    )
    assert result.people["person_seniorities"].dtype == pd.CategoricalDtype(SENIORITIES, True)
    assert result.accounts.index.tolist() == list("abcd")
    assert {name: str(dtype) for name, dtype in result.accounts.dtypes.items()} == {
        "Site": "str",
        "account_status": "str",
        "account_people": "Int64",
        "account_total": "Int64",
        "account_company_id": "str",
        "account_company_name": "str",
        "account_detail": "str",
    }
    nobody = accounts.iloc[3:].outreach.find_people(domain="Site", per_company=2, **options)
    pd.testing.assert_series_equal(nobody.people.dtypes, result.people.dtypes)
    none = accounts.iloc[:0].outreach.find_people(domain="Site", per_company=2, **options)
    pd.testing.assert_series_equal(none.people.dtypes, result.people.dtypes)
    arrow = accounts.outreach.find_people(domain="Site", per_company=2, dtype_backend="pyarrow")
    assert arrow.people["matched_seniority"].dtype == arrow.people["name"].dtype
    assert arrow.people["matched_seniority"].isna().all()
    pd.testing.assert_series_equal(none.accounts.dtypes, result.accounts.dtypes)


def test_the_order_of_seniorities_decides_who_is_cut_off() -> None:
    """Of more people than `per_company`, those with the first seniorities are kept, in order."""
    seniorities = ["manager", "vp", "manager", "director", "manager", "director", "c_suite"]
    world = World([Firm(1, "one.example", "One", seniorities), Firm(2, "two.example", "Two")])
    accounts = pd.DataFrame({"domain": ["one.example", "two.example"]})
    given = ["c_suite", "director", "manager", "director"]
    with scripted(world.reply) as service, connected(service):
        options: dict[str, Any] = {"domain": "domain", "per_company": 3}
        found = accounts.outreach.find_people(**options, person_seniorities=given)
        split = accounts.outreach.find_people(
            **options, person_seniorities=given, split_by="person_seniorities"
        )
        one = accounts.outreach.find_people(**options, person_seniorities=["manager"])
        other = {"person_departments": ["legal"], "split_by": "person_departments"}
        by_department = accounts.outreach.find_people(**options, **other, person_seniorities=given)
    assert found.people["matched_seniority"].tolist() == ["c_suite", "director", "director"]
    assert found.people["id"].tolist() == split.people["id"].tolist()
    assert found.requests == split.requests
    assert split.people["matched_seniority"].tolist() == split.people["person_seniorities"].tolist()
    assert one.people["matched_seniority"].tolist() == ["manager"] * 3
    assert by_department.people["matched_seniority"].isna().all()


@pytest.mark.parametrize(
    ("page", "text", "filters"),
    [
        ("README.md", "200 companies take four requests", {}),
        (
            "docs/how-to/companies-to-people.md",
            "47 people at 200 accounts, found in 5 requests",
            {
                "person_departments": ["marketing", "revenue"],
                "person_seniorities": ["c_suite", "vp", "director", "manager"],
            },
        ),
    ],
)
def test_the_pages_have_the_measured_requests(page: str, text: str, filters: Any) -> None:
    """200 companies take as many requests as the pages say."""
    root = Path(__file__).parents[2]
    with of.connect("sandbox", cache=None):
        accounts = pd.read_csv(root / "data/target_accounts.csv")
        found = accounts.outreach.find_people(
            {"person_seniorities": ["director", "vp"], **filters}, domain="Website", per_company=3
        )
    assert text in (root / page).read_text("utf-8")
    number = {4: "four"}.get(found.requests)
    assert f"{len(accounts)} companies take {number} requests" == text or repr(found)[:46] == text


def test_columns_of_the_accounts_are_added_to_people() -> None:
    """Each person has the account's own columns; a name that people have gets a prefix."""
    world = world_of({"one.example": 2, "two.example": 1})
    accounts = pd.DataFrame(
        {
            "domain": ["nobody.example", "two.example", "one.example"],
            "Owner": pd.Categorical(["x@o.example", "y@o.example", None]),
            "title": [1, 2, 3],
            "account_row": pd.Series(["a", "b", "c"], dtype=object),
        },
    ).set_axis([5, 5, 5])
    options: dict[str, Any] = {"domain": "domain", "account_columns": list(accounts)[1:]}
    with scripted(world.reply) as service, connected(service):
        people = accounts.outreach.find_people(**options).people
        few = accounts.outreach.find_people(
            columns=["Owner", "name", "title"], **options | {"account_columns": ["Owner", "title"]}
        )
        none = accounts.iloc[:0].outreach.find_people(**options).people
        with pytest.raises(InvalidInputError, match=r"no column 'owner'\. Did you mean 'Owner'"):
            accounts.outreach.find_people(domain="domain", account_columns=["owner"])
    added = ["Owner", "account_title", "account_account_row"]
    assert list(people.columns[-3:]) == added
    assert people[added].astype(object).where(pd.notna, None).to_numpy().tolist() == [
        ["y@o.example", 2, "b"],
        *[[None, 3, "c"]] * 2,
    ]
    assert people["Owner"].dtype == accounts["Owner"].dtype
    assert people["account_account_row"].dtype == accounts["account_row"].dtype == object
    pd.testing.assert_series_equal(none.dtypes, people.dtypes)
    assert list(few.people) == [
        *["Owner", "name", "title", "account_row", "account_rank", "account_title"]
    ]


@pytest.mark.parametrize("name", ["Website", "DOMAIN", "Web-Site URL", "Company Domain Name"])
def test_a_usual_column_identifies_the_companies(name: str) -> None:
    """Without a passed column, the columns with usual names are used, with a warning."""
    accounts = pd.DataFrame({"Owner": ["Cem", "Bo"], name: ["one.example", None]})
    named = accounts.assign(Company=["", "Two"])
    with scripted(world_of({"one.example": 1}).reply) as service, connected(service):
        with pytest.warns(OutreachWarning, match=f"identified by domain='{name}'\\."):
            found = accounts.outreach.find_people()
        with pytest.warns(OutreachWarning, match=f"by domain='{name}', company_name='Company'"):
            assert named.outreach.find_people().accounts["account_status"][1] == "nobody"
        both = f"no column 'domain', but '{name}' and 'Homepage'.*columns are 'Owner'"
        with pytest.raises(InvalidInputError, match=both):
            accounts.assign(Homepage="two.example").outreach.find_people()
        with pytest.warns(OutreachWarning, match="identified by domain='domain'"):
            accounts.assign(domain="one.example").outreach.find_people()
        with pytest.raises(InvalidInputError, match=r"no column with a usual name.*are 'Owner'"):
            accounts[["Owner"]].outreach.find_people()
        with pytest.warns(OutreachWarning), pytest.raises(InvalidInputError, match="conflicts"):
            accounts.outreach.find_people(company_domains=["two.example"])
    assert len(found.people) == 1


def test_companies_without_a_match_are_explained() -> None:
    """The people of companies with the status nobody are counted without the filters."""
    firms = [Firm(1, "one.example", "One", ["vp"] * 3), Firm(2, "two.example", "Two", ["vp"])]
    sites = ["two.example", "none.example", "one.example", "TWO.example", "localhost"]
    accounts = pd.DataFrame({"site": sites}, index=list("abcde"))
    options: dict[str, Any] = {"person_seniorities": ["director"], "domain": "site"}
    affiliates = {"company_domains_match_subsidiaries_and_affiliates": True}
    for further in ({}, affiliates):
        with scripted(World(firms).reply) as service, connected(service):
            with pytest.warns(OutreachWarning, match="Nobody matches"):
                found = accounts.outreach.find_people(**options, **further)
            before = len(service.requests)
            explained = found.explain_nobody()
            sent = [request.json for request in service.requests[before:]]
        # The counts are requested in parallel.
        assert sorted(body.pop("company_domains")[0] for body in sent) == sorted(set(sites[:3]))
        assert [{**body, "page_size": 1} for body in sent] == [
            {"page": 1, "page_size": 1, **further}
        ] * 3
        assert explained["people_without_filters"].tolist() == [1, 0, 3]
        assert explained["people_without_filters"].dtype == "Int64"
        columns = found.accounts.columns
        pd.testing.assert_frame_equal(explained[columns], found.accounts.iloc[[0, 1, 2]])
        assert ".explain_nobody(), in 3 requests" in repr(found)


def test_every_account_has_a_status() -> None:
    """Found, empty, invalid and duplicate rows have a status and reason; no search is repeated."""
    world = world_of({"one.example": 3, "two.example": 0})
    cells = ["https://www.One.example/a", "two.example", "n/a"]
    cells += [None, "x@one.example", "TWO.example."]
    accounts = pd.DataFrame({"site": cells}, index=[7, 7, 8, 9, 10, 11])
    with scripted(world.reply) as service, connected(service):
        result = accounts.outreach.find_people(domain="site", per_company=2)
        asked = [request.json["company_domains"] for request in service.requests]
    told = result.accounts
    assert told["account_status"].tolist() == [
        *["found", "nobody", "invalid", "invalid", "duplicate_in_frame", "duplicate_in_frame"]
    ]
    assert told["account_people"].tolist() == [2, 0, 0, 0, 0, 0]
    assert told["account_total"].tolist() == [3, 0, pd.NA, pd.NA, pd.NA, pd.NA]
    assert told["account_company_id"].tolist()[0] == world.firms[0].id
    assert told["account_company_name"].isna().tolist() == [False, *[True] * 5]
    assert "two.example" in told["account_detail"].iloc[1]
    assert "'n/a'" in told["account_detail"].iloc[2]
    assert "domain (empty)" in told["account_detail"].iloc[3]
    assert "row 7" in told["account_detail"].iloc[4]
    assert asked == [["one.example", "two.example"], ["two.example"]]
    assert result.summary().to_dict("list") == {
        "account_status": ["found", "nobody", "invalid", "duplicate_in_frame"],
        "accounts": [1, 1, 2, 2],
        "people": [2, 0, 0, 0],
    }
    text, html = repr(result), result._repr_html_()
    assert "2 people at 6 accounts, found in 2 requests" in text
    assert "2 people at 6 accounts" in html


def test_a_cell_that_is_not_one_company_is_invalid() -> None:
    """Unreadable cells, and cells with several companies, are neither merged nor searched."""
    world = world_of({"one.example": 1, "two.example": 1})
    invalid = [
        *["https://www.https://one.example", "https://www.https://two.example", "one .example"],
        *["anna@one.example; bo@two.example", "https://one.example/,https://two.example/"],
        *["https://www.nhs.uk", "https://www.gov.uk"],
    ]
    accounts = pd.DataFrame({"Web-Site": [*invalid, "one.example", ["two.example"]]})
    with scripted(world.reply) as service, connected(service):
        told = accounts.outreach.find_people(domain="website", per_company=2).accounts
        error = "no column 'website', but 'Web-Site' and 'WEBSITE'"
        with pytest.raises(InvalidInputError, match=error):
            accounts.assign(WEBSITE="x").outreach.find_people(domain="website")
    assert told["account_status"].tolist() == [*["invalid"] * len(invalid), "found", "found"]
    for detail, cell in zip(told["account_detail"], invalid, strict=False):
        assert detail == f"not exactly one company in domain {cell!r}"


def test_a_company_may_be_called_x() -> None:
    """X is the name of a company; a placeholder or an error of a spreadsheet is none."""
    names = ["X", "xxx", "#N/A", "Loading...", "tbd", "(blank)", "[Blank]", "NaT"]
    with scripted(lambda _: search_result([], total=0)) as service, connected(service):
        told = pd.DataFrame({"name": names}).outreach.find_people(company_name="name")
    assert told.accounts["account_status"].tolist() == ["nobody", *["invalid"] * 7]
    assert of.keys.company_name(names).tolist()[0] == "x"
    assert of.keys.company_name(names).isna().tolist() == [False, *[True] * 7]


def test_the_most_reliable_column_is_searched() -> None:
    """A row is searched by its id, else by its domain, else by its name."""
    world = world_of({"one.example": 1, "two.example": 1, "three.example": 1})
    accounts = pd.DataFrame(
        {
            "id": [world.firms[0].id, None, "17"],
            "site": ["two.example", "two.example", "unknown"],
            "name": ["Firm 3", "Firm 3", "Firm 3"],
        }
    )
    with scripted(world.reply) as service, connected(service):
        result = accounts.outreach.find_people(company_id="id", domain="site", company_name="name")
    assert result.accounts["account_company_name"].tolist() == ["Firm 1", "Firm 2", "Firm 3"]
    assert result.accounts["account_status"].tolist() == ["found"] * 3


def test_companies_are_searched_alone_if_subsidiaries_count(client: Client) -> None:
    """If a search includes subsidiaries, each company is searched alone."""
    sites = of.search_people(limit=None)["company_website"].drop_duplicates()[:5]
    accounts = pd.DataFrame({"site": sites})
    switch = {"company_domains_match_subsidiaries_and_affiliates": True}
    result = accounts.outreach.find_people(domain="site", per_company=None, **switch)
    for row, site in enumerate(of.keys.domain(sites)):
        alone = of.search_people(company_domains=[site], limit=None, **switch)
        mine = result.people[result.people["account_row"] == row]
        assert mine["id"].tolist() == alone["id"].tolist()
    assert result.requests >= len(sites)


@pytest.mark.parametrize(
    "url",
    [
        "https://profnet.example/company/1",
        "https://www.profnet.example/company/1/?trk=list&utm_source=x",
        "WWW.Profnet.example/company/1",
        "http://profnet.example/company/1?ref=mail",
    ],
)
def test_a_company_url_is_searched_in_several_spellings(url: str) -> None:
    """A company URL is sent as given and normalised; rows with the same page are one company."""
    with scripted(world_of({"one.example": 2}).reply) as service, connected(service):
        accounts = pd.DataFrame({"page": [url, "profnet.example/company/1/", "x.example/#/a"]})
        result = accounts.outreach.find_people(company_profnet_url="page")
        sent = [request.json["company_profnet_urls"] for request in service.requests]
    assert result.accounts["account_status"].tolist() == ["found", "duplicate_in_frame", "nobody"]
    assert len(result.people) == 2
    assert sent[0][0] == url


def test_a_truncated_company_says_so() -> None:
    """If the service returns fewer people than it counts, the detail shows both numbers."""
    world = world_of({"one.example": 4})

    def reply(request: Received) -> Reply:
        found = world.search(request.json) if request.json["page"] == 1 else []
        return search_result(found, total=400, page_size=100, total_pages=4)

    with scripted(reply) as service, connected(service):
        accounts = pd.DataFrame({"site": ["one.example"]})
        result = accounts.outreach.find_people(domain="site", per_company=None)
    assert len(result.people) == 4
    assert "counted 400 people but returned 4" in result.accounts["account_detail"].iloc[0]


def test_errors_with_results_are_counted_in_a_warning() -> None:
    """Errors that the service reports with its results are in a warning and in `.attrs`."""
    pagination = {"page": 1, "page_size": 100, "total_pages": 1, "total": 1}
    body = {
        "results": World([ACME]).search({}),
        "_pagination": pagination,
        "_errors": [{"code": 7}],
    }
    with scripted([json(body)]) as service, connected(service):
        with pytest.warns(OutreachWarning, match=r"reported 1 error with its results: 7"):
            found = pd.DataFrame({"name": ["Acme"]}).outreach.find_people(company_name="name")
    assert found.people.attrs["errors"] == [{"code": 7}]


@pytest.mark.parametrize("most", [1, 10, None])
def test_an_empty_page_with_a_total_ends_the_joint_search(most: int | None) -> None:
    """If a search counts people but returns none, each company is searched alone."""
    world = world_of({"one.example": 2, "two.example": 3})

    def reply(request: Received) -> Reply:
        if len(request.json["company_domains"]) > 1:
            return search_result([], total=5, page_size=100, total_pages=1)
        return world.reply(request)

    with scripted(reply) as service, connected(service):
        accounts = pd.DataFrame({"site": ["one.example", "two.example"]})
        result = accounts.outreach.find_people(domain="site", per_company=most)
    assert result.accounts["account_status"].tolist() == ["found", "found"]


@pytest.mark.parametrize(
    ("sizes", "most"),
    [({f"firm{n}.example": 1 for n in range(120)}, 10), ({"a.example": 250}, None)],
)
def test_pages_without_a_total_are_read(sizes: dict[str, int], most: int | None) -> None:
    """If a service returns no totals, searches still have several pages, and may be shared."""
    world = world_of(sizes)

    def reply(request: Received) -> Reply:
        first = (request.json["page"] - 1) * request.json["page_size"]
        found = world.search(request.json)[first : first + request.json["page_size"]]
        return search_result(found, total=None, page=request.json["page"], page_size=100)

    with scripted(reply) as service, connected(service):
        accounts = pd.DataFrame({"site": [*sizes]})
        result = accounts.outreach.find_people(domain="site", per_company=most)
    assert by_account(result, len(sizes)) == one_by_one(world, "domain", [*sizes], most, None)
    assert result.requests <= 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "domain="),
        ({"domain": "sit"}, "'site'"),
        (
            {"domain": "site", "company_domains": ["one.example"]},
            "Remove company_domains from the filters",
        ),
        *(
            ({name: value}, f"^{name}: takes the name of a column, not ")
            for name in ("domain", "company_id", "company_profnet_url", "company_name")
            for value in (["site", "web"], {"site": 1}, {"site"})
        ),
        ({"domain": "site", "account_columns": [["a"]]}, "account_columns: takes the name of a"),
        ({"domain": "site", "per_company": 0}, "per_company=0"),
        ({"domain": "site", "per_company": True}, "whole number"),
        ({"domain": "site", "split_by": "person_seniorities"}, "needs values to split by"),
        (
            {"domain": "site", "split_by": "person_name", "filters": {"person_name": "A"}},
            "list of values",
        ),
        ({"domain": "site", "person_title": ["CEO"]}, "person_titles"),
        ({"domain": "site", "headcount": "some"}, "headcount"),
    ],
)
def test_invalid_arguments_are_an_error_before_any_request(options: Any, words: str) -> None:
    """An invalid column, filter or number is an error with advice, and nothing is sent."""
    with scripted([]) as service, connected(service):
        with pytest.raises(InvalidInputError, match=words):
            pd.DataFrame({"site": ["one.example"]}).outreach.find_people(**options)
        assert service.requests == []


def test_a_result_is_written_to_files(tmp_path: Path) -> None:
    """People and accounts are written as two CSV files, or as sheets of one workbook."""
    with scripted(world_of({"one.example": 2}).reply) as service, connected(service):
        accounts = pd.DataFrame(
            {"site": ["one.example", "=1+1"], "account_total": ["big", "small"]}
        )
        result = accounts.outreach.find_people(domain="site", headcount="none")
    folder = result.to_csv(tmp_path / "found")
    pd.testing.assert_frame_equal(of.read_prospects(folder / "accounts.csv"), result.accounts)
    assert "outreach_account_total" in result.accounts.columns
    assert of.read_prospects(folder / "people.csv")["id"].tolist() == result.people["id"].tolist()
    sheets = pd.read_excel(
        result.to_excel(tmp_path / "found.xlsx"), sheet_name=None, engine="openpyxl"
    )
    assert list(sheets) == ["people", "accounts", "summary"]
    assert list(sheets["people"].columns[:3]) == [
        *["account_row", "account_rank", "matched_seniority"]
    ]
    assert set(sheets["people"].columns) == set(result.people.columns)
    assert sheets["accounts"]["site"].tolist() == ["one.example", "=1+1"]


def test_one_company_reads_no_more_than_it_needs() -> None:
    """One company is searched in pages of the needed size, several companies in full pages."""
    world = world_of({f"firm{number}.example": 130 for number in range(1, 4)})
    for companies, most, expected in ((1, 3, 3), (1, 150, 100), (1, None, 100), (3, 3, 100)):
        accounts = pd.DataFrame({"domain": [firm.domain for firm in world.firms[:companies]]})
        with scripted(world.reply) as service, connected(service):
            accounts.outreach.find_people(domain="domain", per_company=most)
            assert service.requests[0].json["page_size"] == expected, (companies, most)
