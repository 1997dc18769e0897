"""What an analyst does in a day, as code."""
