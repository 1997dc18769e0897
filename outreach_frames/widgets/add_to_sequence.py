"""To be written."""

from outreach_frames.widgets.base import Panel


class AddToSequence(Panel):
    """To be written."""
