"""An algorithm in symbols: the equations that a combination of settings stands for, one for each choice.

The screen's formula, the comparison of two algorithms and `rlplay algorithms` all read these. For one token:
ℓ its log-probability under the policy that is trained, ℓ_old under the one that sampled it, p and p_old the same as
probabilities, p_ref that under the reference; N answers of n tokens in an optimizer step; sg[…] stops the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator

from rlplay.scenario.pair_terms import pair_equations
from rlplay.scenario.settings import Settings

WORDS = ("sampling", "labels", "limit", "counts", "steps")
"""Entries of `terms` that are words rather than an equation."""

_BASELINES = {
    "none": "0",
    "batch_mean": "mean reward of the batch",
    "group_mean": "mean reward of the group",
    "leave_one_out": "mean reward of the others in the group",
    "length_weighted": "Σ n·reward / Σ n over the group",
    "greedy": "reward of the likeliest answer",
    "value": "V, what the value head expected",
}
_LOG_RATIOS = {
    "token": "ℓ − ℓ_old",
    "sequence": "mean of ℓ − ℓ_old over the answer",
    "sequence_sum": "Σ of ℓ − ℓ_old over the answer",
}
_SUMS = {
    "seq_mean_token_mean": "1/N Σᵢ 1/nᵢ Σₜ",
    "token_mean": "1/Σnᵢ Σᵢ Σₜ",
    "constant": "1/(N·{longest}) Σᵢ Σₜ",
    "seq_mean_token_sum": "1/N Σᵢ Σₜ",
}


def terms(settings: Settings) -> dict[str, str]:
    """The equations in order: left side (or a word of `WORDS`) to right side. What does nothing is left out."""
    return {left: right for left, right in _equations(settings) if right}


def equation(left: str, right: str) -> str:
    """One entry of `terms` as it is written: "A = G − b", "steps: 4"."""
    return f"{left}: {right}" if left in WORDS else f"{left} = {right}"


def difference(before: Settings, after: Settings) -> list[tuple[str, str | None, str | None]]:
    """The entries of `terms` that differ, each as before and as after; None where there is none."""
    old, new = terms(before), terms(after)
    names = [*old, *(name for name in new if name not in old)]
    order = [left for settings in (after, before) for left, _ in _equations(settings)]
    return [
        (name, old.get(name), new.get(name))
        for name in sorted(names, key=order.index)
        if old.get(name) != new.get(name)
    ]


def _equations(s: Settings) -> Iterator[tuple[str, str]]:
    yield from _reward_equations(s) if s.loss_type == "policy_gradient" else pair_equations(s)
    yield "steps", _steps(s)


def _reward_equations(s: Settings) -> Iterator[tuple[str, str]]:
    yield "sampling", "groups whose rewards are all equal are replaced" if s.dynamic_sampling else ""
    yield "r", _stream(s)
    yield "G", _return(s)
    yield "b", _baseline(s)
    yield "A", _advantage(s)
    yield "w", _ratio(s)
    yield "W", "exp(Σ of ℓ − ℓ_old over the answer)" if s.surrogate == "vespo" else ""
    yield "S", surrogate(s)
    yield "K", divergence(s) if in_loss(s) else ""
    yield "L", _loss(s)
    yield "limit", f"mean over tokens of {kept_small(s)}" if s.kl_placement == "constraint" else ""
    yield "β", _controller(s)
    yield "L_V", _value_loss(s)
    yield "counts", _kept(s)


def in_loss(s: Settings) -> bool:
    """Whether a KL term is part of the loss."""
    return s.kl_placement == "loss" and s.beta > 0


def beside_surrogate(s: Settings) -> tuple[str, ...]:
    """What else in the policy's loss acts on a token, also on one without advantage and on a clipped one."""
    acting = (("the KL term", in_loss(s)), ("the entropy bonus", s.entropy_coef != 0))
    return tuple(name for name, acts in acting if acts)


def _stream(s: Settings) -> str:
    apart = s.multi_objective_aggregation == "normalize_then_sum"
    reward = "Σ over rewards of (R − group mean)/group std" if apart else "R"
    text = {
        "outcome": f"{reward} on the last token",
        "process": "each step's score at its end, the rest on the last token",
        "process_normalized": "each step's (score − group mean)/group std at its end",
        "shaping": f"R less its step scores on the last token + {factor(s.gamma, 'γ·')}Φ′ − Φ, Φ the scores so far",
    }[s.reward_stream]
    if s.overlong_buffer:
        text += f" − (share used of the last {s.overlong_buffer} tokens)"
    if s.kl_placement == "reward" and s.beta:
        text += f" − {s.beta:g}·{_bracketed(estimator(s)[1])} on every token"
    return text


def _return(s: Settings) -> str:
    match s.returns:
        case "broadcast":
            return "Σ r over the answer"
        case "to_go":
            return "Σ r from here on" if s.gamma == 1 else f"r + {s.gamma:g}·G′"
        case "vine":
            return "Σ r of the reasoning step + V′" if s.gamma == 1 else f"Σ γᵗ·r of the step + γⁿ·V′, γ = {s.gamma:g}"
        case "gae":
            return f"V + Σₖ {s.gamma * s.lam:g}ᵏ·δₖ, δ = r + {factor(s.gamma)}V′ − V"


def _baseline(s: Settings) -> str:
    if s.returns == "vine":
        return f"V, mean reward of {s.vine_samples} answers continued from where the step begins"
    return _BASELINES[s.baseline]


def factor(value: float, symbol: str = "") -> str:
    """A factor before something, left out where it is 1: "0.9·", or by its `symbol`."""
    return "" if value == 1 else symbol or f"{value:g}·"


