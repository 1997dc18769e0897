"""Write frames to files and read them back; no function sends a request."""
