"""Store snapshots of a search, and compare two tables of people."""
