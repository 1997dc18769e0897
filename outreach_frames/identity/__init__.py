"""Normalise keys of people and companies, link a person's rows, and match two tables."""
