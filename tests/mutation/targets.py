"""What is mutated, and by which tests it is held."""

from __future__ import annotations

from typing import Final

SENDING: Final = ("tests/leads/sending/test_submit.py", "tests/leads/sending/test_journal.py")
FILES: Final = ("tests/files", "tests/export/test_people.py")

# Modules by the tests that are run on each of their mutants.
TARGETS: Final[dict[str, tuple[str, ...]]] = {
    "outreach_frames/leads/sending/outcome.py": ("tests/leads/sending/test_outcome.py", *SENDING),
    "outreach_frames/leads/sending/journal.py": (
        *SENDING,
        "tests/leads/sending/test_settling.py",
        "tests/test_personal_data.py",
    ),
    "outreach_frames/leads/sending/submit.py": (
        *SENDING,
        "tests/leads/sending/test_monitor.py",
        "tests/leads/sending/test_report_in_every_case.py",
        "tests/leads/sending/test_settling.py",
        "tests/leads/test_plan.py",
    ),
    "outreach_frames/identity/persons.py": ("tests/identity/test_persons.py",),
    "outreach_frames/identity/keys.py": (
        "tests/identity/test_keys.py",
        "tests/identity/test_persons.py",
    ),
    "outreach_frames/leads/planning/checks.py": ("tests/leads/planning",),
    "outreach_frames/reading/pages.py": (
        "tests/reading/test_flatten.py",
        "tests/reading/test_bounds.py",
    ),
    "outreach_frames/files/csv_file.py": FILES,
    "outreach_frames/files/csv_notes.py": FILES,
    "outreach_frames/files/formulas.py": FILES,
    "outreach_frames/files/csv_dtypes.py": FILES,
}
