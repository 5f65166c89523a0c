"""What the time of an update goes to: the names in `Finished.timings`, which add up to `Finished.seconds`.

Held-out prompts have a time of their own, `Evaluated.seconds`.
"""

from __future__ import annotations

EVALUATE, OTHER = "evaluate", "other"

PARTS = {
    "sample": "answers to the update's prompts",
    "score": "reward functions",
    "reference": "the answers under the reference",
    "teacher": "the answers under the teacher",
    "credit": "returns, baselines and advantages",
    "forward": "the answers under the policy",
    "backward": "the gradient of the loss",
    "search": "TRPO's search for a step",
    "step": "clipping and the optimizer",
    "look": "the answers under the new policy",
    EVALUATE: "answers to held-out prompts",
    "exchange": "the other processes, and waiting for them",
    "record": "the run file and the screen",
    "snapshot": "the state before the update, for undo",
    OTHER: "what no other line counts",
}
"""What each part is, in the order of an update."""
