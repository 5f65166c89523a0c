"""Colours with a meaning, the themes, and the screen without colour."""
