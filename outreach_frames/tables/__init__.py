"""Response bytes to frames, and what is computed from frames alone; pure: no request, no file."""
