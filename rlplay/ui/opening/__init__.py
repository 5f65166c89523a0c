"""The first ten seconds: a recorded story while the engine loads, and three ways on. Start with `picture.py`.

`story.py` and `picture.py` need no Textual: the command line draws them before the screen is imported.
"""
