"""The curve panels, and the views that they start with."""
