"""What the formulas come to for every token is what the engine computed: values, weights and directions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rlplay.algorithms.apply import resolve
from rlplay.trace.records import spans
from rlplay.trace.update import Update
from rlplay.ui.formula import pair_terms as pair
from rlplay.ui.formula import surrogate
from rlplay.ui.formula.advantage import credit
from rlplay.ui.formula.loss import objective
from tests.engine.conftest import FROM_ANSWERS, SMALL
from tests.numbers import numbers_of, update_of

RUNS: list[dict[str, Any]] = [
    {"algorithm": "grpo", "beta": 0.2, "num_iterations": 2, "learning_rate": 1e-2, "epsilon": 0.05},
    {"algorithm": "ppo", "delta": 1.15, "epsilon": 0.1, "num_iterations": 3, "learning_rate": 2e-2},
    {"algorithm": "ppo-penalty", "num_iterations": 2, "learning_rate": 1e-2},
    {"algorithm": "gspo", "num_iterations": 2, "learning_rate": 1e-3, "beta": 0.1, "kl_placement": "loss"},
    {"algorithm": "gmpo", "num_iterations": 2, "epsilon": 0.05, "learning_rate": 1e-2},
    {"algorithm": "rloo", "num_iterations": 2, "learning_rate": 3e-3},
    {"algorithm": "cispo", "num_iterations": 2, "epsilon_high": 1.05, "learning_rate": 1e-2},
    {"algorithm": "dppo", "num_iterations": 2, "epsilon": 0.01, "learning_rate": 1e-2},
    {
        "algorithm": "dppo",
        "surrogate": "tv_mask",
        "num_iterations": 2,
        "epsilon": 0.01,
        "delta": 1.02,
        "learning_rate": 1e-2,
    },
    {"algorithm": "sapo", "num_iterations": 2, "learning_rate": 1e-2},
    {"algorithm": "vespo", "num_iterations": 2, "learning_rate": 1e-3},
    {"algorithm": "reinforce-baseline"},
    {"algorithm": "dr-grpo", "mask_truncated_completions": True, "top_entropy_quantile": 0.5},
    {"algorithm": "lite-ppo", "off_policy_mask_threshold": 0.001, "num_iterations": 3, "learning_rate": 1e-2},
]


def an_update(start: Callable[..., Any], given: dict[str, Any]) -> Update:
    driver, records = start(**given)
    driver.advance("update", 1, lambda: False)
    driver.close()
    return update_of(records)


@pytest.mark.parametrize("given", RUNS, ids=lambda g: g["algorithm"])
def test_the_tokens_terms_add_up_to_the_recorded_loss_and_pull_as_recorded(start, given):
    update, s = an_update(start, given), resolve(SMALL | given)
    assert update.sampled is not None
    lost = shown = 0
    for step in update.steps[-s.num_minibatches :]:
        policy = kl = 0.0
        for token in spans(update.sampled.offsets, step.rows):
            n = numbers_of(update, int(token))
            value = surrogate.value(s, n)
            policy += 0.0 if n.left_out else n.weight * value
            kl += n.weight * (n.kl or 0.0) * (s.beta if n.beta is None else n.beta)
            equation = "\n".join("".join(text for text, _ in line) for line in objective(s, n))
            lost += "left out of the loss" in equation
            shown += any(mark in equation for mark in "▲▼")
            if s.importance_sampling_level == "token" and n.advantage and not n.left_out and abs(n.dloss_dlogp) > 1e-7:
                of_surrogate = n.dloss_dlogp - (n.dkl_dlogp or 0.0)
                assert np.sign(np.round(of_surrogate, 9)) == (0 if n.clip_state else -np.sign(n.advantage))
        assert policy == pytest.approx(step.metrics["policy_loss"], abs=2e-6)
        value_loss = s.vf_coef * step.metrics.get("value_loss", 0.0)
        assert policy + kl == pytest.approx(step.metrics["loss"] - value_loss, abs=2e-6)
    assert bool(lost) == any(np.any(step.left_out) for step in update.steps[-s.num_minibatches :])
    assert bool(shown) == any(np.any(step.clip_state) for step in update.steps[-s.num_minibatches :])


COMPARING = [name for name in FROM_ANSWERS if resolve({"algorithm": name}).kind != "imitation"]


@pytest.mark.usefixtures("opinionated")
@pytest.mark.parametrize("name", COMPARING)
def test_the_pairs_terms_add_up_to_the_recorded_loss(start, name):
    given = {"algorithm": name, "num_iterations": 2, "learning_rate": 1e-2, "num_prompts": 4}
    update, s = an_update(start, given), resolve(SMALL | given)
    assert update.sampled is not None
    assert update.scored is not None
    values = []
    for completion in np.flatnonzero([role != "" for role in update.scored.roles]):
        numbers = numbers_of(update, int(update.sampled.offsets[completion]), s)
        assert numbers.pair is not None
        if numbers.pair.chosen or s.loss_type in ("kto", "apo_zero_unpaired"):
            several = {name: weight for name, weight in s.loss_weights.items() if name != "sft"} or {s.loss_type: 1.0}
            terms = [weight * pair.value(s, numbers.pair, name) for name, weight in several.items()]
            values.append(sum(terms))
        lines = objective(s, numbers)
        assert any("chosen" in text or "rejected" in text for line in lines for text, _ in line)
    step = update.steps[-1]
    own = s.loss_weights.get("sft", 0.0)
    imitated = {"orpo": 1.0, "cpo": s.cpo_alpha, "simpo": s.cpo_alpha}.get(s.loss_type, own)
    expected = step.metrics["loss"] - imitated * step.metrics.get("nll_loss", 0.0)
    assert np.mean(values) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "given", [{"algorithm": "grpo"}, {"algorithm": "lite-ppo"}, {"algorithm": "rloo"}, {"algorithm": "ppo"}], ids=str
)
def test_the_advantages_story_comes_to_the_recorded_advantage(start, given):
    update, s = an_update(start, given), resolve(SMALL | given)
    for token in range(0, update.tokens, 7):
        n = numbers_of(update, token)
        lines = ["".join(text for text, _ in line) for line in credit(s, n)]
        assert lines[-1].endswith(f"{n.advantage:+.2f}".replace("-", "−")) or abs(n.advantage) < 0.005
        assert any(line.startswith("G = ") and ": " in line for line in lines)
