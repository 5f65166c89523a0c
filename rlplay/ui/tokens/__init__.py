"""The token map and the Token panel: where every token is, its colour, its numbers, and finding it."""
