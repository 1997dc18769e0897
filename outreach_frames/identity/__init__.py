"""Who is who: keys of people and companies, persons in a table, and matching of two tables."""
