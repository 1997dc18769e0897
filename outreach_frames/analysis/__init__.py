"""Compute frames from frames: companies, headcounts, lists, segments, tenure and capacity."""
