"""Read bytes of responses into Arrow tables and frames; no I/O."""
