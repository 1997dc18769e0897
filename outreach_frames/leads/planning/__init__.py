"""Check rows and build leads, before the first request."""
