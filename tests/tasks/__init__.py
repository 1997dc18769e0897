"""An analyst's tasks, each done in a few lines."""
