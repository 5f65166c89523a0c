"""Writing exercises: an editor beside the answers, and what the engine says of the lines in it."""
