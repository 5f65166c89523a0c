"""A run of rlplay that goes on where a trainer of TRL was, from its recording and a checkpoint.

Start reading in `rebuild.py`. What can be had without torch is in `rlplay/foreign/from_checkpoint/`.
"""
