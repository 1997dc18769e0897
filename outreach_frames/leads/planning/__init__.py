"""Check rows and build leads before the first request; no module here sends any."""
