"""The widget that builds search filters."""
