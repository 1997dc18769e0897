"""During and after: requests, journal, and what became of every row."""
