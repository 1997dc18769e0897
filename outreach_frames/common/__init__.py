"""General helpers for every room, independent of HTTP, tables and leads."""
