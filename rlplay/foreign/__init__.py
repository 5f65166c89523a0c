"""Runs of other trainers, read as rlplay's own: what they recorded becomes records in a local run file.

Start with `foreign_run.py`, what every reader offers, and `copy.py`, which keeps the run file up to date.
`recording.py` reads the folders that `rlplay.record` writes; the other readers know files that trainers write by
themselves, most of them by a row in `layouts.py`. `pickled.py` reads pickles as data, and calls nothing that they name.
"""
