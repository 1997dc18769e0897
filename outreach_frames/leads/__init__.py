"""A frame's way into a sequence: check, plan, send, and report the outcome of every row."""
