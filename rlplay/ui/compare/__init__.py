"""Runs side by side: curves, answers, distributions; and branches."""
