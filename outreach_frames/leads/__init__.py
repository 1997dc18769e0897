"""A frame's way into a sequence: check, plan, send, and say of every row what became of it."""
