"""Prospects, sequences and mailboxes of a sales-outreach service as pandas DataFrames."""
