"""Every name of verl that is not documented and that the recorder uses: verl 0.9.1.

If a release drops one, training goes on and one line says so. `tests/record/test_verl.py` looks for each where verl is
installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

TRAINERS = {
    "verl.trainer.ppo.v1.trainer_base": ("PPOTrainer", "_compute_metrics"),
    "verl.trainer.ppo.ray_trainer": ("RayPPOTrainer", "_update_actor"),
}
"""The modules with trainers, their classes, and the method that is called once in each step, with the step's batch.

That of the newer trainer is called after the update, with a reference to what the transfer queue still holds; that of
the older one before the update, with the tensors themselves."""
TRACKING = ("verl.utils.tracking", "Tracking", "log")
"""Where the numbers of each step go, by `log(data, step)`."""
FIELDS = (
    "prompts", "responses", "response_mask", "rm_scores", "old_log_probs", "rollout_log_probs", "ref_log_prob",
    "entropy", "values", "advantages", "rollout_is_weights", "reward_model",
)  # fmt: skip
"""What the transfer queue may hold of an answer."""


def is_older(trainer: Any) -> bool:
    """Whether a trainer is a `RayPPOTrainer`."""
    return any(each.__name__ == TRAINERS["verl.trainer.ppo.ray_trainer"][0] for each in type(trainer).__mro__)


def wrapped(trainer: type, method: str) -> Any:
    """A trainer's method; raises AttributeError if this release has none."""
    return getattr(trainer, method)


def queued(module: Any, batch: Any, keys: Sequence[str]) -> Mapping[str, Any]:
    """The fields of these answers that the transfer queue holds, each with a row per answer."""
    found: Mapping[str, Any] = module.tq.kv_batch_get(
        keys=list(keys), partition_id=batch.partition_id, select_fields=list(FIELDS)
    )
    return found
