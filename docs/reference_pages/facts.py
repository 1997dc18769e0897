"""Pages about filters, columns, statuses and errors, from `spec` and the tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import outreach_frames as of
from docs.reference_pages.docstrings import ERRORS, body, first_sentence
from docs.reference_pages.rst import code, codes, directive, heading, prose, table
from docs.reference_pages.tasks import TASKS
from outreach_frames import errors, spec
from outreach_frames.accounts.result import MEANINGS as ACCOUNT_MEANINGS
from outreach_frames.accounts.result import NAMED_MEANINGS
from outreach_frames.analysis.interface_columns import TABLES
from outreach_frames.leads.cards import MEANINGS
from outreach_frames.leads.sending.outcome import NEXT_STEP_BY_CODE, NextStep
from outreach_frames.leads.statuses import STATUSES, kind_of

_PEOPLE: Final = "people"
_DEEPER: Final = "\N{EN DASH}\N{NO-BREAK SPACE}"
# Longer lists of values get a list below the table.
_FEW: Final = 14

_TYPED: Final = re.compile(r"\w+=\{[^}]*\}|\w+\.\w+\(\)")

# The sources of tables that are not named like a function.
_SOURCES: Final = {
    "job_function_headcount": "Returned by :py:obj:`df.outreach.headcount` with "
    '``level="job_function"``.',
    "report_rows": "``.rows`` of a :py:obj:`SubmissionReport`; ``.frame`` has them after the "
    "input's columns.",
    "report_activity": "``.recent_activity()`` of a :py:obj:`SubmissionReport`.",
    "report_summary": "``.summary()`` of a :py:obj:`SubmissionReport`.",
    "account_people": "Columns after those of people, in ``.people`` of :py:obj:`AccountPeople`.",
    "accounts": "Columns after your own, in ``.accounts`` of :py:obj:`AccountPeople`.",
    "accounts_summary": "``.summary()`` of :py:obj:`AccountPeople`.",
    "changed": "``.changed`` of a :py:obj:`PeopleComparison`.",
    "employer_changes": "``.employer_changes`` of a :py:obj:`PeopleComparison`.",
    "headcount_change": "``.headcount`` of a :py:obj:`PeopleComparison`.",
    "comparison_summary": "``.summary()`` of a :py:obj:`PeopleComparison`.",
    "segments": "Returned by :py:obj:`df.outreach.segments`, after the columns of ``by``.",
    "set_daily_email_limit": "Returned by :py:obj:`of.set_daily_email_limit` with several ids.",
}

_PROBLEMS: Final = {
    "missing_identifier": (
        "The row has neither an email address nor a profile URL.",
        "Add one, or drop the row.",
    ),
    "placeholder": (
        "An identifier or mailbox is a placeholder, such as n/a, unknown or nan; it is treated as "
        "missing.",
        "Nothing if the row has another identifier; otherwise add one.",
    ),
    "shared_email": (
        "Rows with different profile URLs have this address; only the first of them is sent.",
        "Nothing if they are one person; otherwise correct or empty the address of the others.",
    ),
    "not_a_profile": (
        "The URL beside an email address is not that of a person; the row is sent by email alone.",
        "Nothing, or correct the URL.",
    ),
    "template_text": (
        "A data field holds an unfilled template, such as {{first_name}} or [first name]; it is "
        "sent as it is.",
        "Fill in the value, or pass the field in ``require=`` to exclude such rows.",
    ),
    "placeholder_text": (
        "A data field holds a placeholder, such as n/a, tbd or xxx; it is sent as it is. (An error "
        "of a spreadsheet, such as #N/A, and a text such as NaN are missing cells.)",
        "Correct or empty the cell, or pass the field in ``require=`` to exclude such rows.",
    ),
    "field_missing_everywhere": (
        "No row to send has a value in this data field; the problem is that of the first row.",
        "Check the column, or drop the field from ``data=``.",
    ),
    "opted_out": (
        "A column such as Email Opt Out or Unsubscribed is true; the row is sent.",
        "Leave the rows out with the filter that the plan shows.",
    ),
    "missing_required_field": (
        "A data field passed in ``require=`` is missing, or holds a template or placeholder.",
        "Fill it in, or drop the row.",
    ),
    "invalid_email": ("The text is not an email address.", "Correct it."),
    "invalid_profnet_url": ("The text is not the address of a profile.", "Correct it."),
    "not_a_plain_value": (
        "The cell holds a list, bytes or an object, which have no single form as text.",
        "Convert it to text, for example with ``df.outreach.unlist()``.",
    ),
    "data_value_too_long": (
        f"The text has more than {spec.MAX_DATA_VALUE_LENGTH:,} characters.",
        "Shorten it.",
    ),
    "invalid_mailbox": (
        "The text is not an email address.",
        "Write the address of the mailbox, or the address or full name of its user.",
    ),
    "unknown_mailbox": (
        "The account has no mailbox and no user with this address or name.",
        "List them with ``of.mailboxes(refresh=True)``; correct the cell or leave it empty.",
    ),
    "mailbox_unusable": (
        "The mailbox is not active, or its user has no active mailbox.",
        "Reconnect the mailbox, or write the address of another one.",
    ),
    "ambiguous_mailbox": (
        "Several users have this address or name.",
        "Write the address of a mailbox.",
    ),
}

_LIMIT_OUTCOMES: Final = {
    "changed": ("The service reports the new limit.", ""),
    "differs": ("The service accepted the change and reports another limit.", "Read the detail."),
    "failed": ("The service refused the change; the limit did not change.", "Read the detail."),
    "unknown": (
        "No response proves the outcome; the limit may have changed.",
        "Check the limit with ``of.mailboxes(refresh=True)``.",
    ),
    "not_sent": (
        "An earlier error would also have stopped this change.",
        "Correct that error, and change these limits again.",
    ),
}

# What to do about each error code of status 422, in the web app or in the frame.
_REMEDIES: Final = {
    "invalid_sequence_status": "Launch or resume the sequence in the web app.",
    "missing_ai_credits": "Have credits added for the sequence's users.",
    "missing_feature_copywriter": "Have the feature enabled for the sequence's users, or remove "
    "the stages that need it.",
    "missing_feature_dialer": "Have a dialer configured for the sequence's users, or remove the "
    "call stage.",
    "missing_profnet_account": "Have each of the sequence's users connect their account.",
    "missing_voice_clone": "Have the sequence's users record a voice clone, or remove the voice "
    "stage.",
    "missing_lead_field": "Send the field that the message names, with ``data=``.",
    "missing_sender_field": "Have the users fill in the field that the message names.",
    "mailbox_unusable": "Reconnect the mailbox, or pass other ``mailboxes=``; see "
    "``of.mailboxes()``.",
    "max_leads_threshold_reached": "Send fewer leads, or have the account's limit raised.",
    "other_validation_error": "Read the message, and send the rows again.",
}
_GOES_ON: Final = {
    NextStep.STOP: "stops; the remaining rows are ``not_sent``",
    NextStep.FIND_FIELD: "finds the rows that lack the field, and sends the others",
    NextStep.CONTINUE: "continues, unless three requests in a row failed",
}

_ADVICE: Final = {
    "OutreachError": "Catch this class to catch all errors below.",
    "ConfigurationError": "Call :py:obj:`of.login`, set ``OUTREACH_BASE_URL`` and "
    "``OUTREACH_API_KEY``, or pass both to :py:obj:`of.connect`.",
    "InvalidInputError": "Correct what the message names; it says what is possible.",
    "ServiceError": "Check ``.may_have_acted`` before you repeat the call.",
    "ConnectionFailedError": "Check the address, the network and the proxy; try again later.",
    "RequestTimeoutError": "Try again; pass a larger ``timeout=`` to :py:obj:`of.connect`.",
    "WaitTooLongError": "Wait for ``.retry_after`` seconds, or pass a larger ``max_wait=`` to "
    ":py:obj:`of.connect`.",
    "InvalidResponseError": "Check the service's address; if it is right, ask the service's "
    "support.",
    "UnsafeLinkError": "Check the address, scheme included; nothing was sent elsewhere.",
    "StatusError": "Read the message, which quotes the service.",
    "BadRequestError": "Correct what the message names.",
    "AuthenticationError": "Set another token, or call :py:obj:`of.login`.",
    "NotFoundError": "Check the id or address.",
    "ValidationFailedError": "See ``.validation_errors``, and the codes below.",
    "RateLimitedError": "Wait for ``.retry_after`` seconds; fewer ``workers=`` may help.",
    "ServerError": "Try again later; reads were retried already.",
}


def faults() -> str:
    """Return the faults that a sandbox can simulate."""
    says = table(
        ("kind", "what it does"),
        [(code(name), prose(what)) for name, what in of.sandbox.FAULT_KINDS.items()],
        widths=(30, 70),
    )
    intro = "What each kind of fault does, as a dict.\n\n"
    name = "of.sandbox.FAULT_KINDS"
    return heading(name, 1) + directive("py:data", name, intro + says)


def filters_page() -> str:
    """Return the page about all search filters."""
    text = heading("Filters", label="filters")
    text += (
        f"The {len(spec.FILTERS)} filters of :py:obj:`of.search_people` and of all other "
        "functions that search people. A person must match every filter, and any one of a "
        "filter's values. In a shell, ``person_titles`` is ``--person-titles``. "
        ":py:obj:`of.filters` is this table as a frame.\n\n"
        "The values are the sandbox's, and suggestions elsewhere: the interface document does not "
        "list the values of a service, which may call them otherwise.\n\n"
    )
    for group in spec.FILTER_GROUPS:
        text += heading(group.capitalize(), 1)
        rows = [_filter_row(one) for one in spec.FILTERS if one.group == group]
        text += table(
            ("filter", "type", "values of the sandbox", "excludes"), rows, widths=(36, 13, 29, 22)
        )
    text += heading("Job functions", 1, label="job-functions")
    text += "The sandbox's values of ``person_job_functions``, by department.\n\n"
    return text + table(
        ("department", "job functions"),
        [(code(name), codes(values)) for name, values in spec.JOB_FUNCTIONS.items()],
        widths=(28, 72),
    )


def _filter_row(one: spec.Filter) -> tuple[str, ...]:
    known = one.suggestions
    values = codes(known) if len(known) <= _FEW else f"{len(known)}: see :ref:`job-functions`"
    kind = {"array": "list of text", "string": "text", "boolean": "boolean"}[one.type]
    kind += f" ({one.format})" if one.format else ""
    return code(one.name), kind, values or prose(one.note), code(one.excludes)


def columns_page() -> str:
    """Return the page about the columns of all tables."""
    people = of.columns(_PEOPLE)
    text = heading("Columns", label="columns")
    text += (
        "Columns and dtypes come from the interface, not from the data: they are the same for no "
        "rows and for 100,000. :py:obj:`of.columns` returns each of these tables as a frame, such "
        'as ``of.columns("contacts")``. ``dtype_backend="pyarrow"`` returns Arrow dtypes '
        "instead.\n\n"
        "- An undocumented field is an extra column at the end.\n"
        "- A value of an undocumented type is kept as text in a column ``<name>_raw``.\n"
        "- Dates without a time are ``datetime64`` at midnight; times have a zone.\n\n"
    )
    text += heading("people", 1, label="columns-people")
    text += (
        f"The {len(people)} columns of :py:obj:`of.search_people`. "
        '``headcount="department"`` excludes the job functions, ``headcount="none"`` all '
        "headcounts.\n\n"
    )
    for group, rows in people.groupby("group", sort=False):
        text += heading(f"people: {group}", 2)
        text += table(("column", "dtype", "meaning"), _column_rows(rows), widths=(50, 20, 30))
    for name in TABLES:
        rows = of.columns(name)
        if name == _PEOPLE or rows.empty:
            continue
        text += heading(name, 1, label=f"columns-{name.replace('_', '-')}")
        text += f"{_source(name)}\n\n"
        text += table(("column", "dtype", "meaning"), _column_rows(rows), widths=(38, 22, 40))
    return text


def _source(name: str) -> str:
    """Return the text that names the source of a table."""
    documented = {one for task in TASKS for one in task.names}
    functions = [one for one in (f"df.outreach.{name}", f"of.{name}") if one in documented]
    if name in _SOURCES:
        return _SOURCES[name]
    if not functions:
        raise ValueError(f"No page documents a function named {name}: say in _SOURCES what has it.")
    return f"Returned by :py:obj:`{functions[0]}`."


def _column_rows(rows: object) -> list[tuple[str, ...]]:
    return [
        (code(row.name), code(row.dtype), prose(row.meaning))
        for row in rows.itertuples(index=False)  # type: ignore[attr-defined]
    ]


def statuses_page() -> str:
    """Return the page about all statuses and what to do about them."""
    text = heading("Statuses", label="statuses")
    text += heading("Rows of a submission", 1, label="row-statuses")
    text += (
        "The column ``status`` of a :py:obj:`SubmissionReport`. A row is ``added`` only if the "
        "service's own counts prove it. A row with a status of kind *failed* needs your "
        "attention. Rows are ``would_send`` only in a dry run. The status of leads in an "
        "undocumented list of skipped leads is the name of "
        "that list. :doc:`/how-to/sequence` explains why a row is unknown.\n\n"
    )
    rows = [
        (
            f"{code(name)}\n\n*{kind_of(name)}*",
            prose(MEANINGS[name].means),
            _with_code(MEANINGS[name].next),
        )
        for name in STATUSES
    ]
    text += table(("status, kind", "what it means", "what to do"), rows, widths=(31, 34, 35))
    text += heading("Why a row is invalid", 1, label="problem-codes")
    text += (
        "The column ``code`` of :py:obj:`df.outreach.validate` and of ``plan.problems``, and "
        "``error_code`` of rows that are ``invalid``.\n\n"
    )
    text += _advice_table("code", _PROBLEMS)
    text += heading("Sequences", 1, label="sequence-statuses")
    text += "The column ``status`` of :py:obj:`of.sequences`.\n\n"
    text += table(
        ("status", "accepts leads"),
        [(code(name), "yes" if takes else "no") for name, takes in spec.SEQUENCE_STATUSES.items()],
    )
    text += heading("Accounts", 1, label="account-statuses")
    text += (
        "The column ``account_status`` of ``.accounts`` from :py:obj:`df.outreach.find_people`. "
        "It is missing for companies that a failed search did not finish.\n\n"
    )
    text += table(
        ("status", "what it means", "with person_name"),
        [
            (code(name), prose(ACCOUNT_MEANINGS.get(name, "")), prose(named))
            for name, named in NAMED_MEANINGS.items()
        ],
    )
    text += heading("Changed limits", 1, label="limit-outcomes")
    text += "The column ``outcome`` of :py:obj:`of.set_daily_email_limit` with several ids.\n\n"
    text += _advice_table("outcome", _LIMIT_OUTCOMES)
    text += heading("Mailboxes and lead lists", 1)
    text += (
        f"A mailbox is {codes(spec.MAILBOX_STATUSES)}; a lead list is "
        f"{codes(spec.LEAD_LIST_STATUSES)}. The interface document does not explain these values.\n"
    )
    return text


def _with_code(advice: str) -> str:
    """Format the parts that users type as code; a notebook's card shows them as plain text."""
    return prose(_TYPED.sub(r"`\g<0>`", advice))


