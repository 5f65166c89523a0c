"""Runs of Q-learning and SARSA in tiny worlds, by the real engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from rlplay.engine.driver import Driver
from rlplay.scenario.loader import read
from rlplay.scenario.schema import Job
from rlplay.trace.records import AnyRecord, Sampled
from rlplay.trace.update import Update

MAZE: dict[str, Any] = {"map": ["S...", ".O.O", "...O", "O..G"]}
SMALL: dict[str, Any] = {"map": ["S.", ".G"], "step": -0.1}
VALUES: dict[str, Any] = {
    "algorithm": "q-learning", "num_prompts": 1, "num_generations": 8, "learning_rate": 0.25, "gamma": 0.9,
    "exploration_rate": 0.3,
}  # fmt: skip


class Run:
    """A run in a world, with its records by update."""

    def __init__(self, folder: Path, world: dict[str, Any] | None, name: str = "w", resume: bool = False, **keys: Any):
        path = folder / "world.yaml"
        settings = {**VALUES, **keys.pop("settings", {})}
        content = {"title": "w", "question": "?", "settings": settings, "eval_every": 0, **keys}
        path.write_text(yaml.safe_dump(content | ({} if world is None else {"world": world})), encoding="utf-8")
        self.updates: dict[int, Update] = {}
        self.records: list[AnyRecord] = []
        self.driver = Driver(
            Job(read(path), str(folder / f"{name}.rlplay"), "cpu", threads=1, resume=resume), self._take
        )
        self.driver.load(lambda _what, _share: None)

    def _take(self, record: AnyRecord) -> None:
        self.records.append(record)
        if record.update:
            if isinstance(record, Sampled):
                self.updates[record.update] = Update(record.update)
            self.updates.setdefault(record.update, Update(record.update)).add(record)

    def go(self, updates: int) -> Run:
        self.driver.advance("update", updates, lambda: False)
        return self

    @property
    def policy(self) -> Any:
        return self.driver._state.lm.policy

    def metric(self, name: str) -> list[float]:
        return [u.finished.metrics[name] for u in self.updates.values() if u.finished is not None]
