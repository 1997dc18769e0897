"""Random histories of submissions that share one journal, checked by an oracle."""
