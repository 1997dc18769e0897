"""Pictures of every plot for visual review."""
