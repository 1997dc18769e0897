"""Column types, and conversion of values to text and to frames; no I/O."""
