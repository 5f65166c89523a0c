"""What happened: immutable records, what they mean, and the file that keeps them.

May import numpy, msgspec and sqlite3; never torch or Textual, so a run can be replayed anywhere.
Start with `records.py` (the engine's output), then `update.py` (one update assembled from its records), `lenses.py`
(every per-token statistic) and `metrics.py` (every per-update number). `runfile.py` stores records on disk, and
`run.py` is what the records of a run add up to: whatever follows a run, on the screen or without one, follows that.
"""
