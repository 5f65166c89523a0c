"""Every algorithm gives on a GPU what it gives on a CPU."""

from __future__ import annotations

import pytest

from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.value_losses import VALUE_LOSSES
from tests.engine.conftest import score_by_opinion
from tests.gpu.play import Run, both, same

QUICK = ["grpo", "ppo", "dpo"]
LEARN_FROM_LANGUAGE = [name for name, preset in PRESETS.items() if preset.axes["loss_type"] not in VALUE_LOSSES]
OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in LEARN_FROM_LANGUAGE if name not in QUICK]


@pytest.mark.parametrize("name", [*QUICK, *OTHERS])
def test_an_update_is_that_of_the_cpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = PRESETS[name].axes
    rewarded, outcome = axes["loss_type"] == "policy_gradient", axes.get("reward_stream", "outcome") == "outcome"
    score_by_opinion(monkeypatch)
    go = (lambda run: run.go(1).mark().go(1)) if name == "reward-model" else Run.go  # its model begins with an update
    # All candidates: which of an untrained model's is the last of the top k, rounding decides.
    taught = {"teacher_context": "group", "success_reward_threshold": 0.4, "distillation_topk": 10_000}
    taught = taught if axes["distillation_weight"] else {}
    gpu, cpu = both(go, reward=("uneven" if outcome else "halves") if rewarded else "", **axes | taught)
    assert gpu.driver._state.lm.fixed
    same(gpu, cpu)
