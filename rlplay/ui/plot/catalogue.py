"""The curves with which the panels start, by what the run learns from."""

from __future__ import annotations

from rlplay.ui.plot.curve_view import CurveView, Trace, single

REWARD = single("reward")
KL = CurveView(
    "KL",
    (
        Trace("kl", "to reference", estimator_of="kl_estimator"),
        Trace("kl_old", "to old", "spark", estimator="k3"),
    ),
)
STEP_KL = CurveView(
    "KL",
    (
        Trace("kl", "to reference", estimator_of="kl_estimator"),
        Trace("kl_old_exact", "of a step", "spark", estimator="exact"),
    ),
)
"""The two may differ by orders of magnitude, so one is a sparkline."""


def beside_sampler(metric: str) -> CurveView:
    """How far the sampler is from the policy, in place of the KL to the reference."""
    reference = Trace("kl", "to reference", "spark", estimator_of="kl_estimator")
    return CurveView(single(metric).title, (Trace(metric), reference))


LENGTH = CurveView(
    "Length",
    (Trace("completions/mean_length"), Trace("entropy", "entropy", "spark")),
    spread="length",
)

PAIRS = (
    CurveView("Loss", (Trace("loss"),)),
    CurveView("Implicit reward", (Trace("rewards/chosen", "chosen"), Trace("rewards/rejected", "rejected", "dashed"))),
    CurveView(
        "Accuracy",
        (Trace("rewards/accuracies"), Trace("rewards/margins", "margin", "spark")),
        CurveView("Margin", (Trace("rewards/margins"),)),
    ),
    CurveView("Log-probability", (Trace("logps/chosen", "chosen"), Trace("logps/rejected", "rejected", "dashed"))),
)
"""The views for learning from pairs, in place of reward, KL, ratio and length."""

IMITATION = (
    CurveView("Loss", (Trace("loss"),)),
    CurveView("Token accuracy", (Trace("mean_token_accuracy"),)),
    CurveView("Log-probability", (Trace("logps/chosen"),), CurveView("Gradient norm", (Trace("grad_norm"),))),
    CurveView("Entropy", (Trace("entropy"),)),
)
"""The views for fine-tuning."""

SCORES = (
    CurveView("Loss", (Trace("loss"),)),
    CurveView("Accuracy", (Trace("accuracy"), Trace("margin", "margin", "spark"))),
    CurveView("Score", (Trace("mean_reward", "mean"), Trace("max_reward", "highest", "dashed"))),
    CurveView("Gradient norm", (Trace("grad_norm"),)),
)
"""The views for training a reward model."""

ACTION_VALUES = (
    CurveView("Expected reward", (Trace("greedy_reward", "greedy"), Trace("behaviour_reward", "ε-greedy", "dashed"))),
    CurveView("TD error", (Trace("td_error"), Trace("bellman_residual", "Bellman residual", "dashed"))),
    LENGTH,
    REWARD,
)
"""The views for Q-learning and SARSA: the policy that is learned about, and the one that makes the moves."""
