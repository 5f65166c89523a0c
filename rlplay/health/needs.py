"""What checks cannot do without, and how to record it."""

from __future__ import annotations

from rlplay.health.finding import Evidence, Need

_HOW = "RlplayCallback in TRL, rlplay.record in another loop"


def metric(*names: str, record: str = "") -> Need:
    """Any of these metrics, with at least one number."""
    there = " or ".join(names[:2])
    return Need(there, lambda run: any(run.known(name) for name in names), record or f"log {there}")


def any_of(*needs: Need) -> Need:
    """Any of several needs; the advice is the first one's."""
    return Need(needs[0].name, lambda run: any(need.there(run) for need in needs), needs[0].record)


ANSWERS = Need("answers", lambda run: not run.metrics_only, f"record the answers: {_HOW}")
PROMPTS = Need(
    "tokens of the prompts", lambda run: not run.metrics_only and run.now.prompts_known,
    f"record the prompts as the model reads them (prompt_ids, prompt_texts): {_HOW}",
)  # fmt: skip
ENDS = Need(
    "which answers were cut", lambda run: run.newest is not None and run.newest.ends_known,
    "log completions/clipped_ratio, or record `truncated` of each answer",
)  # fmt: skip


def _scored(run: Evidence) -> bool:
    return any(each.scored for each in run.digests)


REWARDS_OF_ANSWERS = Need("the reward of each answer", _scored, f"record the answers with their rewards: {_HOW}")
NEW_LOGPROBS = Need(
    "log-probabilities after the update",
    lambda run: any(each.shift is not None for each in run.digests),
    "record two optimizer steps on the same answers, or a pass after the step",
)
KL = metric("kl", record="log the KL to the reference as kl; TRL does where beta is above 0")
HELD_OUT = metric("eval_reward", record="evaluate on prompts that are kept out of training, and log eval_reward")
REFERENCE = Need(
    "the reference's log-probabilities", lambda run: any(each.reference is not None for each in run.digests),
    f"record ref_logprobs, or log kl: {_HOW}",
)  # fmt: skip
