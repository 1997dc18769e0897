"""Write pages straight to a file, with resume; `files` writes frames in memory."""
