"""The lines at the top, the banner of a failed engine, and the keys at the bottom."""
