"""An algorithm in symbols: the equations of a combination of settings, one for each choice.

The screen's formula, the comparison of two algorithms and `rlplay algorithms` all read these. For one token: ℓ is its
log-probability under the trained policy, ℓ_old under the one that sampled it; p and p_old are the probabilities, p_ref
that under the reference. An optimizer step has N answers of n tokens; sg[…] stops the gradient.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from rlplay.algorithms import corrections
from rlplay.algorithms.choice import Choice, argument_names, call_choice
from rlplay.algorithms.expression_text import equation as equation_of
from rlplay.algorithms.own_choices import is_own
from rlplay.algorithms.pair_equations import BALANCE, balanced, pair_equations
from rlplay.algorithms.settings import Settings, row
from rlplay.algorithms.symbols import Expression, Symbols, name
from rlplay.algorithms.teacher_equations import of_teacher, rewards_idle, taught, teacher
from rlplay.algorithms.value_losses import VALUE_LOSSES, moved, target, td_error
from rlplay.trace.numbers import compact
from rlplay.trace.text import visible

WORDS = ("sampling", "teacher", "labels", "writer", "limit", "counts", "steps")
"""Entries of `terms` that are text instead of an equation."""


def terms(settings: Settings) -> dict[str, str]:
    """The equations in order: left side (or a word of `WORDS`) to right side, without those that have no effect."""
    return {left: right for left, right in _equations(settings) if right}


def equation(left: str, right: str) -> str:
    """One entry of `terms` as it is written: "A = G − b", "steps: 4"."""
    return f"{left}: {right}" if left in WORDS else f"{left} = {right}"


def difference(before: Settings, after: Settings) -> list[tuple[str, str | None, str | None]]:
    """The entries of `terms` that differ, each before and after; None if a side has no such entry."""
    old, new = terms(before), terms(after)
    names = [*old, *(name for name in new if name not in old)]
    order = [left for settings in (after, before) for left, _ in _equations(settings)]
    return [
        (name, old.get(name), new.get(name))
        for name in sorted(names, key=order.index)
        if old.get(name) != new.get(name)
    ]


def _equations(s: Settings) -> Iterator[tuple[str, str]]:
    if s.loss_type in VALUE_LOSSES:
        yield from _value_equations(s)
        return
    yield from _reward_equations(s) if s.loss_type == "policy_gradient" else pair_equations(s)
    yield "L_aux", BALANCE if balanced(s) else ""
    yield "θ_ref", _reference(s)
    yield "steps", _steps(s)


def _value_equations(s: Settings) -> Iterator[tuple[str, str]]:
    yield "sampling", f"the best move by Q; with probability {compact(s.exploration_rate)}, any move"
    yield "r", _stream(msgspec.structs.replace(s, beta=0.0))  # no KL: there is no reference to keep near
    yield "δ", f"{equation_of(value_error(s))}, where nothing follows the last move"
    yield "new Q(s, a)", equation_of(moved(name("Q(s, a)"), s.learning_rate, name("δ")))
    yield "steps", "1 per move, in the order in which the moves were made"


def value_error(s: Settings, values: Mapping[str, Any] | None = None) -> Expression:
    """δ of Q-learning or SARSA, with the `values` of "reward", "following" and "value" if given."""
    known, loss = values or {}, VALUE_LOSSES[s.loss_type]
    towards = target(name("r", known.get("reward")), s.gamma, name(loss.symbol, known.get("following")))
    found: Expression = td_error(towards, name("Q(s, a)", known.get("value")))
    return found


def _reward_equations(s: Settings) -> Iterator[tuple[str, str]]:
    yield "sampling", "; ".join(_sampling(s))
    if s.distils:
        yield "teacher", teacher(s)
    if not rewards_idle(s):
        yield "r", _stream(s)
        yield "G", row(s, "returns").equation(s)
        yield "b", _baseline(s)
    if not s.only_distils:
        yield "A", _advantage(s)
    yield "w", _ratio(s)
    if not s.only_distils:
        yield "S", surrogate(s)
        yield "c", correction(s)
    yield "D", taught(s)
    yield "C", "(A − mean A)·(ℓ − mean ℓ), means over all tokens of the step" if s.reads_covariance else ""
    yield "K", divergence(s) if in_loss(s) else ""
    yield "L", _loss(s)
    yield "limit", f"mean over tokens of {kl_limit(s)}" if s.kl_placement == "constraint" else ""
    yield "β", _controller(s)
    yield "η", _entropy_controller(s)
    yield "L_V", _value_loss(s)
    yield "counts", _kept(s)


def symbols(s: Settings, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The arguments of a surrogate as symbols, with their `values` by name if given."""
    known = values or {}
    new, old = name("ℓ", known.get("logprobs")), name("ℓ_old", known.get("old_logprobs"))
    low, high = s.clip_range
    return {
        "ratio": name("w", known.get("ratio")), "advantages": name("A", known.get("advantages")), "logprobs": new,
        "old_logprobs": old, "ref_logprobs": name("ℓ_ref", known.get("ref_logprobs")), "log_ratio": new - old,
        "mask": name("mask", known.get("mask")), "epsilon": low, "epsilon_high": high,
        "log_correction": name("log c", known.get("log_correction")) if s.correction_row.compute is not None else 0.0,
    }  # fmt: skip


