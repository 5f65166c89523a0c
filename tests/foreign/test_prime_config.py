"""prime-rl's own formula, with its thresholds and masks, where the run's folder holds its configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlplay.foreign.copy import Copy
from rlplay.foreign.prime_config import configured
from rlplay.health.digest import digest
from rlplay.health.health_of_run import examine_run
from rlplay.trace.runfile import RunReader
from rlplay.trace.update import Update
from tests.foreign.grown import lines

DPPO = {"type": "default", "dppo_mask_low": 0.2, "dppo_mask_high": 0.3, "adv_tau": 1.0, "kl_tau": 0.001}
IPO = {"type": "ipo", "eps": 0.1, "adv_tau": 1.0, "kl_tau": 0.001}
CAPPED = {"type": "ipo", "eps": 0.3, "max_importance_ratio": 1e4, "adv_tau": 1.0, "score_centering": False}
PLAIN = {"train": {"env": [{"id": "sums", "algo": {"type": "grpo", "failsafe_min_members": 4}}]}, "group_size": 2}
SAMPLER = (0.5, 0.5, 0.2, 0.9)
TRAINER = (0.85, 0.6, 0.05, 0.5)
"""Probabilities of the tokens of each answer."""


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def run(folder: Path, loss: Any, orchestrator: Any = PLAIN, kind: str = "json") -> Path:
    """A run's folder with its configuration and, in `token_exports`, one step of two answers."""
    configs = folder / "configs"
    configs.mkdir(parents=True)
    optimizer = {"lr": 3e-6, "weight_decay": 0.01, "max_norm": 1.0}
    trainer = {"model": {"name": "Qwen/Qwen3-0.6B"}, "optim": optimizer, "loss": loss}
    for name, content in (("trainer", trainer), ("orchestrator", orchestrator)):
        text = json.dumps(content) if kind == "json" else toml(content)
        (configs / f"{name}.{kind}").write_text(text, encoding="utf-8")
    step = folder / "token_exports" / "step_0"
    lines(step / "rank_0.jsonl", [row(place) for place in range(2)], 100)
    (step / "STABLE").touch()
    return folder


def toml(content: dict[str, Any]) -> str:
    """Tables of one level, and what is deeper as an inline table."""
    return "\n".join(f"{name} = {inline(value)}" for name, value in content.items()) + "\n"


def inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {inline(each)}" for name, each in value.items()) + "}"
    return "[" + ", ".join(map(inline, value)) + "]" if isinstance(value, list) else json.dumps(value)


def row(place: int) -> dict[str, Any]:
    """A line as prime-rl's `TokenExporter` writes it: arrays over the prompt's and the answer's tokens."""
    sampler, trainer = np.log(SAMPLER), np.log(TRAINER)
    gain, moved = (0.5, -0.5)[place], np.array(TRAINER) - np.array(SAMPLER)
    far = moved > DPPO["dppo_mask_high"] if gain > 0 else moved < -DPPO["dppo_mask_low"]  # type: ignore[operator]
    numbers = {
        "inference_logprobs": sampler, "trainer_logprobs": trainer, "importance_ratio": np.exp(trainer - sampler),
        "mismatch_kl": np.exp(trainer - sampler) - (trainer - sampler) - 1, "prob_delta": moved,
        "advantages": np.full(4, gain), "entropy": np.ones(4), "is_masked": far, "is_masked_high": far & (gain > 0),
        "is_masked_low": far & (gain < 0),
    }  # fmt: skip
    asked = [11, 12]
    return {
        "schema_version": 1, "step": 0, "rank": 0, "env_name": "sums", "token_ids": [*asked, 21, 22, 23, 24],
        "loss_mask": [False, False, True, True, True, True], "rewards": [1.0 - place] * 6,
    } | {name: [None, None, *values.tolist()] for name, values in numbers.items()}  # fmt: skip


def read(folder: Path) -> tuple[Any, Update]:
    with RunReader(Copy(folder).path) as reader:
        return reader.started, reader.load(1)


