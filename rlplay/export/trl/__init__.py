"""A recorded run as a Python script that trains with TRL under the run's settings.

`limits.py` says what TRL cannot do at all; `policy.py` and `answers.py` spell the settings as fields of TRL's configs,
and what has no counterpart there as comments; `stages.py` finds the stages in a run, `section.py` writes one, and
`page.py` puts the script together. Nothing here imports TRL or torch: the script does. The mapping is the one that
`tests/parity` verifies.
"""
