"""The screen as cells, and the files drawn from them."""
