"""During and after: requests, journal, and the outcome of every row."""