_ADVANTAGE = {
    "outcomes": name("R"), "group": name("group"), "lengths": name("n"), "returns": name("G"), "baseline": name("b"),
    "raw": name("G") - name("b"), "values": name("V"), "token_rewards": name("r"), "mask": name("mask"),
}  # fmt: skip


def used(s: Settings) -> tuple[str, ...]:
    """The arguments that the surrogate takes."""
    compute = row(s, "surrogate").compute
    return () if compute is None else argument_names(compute)


def _traced(chosen: Choice, quantities: Mapping[str, Any], s: Settings) -> str:
    """The computation of a choice as an equation; if no equation can hold it, its description or its name."""
    with contextlib.suppress(ValueError):  # OwnError included: the function uses what has no symbol
        found = call_choice(chosen.compute, Symbols, quantities, s)
        if isinstance(found, Expression):
            return equation_of(found)
    return chosen.about or f"what {visible(chosen.name)} computes"


def in_loss(s: Settings) -> bool:
    """Whether a KL term is part of the loss."""
    return s.kl_placement == "loss" and s.beta > 0


def other_loss_terms(s: Settings) -> tuple[str, ...]:
    """The other terms of the policy's loss, which also act on clipped tokens and on tokens without advantage."""
    acting = (("the KL term", in_loss(s)), ("the entropy bonus", s.entropy_in_loss),
              ("the teacher's term", s.distils_in_loss))  # fmt: skip
    return tuple(name for name, acts in acting if acts)


def _sampling(s: Settings) -> Iterator[str]:
    if s.dynamic_sampling:
        yield "groups whose rewards are all equal are replaced"
    if s.retokenize_turns:
        yield "tokens are those of each turn's text, tokenized again"
    if s.old_logprobs_of == "sampler":
        yield "ℓ_old and p_old are what the sampler reports"


def _stream(s: Settings) -> str:
    apart = s.multi_objective_aggregation == "normalize_then_sum"
    reward = "Σ over rewards of (R − group mean)/group std" if apart else _outcome(s)
    text = {
        "outcome": f"{reward} on the last token",
        "process": "each step's score at its end, the rest on the last token",
        "process_normalized": "each step's (score − group mean)/group std at its end",
        "shaping": f"R less its step scores on the last token + {factor(s.gamma, 'γ·')}Φ′ − Φ, Φ the scores so far",
    }[s.reward_stream]
    if s.overlong_buffer:
        text += f" − (share used of the last {s.overlong_buffer} tokens)"
    if s.kl_placement == "reward" and s.beta:
        text += f" − {compact(s.beta)}·{_bracketed(estimator(s)[1])} on every token"
    return text


def _outcome(s: Settings) -> str:
    """What an answer as a whole is paid: R, within its bounds, or the best of several answers."""
    paid = equation_of(Symbols.clip(name("R"), s.reward_clip_min, s.reward_clip_max))
    if s.pass_at_k == 1:
        return paid
    others = "1 other" if s.pass_at_k == 2 else f"{s.pass_at_k - 1} others"
    return f"mean of the best {paid} of this answer and {others}, over all choices,"


