"""Algorithms as combinations of settings. May import `rlplay.trace`; never torch or Textual."""
