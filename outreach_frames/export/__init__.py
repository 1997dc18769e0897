"""Pages straight into a file, resumable; files of frames that are in memory belong to `files`."""
