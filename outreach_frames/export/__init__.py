"""Write people to a file page by page, and resume interrupted exports."""
