"""Tasks of an analyst's day, each with its code and a condition that holds afterwards.

`client`, `accounts`, `crm` and `leads` are given; `sequence_id` accepts leads with an email.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Task(NamedTuple):
    """A task's code, and an expression that is true after it."""

    code: str
    is_done: str


DAY: Final = {
    "companies to the best three people": Task(
        """
best = ["c_suite", "vp", "director", "manager"]
people = accounts.outreach.find_people(per_company=3, person_seniorities=best).people
""",
        "people['account_rank'].max() == 3 and people['matched_seniority'].notna().all()",
    ),
    "CRM and journal excluded": Task(
        """
leads.outreach.add_to_sequence(sequence_id, journal="known.journal")
new = leads.outreach.without(crm, "known.journal")
""",
        "len(new) < len(leads) and not set(new['email'].dropna()) & set(crm['email'])",
    ),
    "a market by seniority and size": Task(
        """
market = of.count_people(by=["person_seniorities", "company_sizes"], wide=True)
""",
        "market.shape == (10, 8) and market.to_numpy().sum() > 0",
    ),
    "the share of engineers": Task(
        """
people = of.search_people(limit=None)
axes = of.plots.companies(people, department="engineering_technical", share=True, top=20)
""",
        "len(axes.patches) > 5",
    ),
    "job changers written to": Task(
        """
of.snapshot_people("jobs", date=client.sandbox.today)
of.snapshot_people("jobs", date=client.sandbox.advance(days=90))
report = of.compare_people("jobs").employer_changes.outreach.add_to_sequence(any_id)
""",
        "(report.rows['status'] == 'added').any()",
    ),
    "tenure": Task(
        """
people = of.search_people(limit=None)
years = people.outreach.tenure(client.sandbox.today)["years"].median()
""",
        "years > 0",
    ),
    "20,000 people to Parquet and DuckDB": Task(
        """
of.export_people("people.parquet", limit=20_000)
top = duckdb.sql("select company_name, count(*) n from 'people.parquet' group by 1").df()
""",
        "top['n'].sum() == 200",
    ),
    "a shared search": Task(
        """
of.save_filters("vps.json", person_seniorities=["vp"])
people = of.search_people("vps.json", limit=None)
""",
        "set(people.attrs['filters']) == {'person_seniorities'}",
    ),
    "arms": Task(
        """
shares = {"A": 45, "B": 45, "holdout": 10}
first = leads.outreach.assign_arms(shares, by="person", seed=7)
second = leads.outreach.assign_arms(shares, by="person", seed=8, previous=first)
""",
        "first['arm'].equals(second['arm'])",
    ),
    "uplift": Task(
        """
leads = leads.outreach.assign_arms({"A": 50, "B": 50}, by="person", seed=7).dropna(subset="arm")
report = leads[leads["arm"] == "A"].outreach.add_to_sequence(sequence_id)
client.sandbox.advance(days=20)
replies = report.activity_counts()
bought = [len(leads[leads["arm"] == "A"]) // 2, len(leads[leads["arm"] == "B"]) // 3]
low, high = confint_proportions_2indep(
    bought[0], sum(leads["arm"] == "A"), bought[1], sum(leads["arm"] == "B")
)
""",
        "low < high and len(replies) == len(report.rows)",
    ),
    "how long a campaign takes": Task(
        """
plan = of.sending_capacity(mailboxes=12, leads=5000, daily_email_limit=40)
last_day = plan.attrs["last_day"]
""",
        "plan['leads_finished'].max() == 5000 and str(last_day) == str(plan['date'].max())[:10]",
    ),
    "owners' mailboxes": Task(
        """
accounts["Owner"] = of.mailboxes(status="active")["email"].iloc[0]
people = accounts.outreach.find_people(account_columns=["Owner"], per_company=1).people
report = people.outreach.add_to_sequence(any_id, mailbox="Owner")
""",
        "(report.rows['status'] == 'added').any()",
    ),
    "a corrected file": Task(
        """
odd = leads.tail(20).assign(email="Rui <" + leads["email"] + ">")
report = odd.outreach.add_to_sequence(sequence_id, clean=True)
report.to_csv("results")
""",
        "report.frame['email'].tolist() == leads['email'].tail(20).tolist()",
    ),
    "a report a month later": Task(
        """
leads.outreach.add_to_sequence(sequence_id, journal="last_month.journal")
totals = of.read_journal("last_month.journal")["status"].value_counts()
""",
        "totals['added'] > 0",
    ),
    "limits of mailboxes": Task(
        """
mailboxes = of.mailboxes(status="active")
mailboxes["daily_email_limit"] = 40
changed = of.set_daily_email_limit(mailboxes)
""",
        "set(of.mailboxes(status='active', refresh=True)['daily_email_limit']) == {40}",
    ),
    "contacts": Task(
        """
contacts = of.contacts(emails=leads["email"].dropna())
events = contacts.outreach.recent_activity()
""",
        "contacts['found'].any() and len(events) > 0",
    ),
    "a lead list": Task(
        """
leads = of.lead_list(client.sandbox.lead_list_ids[0])
""",
        "len(leads) > 0",
    ),
    "zero results": Task(
        """
causes = of.explain_search(person_seniorities=["vp"], company_names=["Nobody & Sons"])
""",
        "causes.loc[causes['filter'] == 'company_names', 'people_alone'].eq(0).all()",
    ),
    "a sheet per status": Task(
        """
report = leads.outreach.add_to_sequence(sequence_id)
report.to_excel("report.xlsx", by="status")
""",
        "of.read_prospects('report.xlsx', sheet_name='added')['email'].notna().all()",
    ),
    "forget": Task(
        """
people = of.search_people(limit=None)
people.outreach.to_csv("people.csv")
removed = of.forget(profnet_url=people["profnet_url"].iloc[0], folder=".", files=True)
""",
        "len(of.read_prospects('people.csv')) == len(people) - 1",
    ),
    "the widget's code": Task(
        """
widget = of.widgets.PeopleSearch({"person_seniorities": ["vp"]})
code = widget.code
""",
        "'person_seniorities' in code and code.count('search_people') == 1",
    ),
    "a scheduled script": Task(
        """
people = of.search_people(person_seniorities=["vp"], limit=None)
new = people.outreach.without("crm.csv", profnet_url=("profnet_url", "Profile"))
report = new.outreach.add_to_sequence(any_id, journal="every_week.journal")
report.to_csv("results")
report.raise_for_error()
""",
        "Path('results/added.csv').exists()",
    ),
    "a wrong token": Task(
        """
of.connect(client.base_url, "wrong", cache=None)
error = error_of(of.sequences)
""",
        "'token' in error and 'wrong' not in error.replace('is wrong', '')",
    ),
    "a dead service": Task(
        """
of.connect("http://127.0.0.1:9", "token", cache=None, max_wait=1)
error = error_of(of.sequences)
""",
        "error.startswith('Nothing answers at http://127.0.0.1:9')",
    ),
    "typos": Task(
        """
errors = [error_of(lambda: of.search_people(title=["CTO"]))]
errors += [error_of(lambda: of.connect("sandbx", "token"))]
errors += [error_of(lambda: leads.outreach.add_to_sequence(sequence_id, data=["titel"]))]
""",
        "all(word in error for word, error in zip(['person_titles', 'sandbox', 'title'], errors))",
    ),
}
LONGER: Final = {"uplift", "a scheduled script"}
