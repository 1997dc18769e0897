"""Pictures of every plot, to be looked at."""
