"""Formats of numbers, texts, keys and scales, and the word for what a policy samples. No widgets."""
