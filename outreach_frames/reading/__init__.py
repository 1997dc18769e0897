"""Bytes of responses to Arrow tables and frames; pure: no request, no file."""