@pytest.mark.parametrize("kind", ["json", "toml"])
def test_its_default_loss_has_its_formula_and_its_masks(kind: str, tmp_path: Path) -> None:
    started, update = read(run(tmp_path / "run", DPPO, kind=kind))
    assert started.model == "Qwen/Qwen3-0.6B"
    expected = {
        "algorithm": "prime-rl", "epsilon": 0.2, "epsilon_high": 0.3, "beta": 0.002, "surrogate": "dppo_tv",
        "old_logprobs_of": "sampler", "learning_rate": 3e-6, "num_generations": 2, "aggregation": "token_mean",
    }  # fmt: skip
    assert {name: started.settings[name] for name in expected} == expected
    assert update.steps[0].clip_state.tolist() == [1, 0, 0, 0, 0, 0, 0, -1]
    np.testing.assert_allclose(update.steps[0].importance_ratio, np.tile(np.divide(TRAINER, SAMPLER), 2), rtol=1e-6)
    gap = np.log(TRAINER) - np.log(SAMPLER)
    assert digest(update).mismatch == pytest.approx(np.mean(np.exp(gap) - gap - 1), rel=1e-4)
    assert update.steps[0].metrics["is_masked/mean"] == 0.25
    _, found = examine_run(Copy(tmp_path / "run").path)
    advice = next(each.change for each in found if each.name == "mismatch")
    assert "already measures its ratio from the sampler" in advice


@pytest.mark.parametrize(("loss", "delta", "beta"), [(IPO, None, 0.002), (CAPPED, 1e4, 0.0)])
def test_its_newer_loss_masks_both_ways(loss: Any, delta: Any, beta: float, tmp_path: Path) -> None:
    found = configured(run(tmp_path / "run", loss))["settings"]
    assert (found["surrogate"], found["epsilon"], found["delta"], found["beta"]) == (
        "tv_mask",
        loss["eps"],
        delta,
        beta,
    )


def test_what_moved_too_far_is_computed_where_no_mask_is_exported(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", IPO)
    rows = [
        row(place) | dict.fromkeys(("is_masked", "is_masked_high", "is_masked_low"), [None] * 6) for place in (0, 1)
    ]
    lines(folder / "token_exports" / "step_0" / "rank_0.jsonl", rows, 100)
    _, update = read(folder)
    assert update.steps[0].clip_state.tolist() == [1, 0, -1, -1] * 2


@pytest.mark.parametrize(
    ("loss", "orchestrator"),
    [
        (DPPO | {"adv_tau": 0.5}, PLAIN), (DPPO | {"teacher_tau": 0.1}, PLAIN), (DPPO | {"type": "custom"}, PLAIN),
        ({"type": "default"}, PLAIN), (CAPPED | {"score_centering": True}, PLAIN), (None, PLAIN), (DPPO, {}),
        (DPPO, {"algo": {"type": "opd"}}), (DPPO, {"algo": {"type": "grpo", "length_weighted_baseline": True}}),
        (DPPO, {"algo": {"type": "grpo", "loss_aggregation": "prompt"}}), (DPPO, {"advantage": None}),
        (DPPO, {"algo": {"type": "grpo"}, "train": {"env": [{"algo": {"type": "max_rl"}}]}}),
    ],
)  # fmt: skip
def test_any_other_loss_has_no_formula(loss: Any, orchestrator: Any, tmp_path: Path) -> None:
    started, update = read(run(tmp_path / "run", loss, orchestrator))
    assert started.settings["algorithm"] == ""
    assert update.steps[0].clip_state.tolist() == [1, 0, 0, 0, 0, 0, 0, -1], "masks are shown as recorded"


def test_a_folder_of_exports_alone_has_no_thresholds(tmp_path: Path) -> None:
    exports = run(tmp_path / "run", DPPO) / "token_exports"
    assert configured(exports)["settings"]["epsilon"] == 0.2, "the configuration is beside it"
    exports.rename(tmp_path / "exports")
    assert configured(tmp_path / "exports") == {"model": "", "settings": {}}
    started, _ = read(tmp_path / "exports")
    assert started.settings["algorithm"] == ""
