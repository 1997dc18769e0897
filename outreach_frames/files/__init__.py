"""Write frames to files and read them back; nothing here sends a request."""
