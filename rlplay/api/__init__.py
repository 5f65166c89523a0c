"""rlplay in Python: recorded runs as arrays, and training step by step in a notebook. See docs/python.md.

`recorded.py` loads no torch; `live.py` runs the engine in this process. Nothing else of rlplay imports this.
"""
