"""The way out to the terminal: the last gate that every text passes, and the browser in the terminal's place."""
