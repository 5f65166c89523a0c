"""Records a run of TRL: `trainer.add_callback(RlplayCallback())`, or `callbacks=[RlplayCallback()]` of the trainer.

`callback.py` follows the training, `online.py` knows the trainers that sample, `settings.py` translates their options.
"""

from rlplay.record.trl.callback import RlplayCallback

__all__ = ["RlplayCallback"]
