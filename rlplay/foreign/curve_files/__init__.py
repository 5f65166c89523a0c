"""Curves that trainers log by themselves, read as runs without answers, or beside a recorded run.

Start with `formats.py`, the table of the files that are known, and `curve_run.py`, which makes records of their rows.
A reader knows one kind of file and gives `Row`s; `names.py` says what their metrics are called here. All of these
files are data: lengths are checked, nothing in them is run, and a file that still grows is read to its last whole row.
"""
