"""The weights: what an update moved in them, what each layer says of a token, and which tokens are near it.

Start with `weights_screen.py`; `model_grid.py` says how the answers of the engine become rows and cells.
"""
