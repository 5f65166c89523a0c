"""Why a run does not learn: checks over all of its updates, each with numbers, a cause, and what to change.

May import `rlplay.trace` and `rlplay.algorithms`; never torch or Textual, because `rlplay health`, the end of
`rlplay run` and the screen all say what is found here. Start with `examine.py`, the checks in order of gravity;
`digest.py` is what they see of an update, and `health_of_run.py` gathers that while a run grows.
"""
