"""A recorded run as a Python script that trains with TRL under the run's settings.

`limits.py` lists what TRL cannot do. `policy_configs.py` and `answer_configs.py` write settings as fields of TRL's
configs, and as comments where TRL has no such field. `recorded_stages.py` finds the stages of a run, `section.py`
writes one, and `training_script.py` puts the script together. Nothing here imports TRL or torch; only the script does.
`tests/parity` verifies the mapping.
"""
