"""Texts about a run in plain words, each sentence with its recorded numbers."""
