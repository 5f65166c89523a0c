"""Records any trainer's run in a folder that rlplay reads while it grows; needs numpy and msgspec, never torch.

Start with `recorder.py`, which a training loop calls; `format.py` is the layout on disk, `trl` the callback for TRL's
trainers, and `verl` what verl imports. `rlplay.foreign` reads the folder.
"""

from rlplay.record.recorder import Recorder

__all__ = ["Recorder"]