def _advice_table(name: str, advice: dict[str, tuple[str, str]]) -> str:
    rows = [(code(one), means, action) for one, (means, action) in advice.items()]
    return table((name, "what it means", "what to do"), rows, widths=(25, 40, 35))


def errors_page() -> str:
    """Return the page about the exceptions and the service's error codes."""
    text = heading("Errors", label="errors")
    text += (
        "Every foreseeable error is an ``of.OutreachError``; the classes below it are in "
        "``outreach_frames.errors``. The message says what happened, to what, and what to do "
        "next. Only a missing optional extra may raise a ``ModuleNotFoundError``, which names "
        "what to install.\n\n"
    )
    described = (errors.OutreachError, errors.ServiceError, errors.ValidationFailedError)
    for error in (*(error for _, error in _tree(errors.OutreachError)), errors.OutreachWarning):
        if error not in described:  # as a link target; its row describes it
            name = ERRORS[error.__name__]
            text += directive("py:exception", name, options=("no-typesetting",))
    rows = [
        (
            f"{_DEEPER * depth}{code(error.__name__)}",
            prose(first_sentence(error)),
            _ADVICE[error.__name__],
        )
        for depth, error in _tree(errors.OutreachError)
    ]
    text += table(("error", "when", "what to do"), rows, widths=(38, 31, 31))
    for error in described:
        text += directive("py:exception", ERRORS[error.__name__], body(error))
    text += (
        "``of.OutreachWarning`` is the category of warnings about what a frame does not show: more "
        "people than ``limit``, errors that the service reported, and data that shifted while it "
        'was read. To silence warnings, call ``warnings.simplefilter("ignore", '
        'of.OutreachWarning)``, or use ``with warnings.catch_warnings(action="ignore", '
        "category=of.OutreachWarning):`` for some lines. To stop at the first warning, pass "
        '``"error"`` in place of ``"ignore"``.\n\n'
    )
    text += heading("Error codes of the service", 1, label="error-codes")
    text += (
        "Why the service refuses well-formed leads (status 422). A response may have several "
        "codes. They are in ``error_code`` of the rows, and in ``.validation_errors`` of a "
        "``ValidationFailedError``. The list is not exhaustive: with any other code, the rows are "
        f"``rejected``, and the run {_GOES_ON[NextStep.CONTINUE]}.\n\n"
    )
    return text + table(
        ("code", "cause", "what to do", "the run"),
        [
            (code(name), prose(cause), _REMEDIES[name], _GOES_ON[NEXT_STEP_BY_CODE[name]])
            for name, cause in spec.ADD_LEADS_ERRORS.items()
        ],
        widths=(31, 27, 25, 17),
    )


def _tree(root: type[Exception], depth: int = 0) -> Iterator[tuple[int, type[Exception]]]:
    yield depth, root
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _tree(child, depth + 1)
