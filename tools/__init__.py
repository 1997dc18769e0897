"""Tools that write files of the repository."""
