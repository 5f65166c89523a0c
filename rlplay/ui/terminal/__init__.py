"""Output to the terminal: the last gate, which filters every text, and the driver for a browser."""
