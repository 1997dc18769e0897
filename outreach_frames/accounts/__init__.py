"""Find people at the companies of a table, and match the rows of two tables."""
