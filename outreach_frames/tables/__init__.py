"""Column types, and functions without I/O that convert values to text or to frames."""
