"""Add a frame's rows to a sequence: check, plan, send, and report every row's outcome."""
