"""Runs of other trainers, read as rlplay's own: what they recorded becomes records in a local run file.

Start with `source.py`, what every reader offers, and `copy.py`, which keeps the run file up to date. `recording.py`
reads the folders that `rlplay.record` writes; the other readers know files that trainers write by themselves.
"""
