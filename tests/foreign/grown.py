"""Small files in the layouts of other trainers, some of them while they are being written."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def aged(path: Path, age: float = 60) -> None:
    """Let nobody have touched a file for `age` seconds."""
    then = path.stat().st_mtime - age
    os.utime(path, (then, then))


def lines(path: Path, rows: Sequence[Row], age: float = 60) -> None:
    """Write rows as JSON lines that nobody has touched for `age` seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    aged(path, age)


def verl_rows(step: int) -> list[Row]:
    """Four answers to two prompts, as verl's rollout_data_dir has them."""
    outputs = ("It is 3.", "  4\n", "", "\x1b[31mred [b]")
    return [
        {"input": f"{i // 2}+2=", "output": text, "gts": str(i // 2 + 2), "score": i / 4, "step": step, "acc": i % 2}
        for i, text in enumerate(outputs)
    ]


def trl_rows(step: int) -> list[Row]:
    """Two answers, as TRL's completions have them."""
    return [
        {"step": step, "prompt": "p", "completion": text, "correct": score, "advantage": score - 0.5}
        for text, score in (("a b", 1.0), ("c", 0.0))
    ]


def prime_rl_rows(step: int) -> list[Row]:
    """Two answers, as prime-rl's token exports have them."""
    return [
        {"step": step, "token_ids": [1, 2, 3 + i], "loss_mask": [False, True, True], "advantages": [0.0, i, i]}
        for i in (0, 1)
    ]


def tinker_rows(iteration: int) -> list[Row]:
    """Four answers to two prompts, as tinker-cookbook's rollout summaries of a ProblemEnv have them."""

    def row(group: int, place: int) -> Row:
        right = place == 0
        said = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": f" It is {group}."}]
        asked = {"role": "user", "content": f"What is {group}+{iteration}?"}
        trace = {
            "prompt": {"type": "conversation", "messages": [asked]},
            "policy_response": {"type": "conversation", "messages": [{"role": "assistant", "content": said}]},
            "reward": {"reference_answer": str(group + iteration), "correct": right, "reward": f"{float(right):.3f}"},
        }
        step = {
            "step_idx": 0, "ob_len": 9, "ac_len": 5, "reward": float(right), "episode_done": True,
            "stop_reason": "stop" if right else "length", "metrics": {"format": 1.0, "correct": float(right)},
            "logs": {}, "trace": trace,
        }  # fmt: skip
        return {
            "schema_version": 1, "split": "train", "iteration": iteration, "group_idx": group, "traj_idx": place,
            "tags": ["math"], "sampling_client_step": iteration, "total_reward": float(right), "final_reward": 0.0,
            "trajectory_metrics": {}, "steps": [step], "final_ob_len": 0,
        }  # fmt: skip

    return [row(group, place) for group in (0, 1) for place in (0, 1)]


def token_rows(iteration: int) -> list[Row]:
    """Four answers of two turns to two prompts, as tinker-cookbook's token database has them."""

    def row(group: int, place: int, step: int) -> Row:
        return {
            "run_id": "1", "run_attempt": 1, "split": "train", "iteration": iteration, "group_idx": group,
            "traj_idx": place, "step_idx": step, "env_row_id": f"r{group}", "source": "rollout", "ob_tokens": [1, 2],
            "ob_is_delta": step > 0, "ac_tokens": [3, 4, 5], "ac_logprobs": [-0.1, -0.2, -0.3],
            "stop_reason": "length" if place and step else "stop", "reward": 0.0, "episode_done": step == 1,
            "total_reward": 1.5 - place, "final_reward": 0.0, "ob_text": "<tool> 4" if step else f"prompt {group}",
            "ac_text": "So 4." if step else "I call it.", "metrics": {"correct": 1.0 - place},
            "attrs": {"topic": "sums"},
        }  # fmt: skip

    return [row(group, place, step) for group in (0, 1) for place in (0, 1) for step in (0, 1)]


def parquet_bytes(rows: Sequence[Row]) -> bytes:
    """The rows as a Parquet file; mappings of the token database as Arrow maps."""
    import io

    import pyarrow as pa
    from pyarrow import parquet

    types = {"metrics": pa.map_(pa.string(), pa.float32()), "attrs": pa.map_(pa.string(), pa.string())}
    columns = {
        name: pa.array([row[name] for row in rows] if name not in types else [list(row[name].items()) for row in rows],
                       types.get(name))
        for name in rows[0]
    }  # fmt: skip
    written = io.BytesIO()
    parquet.write_table(pa.table(columns), written)
    return written.getvalue()


def write_segment(run: Path, name: str, rows: Sequence[Row], age: float = 60) -> None:
    """Write a segment of the token database."""
    path = run / "tokens" / "segments" / f"seg-{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(parquet_bytes(rows))
    aged(path, age)
