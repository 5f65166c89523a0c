"""Records a run of TRL: `trainer.add_callback(RlplayCallback())`, or `callbacks=[RlplayCallback()]` of the trainer.

`callback.py` follows the training, and `guard.py` runs all that it does. `observer.py` watches any trainer, `online.py`
those of TRL that sample and `offline.py` those that learn from given answers; `known.py` says which one a trainer is,
`settings.py` translates its options, and `compat.py` has the undocumented names that are used.
"""

from rlplay.record.trl.callback import RlplayCallback

__all__ = ["RlplayCallback"]
