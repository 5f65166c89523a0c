"""Formats of numbers, texts, settings and scales."""
