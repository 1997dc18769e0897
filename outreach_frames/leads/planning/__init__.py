"""Before the first request: which rows can be sent, and exactly what; nothing here sends."""