def _advantage(s: Settings) -> str:
    return {
        "none": "G − b",
        "group": "(G − b)/(σ + 0.0001), σ = std of the group's rewards",
        "batch": "(G − b)/(σ + 0.0001), σ = std of the batch's rewards",
        "whiten": "(G − b − μ)/σ, μ and σ of all tokens' G − b",
    }[s.scale_rewards]


def _ratio(s: Settings) -> str:
    if s.surrogate == "logp" or (s.surrogate == "vespo" and not in_loss(s)):
        return ""
    if s.importance_sampling_level == "geometric":
        low, high = s.clip_range
        return f"exp(mean of d over the answer), d = ℓ − ℓ_old; if A > 0, d ≤ {high:g}, else d ≥ −{low:g}"
    return f"exp({_LOG_RATIOS[s.importance_sampling_level]})"


def surrogate(s: Settings) -> str:
    """The objective of one token as a loss, the right side of S."""
    low, high = s.clip_range
    match s.surrogate:
        case "logp":
            return "−A·ℓ"
        case "ratio" | "trpo":
            return "−w·A"
        case "ppo":
            free = "w·A" if s.delta is None else f"min(w, {s.delta:g})·A"
            return f"−min({free}, clip(w, {1 - low:g}, {1 + high:g})·A)"
        case "cispo":
            return f"−sg[min(w, {high:g})]·A·ℓ"
        case "sapo":
            up, down = s.sapo_temperature_pos, s.sapo_temperature_neg
            return f"−4/τ·sigmoid(τ·(w − 1))·A, τ = {up:g} if A > 0 else {down:g}"
        case "vespo":
            k, decay = (s.vespo_k_pos, s.vespo_k_neg), (s.vespo_lambda_pos, s.vespo_lambda_neg)
            return (
                "−sg[φ]·A·ℓ, φ = exp(λ + k·log W − λ·W), "
                f"(k, λ) = ({k[0]:g}, {decay[0]:g}) if A ≥ 0 else ({k[1]:g}, {decay[1]:g})"
            )


def estimator(s: Settings) -> tuple[str, str]:
    """The KL's short name, and how it is taken of one token."""
    to_old = s.kl_anchor == "old"
    match s.kl_estimator:
        case "k1":
            return "k1", "−log(p/p_old)" if to_old else "log(p/p_ref)"
        case "k2":
            return "k2", "½·log(p/p_old)²" if to_old else "½·log(p/p_ref)²"
        case "k3":
            return "k3", "p/p_old − log(p/p_old) − 1" if to_old else "p_ref/p − log(p_ref/p) − 1"
        case "full":
            return "KL", "Σᵥ p_old·log(p_old/p)" if to_old else "Σᵥ p·log(p/p_ref)"


def kept_small(s: Settings) -> str:
    """TRPO's constraint."""
    return f"Σᵥ p_old·log(p_old/p) ≤ {s.max_kl:g}"


def corrected(s: Settings) -> bool:
    """Whether the KL term is multiplied by the ratio, so that its gradient is right for an older policy's answers."""
    return s.use_bias_correction_kl and s.kl_anchor == "ref" and s.kl_estimator != "full"


def divergence(s: Settings) -> str:
    """The KL of one token as it is trained, the right side of K."""
    _, meaning = estimator(s)
    return f"w·{_bracketed(meaning)}" if corrected(s) else meaning


def _bracketed(text: str) -> str:
    return f"({text})" if " − " in text else text


def _loss(s: Settings) -> str:
    beta = f"{s.beta:g}" if s.kl_ctrl == "fixed" else "β"
    inner = f"(S + {beta}·K)" if in_loss(s) else "S"
    text = f"{_SUMS[s.aggregation].format(longest=s.max_completion_length)} {inner}"
    if s.entropy_coef:
        text += f" {'−' if s.entropy_coef > 0 else '+'} {abs(s.entropy_coef):g}·mean entropy"
    return f"{text} + {s.vf_coef:g}·L_V" if s.baseline == "value" else text


def _controller(s: Settings) -> str:
    match s.kl_ctrl:
        case "fixed":
            return ""
        case "ziegler":
            return f"β·(1 + clip(KL/{s.target_kl:g} − 1, ±0.2)·N/{s.kl_horizon}) after each update, from {s.beta:g}"
        case "ppo":
            low, high = s.target_kl / 1.5, s.target_kl * 1.5
            return f"β/2 after an update with KL < {low:.3g}, 2β with KL > {high:.3g}, from {s.beta:g}"


def _value_loss(s: Settings) -> str:
    if s.baseline != "value":
        return ""
    return f"½·mean max((V − G)², (V_old + clip(V − V_old, ±{s.cliprange_value:g}) − G)²)"


def _kept(s: Settings) -> str:
    """Which tokens' surrogate counts, where not all do."""
    rules = []
    if s.mask_truncated_completions:
        rules.append("answers that were not cut")
    if s.top_entropy_quantile < 1:
        rules.append(f"the {100 * s.top_entropy_quantile:g} % of tokens of highest entropy")
    if s.off_policy_mask_threshold is not None:
        rules.append(f"A ≥ 0 or mean(ℓ_old − ℓ) ≤ {s.off_policy_mask_threshold:g}")
    return "only " + "; ".join(rules) if rules else ""


def _steps(s: Settings) -> str:
    if s.surrogate == "trpo":
        return (
            f"1 per batch along (F + {s.cg_damping:g})⁻¹∇L, by {s.cg_iterations} iterations of conjugate gradient; the "
            f"longest of {s.line_search_steps} tries that keeps the limit and improves the surrogate"
        )
    passes, parts = s.num_iterations, s.num_minibatches
    if passes == parts == 1:
        return "1 per batch"
    return f"{passes * parts} per batch: {passes} × {parts} minibatch{'es' if parts > 1 else ''}"
