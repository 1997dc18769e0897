"""To be written."""

from outreach_frames.widgets.base import Panel


class PeopleSearch(Panel):
    """To be written."""
