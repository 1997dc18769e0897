"""The widget that changes mailboxes' daily limits."""
