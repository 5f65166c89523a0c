"""Who taught a token: which answers moved its probability, and where it would be without them.

Start with `teachers_screen.py`; `teacher_rows.py` says how shares become rows, `words.py` what is said of them.
"""
