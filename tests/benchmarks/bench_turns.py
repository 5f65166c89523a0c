"""Credit by turn against one advantage for the whole episode, with as many sampled tokens and as many updates.

    python -m tests.benchmarks.bench_turns [--seeds 10] [--results FILE]

`flat` is GRPO as in the lesson; `turns` is the same with returns=vine, where every turn's value costs 3 or 9 episodes
more; `flat, more games` samples so many answers to a prompt that both have sampled as many tokens. What is compared is
the reward of the policy after the last update, in episodes that are not trained on. One CPU thread; minutes a seed.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from rlplay.engine.driver import Driver
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.records import AnyRecord, Finished, Scored

COMMON = {"algorithm": "grpo", "learning_rate": 4e-4, "beta": 0}
TURNS = {"returns": "vine", "baseline": "none", "scale_rewards": "none"}
CALLS = {"num_prompts": 16, "num_generations": 8, "max_completion_length": 40}
TASKS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "guess": ("guess", 8, {
        "num_prompts": 20, "num_generations": 6, "max_completion_length": 60, "reward_weights": {"guessed": 1},
    }),
    "calculator": ("calculator", 7, CALLS | {
        "reward_weights": {"correct": 1, "product_calls": -0.001, "sum_calls": -0.001},
    }),
    "calls at a price": ("calculator", 16, CALLS | {
        "reward_weights": {"correct": 1, "product_calls": -0.7, "sum_calls": -0.7},
    }),
}  # fmt: skip
"""By name: the task, updates and the settings of its lesson."""


class Run(msgspec.Struct):
    """One way on one seed: tokens sampled in all, and the mean reward by update and in the end."""

    task: str
    way: str
    seed: int
    tokens: float
    rewards: list[float]
    after: float


def play(name: str, way: str, seed: int, settings: dict[str, Any]) -> Run:
    """Train from the bundled model, then play episodes that nobody learns from."""
    task, updates, given = TASKS[name]
    records: list[AnyRecord] = []
    scenario = Scenario(
        name="bench", title="", question="", task=task, settings=COMMON | given | settings, seed=seed,
        max_updates=updates + 1, eval_every=0,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(Job(scenario, f"{folder}/run.rlplay", device="cpu", threads=1), records.append)
        driver.load(lambda what, fraction: None)
        driver.advance("update", updates, lambda: False)
        questions = 20 if task == "guess" else 40  # of a game there is one for each secret
        driver.set({"returns": "broadcast", "num_prompts": questions, "num_generations": 20})
        driver.advance("phase", 2, lambda: False)
        driver.close()
    metrics = [r.metrics for r in records if isinstance(r, Finished)]
    scored = [r for r in records if isinstance(r, Scored)]
    tokens = metrics[-1]["num_tokens"] + sum(each.get("vine_tokens", 0.0) for each in metrics)
    return Run(name, way, seed, tokens, [each["reward"] for each in metrics], float(scored[-1].rewards.mean()))


def seed_of(name: str, seed: int) -> list[Run]:
    """All ways on one seed."""
    games = TASKS[name][2]["num_generations"]
    runs = [play(name, "flat", seed, {})]
    for samples in (3, 9):
        turns = play(name, f"turns, {samples}", seed, TURNS | {"vine_samples": samples})
        more = max(2, round(games * turns.tokens / runs[0].tokens))
        runs += [turns, play(name, f"flat, tokens of {samples}", seed, {"num_generations": more})]
    return runs


def table(runs: list[Run]) -> str:
    """Markdown: mean (worst–best) reward after the last update, mean over the updates but the first, tokens."""
    lines = ["| task | credit | tokens | reward in training | after: mean (worst–best) |", "| --- " * 5 + "|"]
    for task, way in dict.fromkeys((run.task, run.way) for run in runs):
        mine = [run for run in runs if (run.task, run.way) == (task, way)]
        after = [run.after for run in mine]
        training = statistics.mean(statistics.mean(run.rewards[1:]) for run in mine)
        lines.append(
            f"| {task} | {way} | {statistics.mean(run.tokens for run in mine):,.0f} | {training:.3f} | "
            f"{statistics.mean(after):.3f} ({min(after):.3f}–{max(after):.3f}) |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run what FILE lacks, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--results", type=Path, default=Path("bench_turns.json"))
    chosen = parser.parse_args()
    runs = msgspec.json.decode(chosen.results.read_bytes(), type=list[Run]) if chosen.results.exists() else []
    for seed in range(1, chosen.seeds + 1):
        for name in TASKS:
            if not any((run.task, run.seed) == (name, seed) for run in runs):
                runs += seed_of(name, seed)
                chosen.results.write_bytes(msgspec.json.encode(runs))
    print(table(runs))


if __name__ == "__main__":
    main()
