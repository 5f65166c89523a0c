"""The screen as cells, and the files that are drawn of it."""
