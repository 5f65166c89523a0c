"""A world as a map, a walk of the user's own through it, and brushes to paint it.

Start with `world_map.py`: `reading.py` says what there is to show, `large_squares.py` and `small_squares.py` draw it.
`map_hands.py` is what keys and mouse do there. The rules, walks and paint themselves are in `rlplay/worlds`.
"""
