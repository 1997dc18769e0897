"""What changed over time: snapshots of a search, and comparison of two tables of people."""
