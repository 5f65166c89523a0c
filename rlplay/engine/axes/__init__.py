"""The axes an algorithm is a combination of; each file holds the choices of one, pure functions on tensors.

Shapes: N completions, L positions, `mask` bool [N, L] True on sampled tokens. To add a choice, write the function,
add its name to the type in `rlplay/algorithms/settings.py` and, if it has a name of its own, a row to `presets.py`.
"""
