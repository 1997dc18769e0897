"""To be written."""

from outreach_frames.widgets.base import Panel


class MailboxLimits(Panel):
    """To be written."""
