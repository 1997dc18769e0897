"""Columns and their types, and conversion of values to text and to frames; pure."""
