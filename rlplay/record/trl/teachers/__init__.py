"""Answers who taught a token in the newest update of a trainer of TRL, while a screen asks."""
