"""From a list of companies to people, and from two tables to the rows that are in both."""
