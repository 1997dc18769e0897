"""Write pages straight into a file, resumably; frames in memory belong to `files`."""
