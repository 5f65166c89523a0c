"""What tinker-cookbook writes into its `log_path`, as the answers of an update.

Rollout summaries, `iteration_N/train_rollout_summaries.jsonl`, have a row per trajectory with `group_idx`,
`total_reward` and `steps`; a step of a `ProblemEnv` holds texts in its `trace` (rl/rollout_logging.py at 08ee6ea,
rl/problem_env.py at 0683034). The token database, which `token_db=TokenDbConfig()` asks for, has a row per turn in
`tokens/segments/*.parquet` (tokendb/schema.py at 35cba2f). It has no text for a single token, so the words of `ac_text`
stand for tokens.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlplay.foreign.answer_rows import Row, TextAnswer, text_of, worded
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.record.format import Rollouts

REWARD = "total_reward"
TEXTS = "let tinker-cookbook write them: token_db=TokenDbConfig() in its Config, or use an environment with a trace"


def summaries(update: int, found: Sequence[Row]) -> Rollouts:
    """Rows of rollout summaries. Raises ForeignRunError if they hold no texts."""
    if not all("policy_response" in (step.get("trace") or {}) for row in found for step in row["steps"]):
        raise ForeignRunError(f"the rollouts of iteration {found[0]['iteration']} hold rewards and no texts; {TEXTS}")
    return _rollouts(update, [_summary(row) for row in found], [row[REWARD] for row in found],
                     [row["steps"][-1].get("metrics") or {} for row in found])  # fmt: skip


def _summary(row: Row) -> TextAnswer:
    traces = [step["trace"] for step in row["steps"]]
    column = {} if "reward" not in traces[-1] else {"reference_answer": traces[-1]["reward"].get("reference_answer")}
    return TextAnswer(
        traces[0].get("prompt", {}).get("messages", ""),
        [(text_of(trace["policy_response"]["messages"]), True) for trace in traces],
        {name: value for name, value in column.items() if value is not None},
        row["steps"][-1].get("stop_reason") == "length",
        row["group_idx"],
    )


def segments(update: int, found: Sequence[Row]) -> Rollouts:
    """Rows of the token database, of one iteration. Raises ForeignRunError if they hold no texts."""
    if any(row["ac_text"] is None for row in found):
        where = f"the tokens of iteration {found[0]['iteration']}"
        raise ForeignRunError(f"{where} have no texts; TokenDbConfig(store_text=True) keeps them")
    attempt = max(row["run_attempt"] for row in found)  # a resumed run repeats iterations
    turns = {
        (row["group_idx"], row["traj_idx"], row["step_idx"]): row for row in found if row["run_attempt"] == attempt
    }
    trajectories: dict[tuple[int, int], list[Row]] = {}
    for (group, trajectory, _), row in sorted(turns.items(), key=lambda item: item[0]):
        trajectories.setdefault((group, trajectory), []).append(row)
    rows = list(trajectories.values())
    return _rollouts(update, [_episode(each) for each in rows], [each[-1][REWARD] for each in rows],
                     [dict(each[-1]["metrics"]) for each in rows])  # fmt: skip


def _episode(turns: Sequence[Row]) -> TextAnswer:
    said: list[tuple[str, bool]] = []
    for place, turn in enumerate(turns):
        said += [(turn["ob_text"] or "", False)] * (place > 0)
        said.append((turn["ac_text"], True))
    first, last = turns[0], turns[-1]
    column = dict(first["attrs"]) | ({"row": first["env_row_id"]} if first["env_row_id"] is not None else {})
    return TextAnswer(first["ob_text"] or "", said, column, last["stop_reason"] == "length", first["group_idx"])


def _rollouts(update: int, answers: list[TextAnswer], totals: list[Any], metrics: list[Row]) -> Rollouts:
    """What was trained is the total; numbers of the environment are tracked."""
    names = [name for name in metrics[0] if all(isinstance(each.get(name), int | float) for each in metrics)]
    rewards = {REWARD: totals} | {name: [float(each[name]) for each in metrics] for name in names}
    return worded(update, answers, rewards, {name: float(name == REWARD) for name in rewards})


def configured(log_path: Path) -> dict[str, Any]:
    """What `config.json` says of a run, as arguments of `beginning`; empty without one that can be read."""
    try:
        config = json.loads((log_path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(config, dict):
        return {}
    names = {"learning_rate": "learning_rate", "max_tokens": "max_completion_length", "temperature": "temperature"}
    settings = {ours: config[theirs] for theirs, ours in names.items() if theirs in config}
    return {"settings": settings, "model": str(config.get("model_name") or "")}
