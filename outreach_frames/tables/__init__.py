"""What the columns are, and their values as text and as frames; pure."""
