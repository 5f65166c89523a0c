"""What to do about a folder whose files do not hold the answers of a run: each trainer can be told to keep them."""

from __future__ import annotations

from pathlib import Path

_HINTS = (
    (("iteration_*/train_logtree.json", "iteration_*/train.html"),
     "tinker-cookbook's reports, which do not say which reward belongs to which answer; rollout_json_export=True and "
     "token_db=TokenDbConfig() in its Config write what rlplay reads"),
    (("global_step_*/actor",),
     "verl's checkpoints and no answers; trainer.rollout_data_dir=FOLDER writes them"),
)  # fmt: skip
"""Files by which a folder is known, and what they hold."""


def lacking(folder: Path) -> str:
    """What the folder holds, and how it could hold a run that rlplay reads, for after "holds"."""
    for patterns, hint in _HINTS:
        if any(any(folder.glob(pattern)) for pattern in patterns):
            return hint
    return "no run that rlplay can read; docs/other-trainers.md lists what it can"
