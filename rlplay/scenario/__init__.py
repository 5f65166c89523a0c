"""What to play: scenario files, their stages and scripts, what they expect, and how to play a run again.

May import `rlplay.algorithms`, `rlplay.tasks` and `rlplay.trace`; never torch or Textual. Start with `schema.py` (a
scenario file), then `script.py` (its steps).
"""
