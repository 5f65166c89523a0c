"""`rlplay doctor --gpu`: tries on a GPU what no test can without one, and prints a report to paste into an issue.

Start with `report.py`. It runs the checks of `checks.py` in processes of their own, because a GPU that has failed once
may fail at everything that follows in its process.
"""
