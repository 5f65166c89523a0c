"""Colours that carry meaning, the themes they come from, and the screen without colour."""
