"""What `rlplay teachers` asks and prints: `asked.py` the options, `ask.py` the engine, `object.py` and `report.py` what
is printed for programs and for people."""
