"""Random histories of submissions with one journal, and an oracle that knows the rules."""
