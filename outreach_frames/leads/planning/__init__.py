"""Before the first request: check rows and build leads; nothing here sends."""
