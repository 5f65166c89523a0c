"""The health of the run: its problems and every check."""
