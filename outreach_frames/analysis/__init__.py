"""Functions from frames to frames: companies, headcounts, lists, segments, tenure, capacity."""
