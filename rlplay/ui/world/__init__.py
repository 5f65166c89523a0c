"""A world as a map."""
