"""How numbers, texts, settings and scales are written."""
