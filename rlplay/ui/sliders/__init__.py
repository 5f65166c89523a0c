"""One number as a slider, and what it changes."""
