"""A frame's way into a sequence: check, plan, send, and report what became of every row."""
