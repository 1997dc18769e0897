"""From the first request on: requests, journal, and the outcome of every row."""
