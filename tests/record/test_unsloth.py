"""A trainer that unsloth has compiled, recorded through the callback: all that it shows, and no formula."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

import trl
from transformers import set_seed

from rlplay.foreign.copy import Copy
from rlplay.record.trl import RlplayCallback
from rlplay.record.trl.trainer_kind import recognise
from rlplay.trace.runfile import RunReader
from tests.record import tiny, trainers
from tests.record.unsloth_compiled import MODULE, compiled


@pytest.mark.parametrize("passes", [1, 2])
def test_a_compiled_trainer(
    passes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    made = compiled()
    monkeypatch.setitem(sys.modules, MODULE, sys.modules[MODULE])
    options = trainers.GROUPED | {"num_iterations": passes}
    make = trainers.maker(made, trl.GRPOConfig, tiny.PROMPTS, options, rewards=True)
    monkeypatch.setattr(trl, "GRPOTrainer", made)
    trainer = make(tmp_path, [RlplayCallback(tmp_path / "rec")])
    assert recognise(trainer).kind == "GRPOTrainer"
    advantages: list[np.ndarray] = []
    generate = trainer._generate_and_score_completions

    def seen(inputs: object) -> object:
        out = generate(inputs)
        advantages.append(out["advantages"].numpy())
        return out

    trainer._generate_and_score_completions = seen
    set_seed(3)
    trainer.train()
    said = capsys.readouterr().err
    assert "no formulas and no clipping are shown" in said
    assert said.count("are no longer recorded (its loss computes its own)") == 1
    with RunReader(Copy(tmp_path / "rec").path) as run:
        assert "UnslothGRPOTrainer" in run.started.source
        assert run.started.settings["algorithm"] == ""
        for number, expected in zip(run.updates(), advantages, strict=True):
            update = run.load(number)
            sampled = update.sampled
            assert len(sampled.group) == len(expected)
            answers = np.array([update.credited.advantages[a] for a in sampled.offsets[:-1]])
            np.testing.assert_allclose(np.sort(answers), np.sort(expected), atol=1e-6)
            assert set(update.scored.parts) == {"binary"}
            assert "completion_length" in update.finished.metrics
            assert "grad_norm" in update.finished.metrics
            assert np.isfinite(sampled.old_logprobs[sampled.mask == 1]).all() == (passes > 1)
            assert np.isnan(np.concatenate([step.logprobs for step in update.steps])).all()
            assert all(step.clip_state is None for step in update.steps)
