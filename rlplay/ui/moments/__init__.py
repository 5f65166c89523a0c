"""Before and after: one run at two of its updates."""
