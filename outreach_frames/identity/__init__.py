"""Normalise keys of people and companies, link rows into persons, and match two tables."""
