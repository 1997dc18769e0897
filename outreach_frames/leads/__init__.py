"""Add a frame's rows to a sequence: check, plan, send, and report each row's outcome."""
