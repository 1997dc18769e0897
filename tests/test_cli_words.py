"""Messages in a shell speak of options."""

from __future__ import annotations

import pytest

from outreach_frames.commands.terminal import in_shell_terms

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Pass limit=None to read all.", "Pass --all to read all."),
        ("resume=False starts anew", "--no-resume starts anew"),
        ("Pass refresh=True to read it again.", "Pass --refresh to read it again."),
        ("of.sequences() lists them.", "outreach-frames sequences lists them."),
        ("Take two with snapshot_people()", "Take two with outreach-frames snapshot"),
        ("status='activ' is unknown", "--status 'activ' is unknown"),
        ("page_size=500 is out of range", "--page-size 500 is out of range"),
        ("company_ids takes ids (UUIDs)", "--company-ids takes ids (UUIDs)"),
        ("overrides={'ignore_x': True} skips", "--overrides ignore_x skips"),
        ("https://x.example/a?limit=1&status='b'", "https://x.example/a?limit=1&status='b'"),
        ("the field 'person_name' is long", "the field 'person_name' is long"),
        ("my_limit=5", "my_limit=5"),
    ],
)  # fmt: skip
def test_python_becomes_options(message: str, shown: str) -> None:
    """Arguments and calls become what one types; data that look alike stay."""
    assert in_shell_terms(message) == shown