def _baseline(s: Settings) -> str:
    if s.returns == "vine":
        return f"V, mean reward of {s.vine_samples} answers continued from where the step or turn begins"
    return str(row(s, "baseline").equation)


def factor(value: float, symbol: str = "") -> str:
    """A factor in an equation: "0.9·", or its `symbol`; empty if it is 1."""
    return "" if value == 1 else symbol or f"{compact(value)}·"


def _advantage(s: Settings) -> str:
    return of_teacher(s, _of_rewards(s)) if s.distils and not s.distils_in_loss else _of_rewards(s)


def _of_rewards(s: Settings) -> str:
    own = row(s, "scale_rewards")
    if not is_own(s.scale_rewards) or own.compute is None:
        return str(own.equation)
    return _traced(own, _ADVANTAGE, s)


def _ratio(s: Settings) -> str:
    bounded = s.distils_in_loss and s.distillation_is_clip is not None
    if ("ratio" not in used(s) or s.only_distils) and not in_loss(s) and not bounded:
        return ""
    level = row(s, "importance_sampling_level")
    return equation_of(Symbols.exp(call_choice(level.compute, Symbols, symbols(s), s)))


def surrogate(s: Settings) -> str:
    """The objective of one token as a loss, the right side of S."""
    chosen = row(s, "surrogate")
    return str(chosen.about) if chosen.compute is None else _traced(chosen, symbols(s), s)


def correction(s: Settings) -> str:
    """The factor that corrects for a sampler that is not quite the policy, the right side of c; "" without one."""
    return "" if s.correction_row.compute is None else corrections.equation_of(s.correction_row, {}, s)


def factored(s: Settings) -> bool:
    """Whether c multiplies the surrogate; else there is none, or the surrogate has it inside."""
    return s.correction_row.compute is not None and not s.surrogate_row.takes_correction


def estimator(s: Settings) -> tuple[str, str]:
    """The KL estimator's short name, and its equation for one token.

    A KL in the reward is that of p_old: it is computed before the update, and its gradient is not taken.
    """
    to_old, policy = s.kl_anchor == "old", "p_old" if s.kl_placement == "reward" else "p"
    if s.kl_estimator == "full":
        return "KL", "Σᵥ p_old·log(p_old/p)" if to_old else f"Σᵥ {policy}·log({policy}/p_ref)"
    x = name("log(p/p_old)" if to_old else f"log(p_ref/{policy})")
    return s.kl_estimator, equation_of(call_choice(row(s, "kl_estimator").compute, Symbols, {"log_ratio": x}, s))


def kl_limit(s: Settings) -> str:
    """TRPO's constraint."""
    return f"Σᵥ p_old·log(p_old/p) ≤ {compact(s.max_kl)}"


def corrected(s: Settings) -> bool:
    """Whether the KL term is multiplied by the ratio, which corrects its gradient on an older policy's answers."""
    return s.use_bias_correction_kl and s.kl_anchor == "ref" and s.kl_estimator != "full"


def divergence(s: Settings) -> str:
    """The trained KL of one token, the right side of K."""
    _, meaning = estimator(s)
    meaning = f"w·{_bracketed(meaning)}" if corrected(s) else meaning
    if s.kl_cov_ratio == 1:
        return meaning
    return f"{meaning} for the {_percent(s.kl_cov_ratio)} of tokens with the largest C, else 0"


def _percent(part: float) -> str:
    return f"{compact(100 * part)} %"


def _bracketed(text: str) -> str:
    return f"({text})" if " − " in text else text


def _loss(s: Settings) -> str:
    beta = compact(s.beta) if s.kl_ctrl == "fixed" else "β"
    inner = inside(s, beta, "c·S" if factored(s) else "S")
    text = f"{row(s, 'aggregation').sum.format(longest=s.max_completion_length)} {inner}"
    if s.use_adaptive_entropy:
        text += " − η·mean entropy"
    elif s.entropy_coef:
        text += f" {'−' if s.entropy_coef > 0 else '+'} {compact(abs(s.entropy_coef))}·mean entropy"
    text = f"{text} + {compact(s.vf_coef)}·L_V" if s.baseline == "value" else text
    return text + balanced(s)


