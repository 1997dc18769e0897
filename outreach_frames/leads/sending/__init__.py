"""Send requests, keep the journal, and report each row's outcome."""
