"""What of a run of TRL can be had again from its recording and a checkpoint, before anything is loaded or run.

`plan.py` puts it together and is where to start reading; `rlplay/engine/from_checkpoint/` makes a run of it.
"""
