"""Frames to files and back; nothing here asks the service."""
