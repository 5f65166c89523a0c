"""What to play: scenario files, their scripts and the claims in them, and share codes.

May import `rlplay.trace`, `rlplay.algorithms` and `rlplay.tasks`; never torch or Textual. Start with `schema.py` (a
scenario file), then `loader.py` (which reads and checks it), `script.py` and `claim.py` (the grammar of scripts)
and `player.py` (what each step means).
"""
