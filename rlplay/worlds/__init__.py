"""Tiny worlds: grids, mazes, corridors and bandits, small enough to compute what is optimal.

A world is data that a scenario draws in YAML (`world.py`). `task.py` makes a task of it: squares are tokens that the
environment writes, moves are tokens that the policy samples, so the engine trains on a world as it trains on text.
`planning.py` computes optimal values by dynamic programming. `walking.py` and `painting.py` are a person's walk and
paint, by the same rules. Nothing here imports torch or the screen.
"""