def inside(s: Settings, beta: str, surrogate: str = "S") -> str:
    """What the loss of one token consists of, before its weight: "(S + 0.1·K)"."""
    parts = [surrogate]
    if s.distils_in_loss:
        share = s.distillation_weight
        parts = ["D"] if s.only_distils else [f"{compact(1 - share)}·{surrogate}", f"{compact(share)}·D"]
    if in_loss(s):
        parts.append("K" if beta == "1" else f"{beta}·K")
    return f"({' + '.join(parts)})" if len(parts) > 1 else parts[0]


def _controller(s: Settings) -> str:
    match s.kl_ctrl:
        case "fixed":
            return ""
        case "ziegler":
            change = f"1 + clip(KL/{compact(s.target_kl)} − 1, ±0.2)·N/{s.kl_horizon}"
            return f"β·({change}) after each update, from {compact(s.beta)}"
        case "ppo":
            low, high = compact(s.target_kl / 1.5, 3), compact(s.target_kl * 1.5, 3)
            return f"β/2 after an update with KL < {low}, 2β with KL > {high}, from {compact(s.beta)}"


def _entropy_controller(s: Settings) -> str:
    if not s.use_adaptive_entropy:
        return ""
    step, target = compact(s.entropy_coef_delta), compact(s.entropy_target)
    bounds = f"{compact(s.entropy_coef_min)} … {compact(s.entropy_coef_max)}"
    return (
        f"η + {step} after a step with entropy ≤ {target}, else η − {step}, within {bounds}, from "
        f"{compact(s.entropy_coef)}; 0 in L unless the last step had entropy ≤ {target}"
    )


def _reference(s: Settings) -> str:
    if not s.sync_ref_model:
        return ""
    own = factor(1 - s.ref_model_mixup_alpha)
    mixed = f"{factor(s.ref_model_mixup_alpha)}θ" + (f" + {own}θ_ref" if s.ref_model_mixup_alpha < 1 else "")
    return f"{mixed} after every {s.ref_model_sync_steps} optimizer steps, θ the policy's weights"


def _value_loss(s: Settings) -> str:
    if s.baseline != "value":
        return ""
    return f"½·mean max((V − G)², (V_old + clip(V − V_old, ±{compact(s.cliprange_value)}) − G)²)"


def _kept(s: Settings) -> str:
    """Which tokens' surrogates count; empty if all do."""
    rules = []
    if s.mask_truncated_completions:
        rules.append("answers that were not cut")
    if s.top_entropy_quantile < 1:
        rules.append(f"the {compact(100 * s.top_entropy_quantile)} % of tokens of highest entropy")
    if s.off_policy_mask_threshold is not None:
        apart = s.samples_apart or s.importance_sampling_mode != "none" or s.logprobs_mode == "processed_logprobs"
        sampler = "ℓ_sampler" if apart else "ℓ_old"
        rules.append(f"A ≥ 0 or mean({sampler} − ℓ) ≤ {compact(s.off_policy_mask_threshold)}")
    if s.clip_cov_ratio:
        few, between = _percent(s.clip_cov_ratio), f"{compact(s.clip_cov_lb)} < C < {compact(s.clip_cov_ub)}"
        rules.append(f"tokens outside a random {few}, drawn where {between}")
    if s.rollout_rs != "none":
        rules.append(corrections.equation_of(row(s, "rollout_rs"), {}, s))
    return "only " + "; ".join(rules) if rules else ""


def _steps(s: Settings) -> str:
    if s.surrogate_row.trust_region:
        return (
            f"1 per batch along (F + {compact(s.cg_damping)})⁻¹∇L, by {s.cg_iterations} iterations of conjugate "
            f"gradient; the longest of {s.line_search_steps} tries that keeps the limit and improves the surrogate"
        )
    passes, parts = s.num_iterations, s.num_minibatches
    if passes == parts == 1:
        return "1 per batch"
    return f"{passes * parts} per batch: {passes} × {parts} minibatch{'es' if parts > 1 else ''}"
