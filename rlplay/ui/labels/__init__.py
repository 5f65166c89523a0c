"""The dialogue that asks which of two answers is better."""
