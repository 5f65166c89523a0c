"""What a trainer of TRL records when its numbers are none: transformers logs a loss of 0 then."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

from rlplay.foreign.recording import Recording
from rlplay.health.finding import Finding
from rlplay.health.health_of_run import Health
from rlplay.trace.run import Run
from rlplay.trace.update import Update
from tests.record import tiny
from tests.record.test_trl_online import BATCH, prepared


def first_finding(folder: Path) -> tuple[Finding | None, list[dict[str, float]]]:
    """The gravest finding of a recording, and the metrics of its updates."""
    recording, run = Recording(folder), Run()
    run.add(recording.started())
    updates: dict[int, Update] = {}
    for record in recording.fresh():
        run.add(record)
        updates.setdefault(record.update, Update(record.update)).add(record)
    updates.pop(0, None)
    health = Health(run)
    for update in updates.values():
        health.add(update)
    last = max(updates)
    found = health.findings(last, run.timeline.at(last))
    return next(iter(found), None), [each.finished.metrics for each in updates.values() if each.finished]


def test_a_gradient_that_is_none_breaks_the_loss_of_the_next_step(tmp_path: Path) -> None:
    trainer = prepared("grpo", BATCH, tmp_path)
    generate, whole, calls = trainer.model.generate, tiny.model(tmp_path / "model"), [0]

    def overflow(gradient: Any) -> Any:
        calls[0] += 1
        return gradient * (math.nan if calls[0] > 1 else 1)

    def sampled(*given: Any, **options: Any) -> Any:  # as a sampler in another program, with its own weights
        return (generate if calls[0] < 2 else whole.generate)(*given, **options)

    trainer.model.lm_head.weight.register_hook(overflow)
    trainer.model.generate = sampled
    trainer.train()
    finding, metrics = first_finding(tmp_path / "rec")
    assert math.isfinite(metrics[0]["grad_norm"])
    assert math.isnan(metrics[1]["grad_norm"])
    assert math.isfinite(metrics[1]["loss"])
    assert math.isnan(metrics[2]["loss"])
    assert finding is not None
    assert finding.title == "The gradient is not a number"
    assert finding.evidence.startswith("Update 2: grad_norm")
