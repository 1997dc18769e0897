"""Frames to frames: companies, headcounts, child tables, segments, tenure, capacity; pure."""
