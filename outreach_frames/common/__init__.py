"""What any room may use; it knows nothing of HTTP, of tables or of leads."""
