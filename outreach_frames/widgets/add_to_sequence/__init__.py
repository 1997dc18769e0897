"""The widget that adds a frame's rows to a sequence."""
