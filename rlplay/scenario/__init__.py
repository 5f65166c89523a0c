"""What to play: the settings of a run, the algorithms as combinations of them, scenarios and their script verbs.

May import `rlplay.trace` and the names of the tasks; never torch or Textual. Start with `settings.py` (every knob),
then `presets.py` (algorithm names), `schema.py` (a scenario file) and `verbs.py` (everything a user or a script can
do).
"""
