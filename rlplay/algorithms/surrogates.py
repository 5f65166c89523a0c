"""The surrogates: the objective of one token as a loss to minimise. A row at the end for each.

A function names its arguments after settings and after quantities of the tokens [..., L]: `ratio` is the importance
weight w at the level of the settings, `advantages` A, `logprobs` ℓ under the trained policy, `old_logprobs` under the
one that sampled, `ref_logprobs` under the reference, `log_ratio` ℓ − ℓ_old, `log_correction` that of the factor that
corrects for the sampler, and `mask`. See `arrays.py` for `xp`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlplay.algorithms import dppo
from rlplay.algorithms.choice import Choice, Chosen
from rlplay.trace.numbers import compact

SMALLEST, LARGEST = -18.420680743952367, 20.0
"""log 1e-8 and 20, the bounds of log W in VESPO, as in TRL."""


def logp(xp: Any, logprobs: Any, advantages: Any) -> Any:  # noqa: ARG001
    """The plain policy gradient (Williams 1992)."""
    return -advantages * logprobs


def ratio(xp: Any, ratio: Any, advantages: Any) -> Any:  # noqa: ARG001
    """Without a bound (Kakade and Langford 2002; PPO with a KL penalty, arXiv:1707.06347, equation 8)."""
    return -ratio * advantages


def ppo(xp: Any, ratio: Any, advantages: Any, epsilon: float, epsilon_high: float, delta: float | None) -> Any:
    """PPO-clip (Schulman et al. 2017, arXiv:1707.06347, equation 7).

    `delta` also bounds the first w, which matters if A < 0 (dual clip, Ye et al. 2020, arXiv:1912.09729;
    TRL's `delta`, verl's `clip_ratio_c`).
    """
    clipped = xp.clip(ratio, 1 - epsilon, 1 + epsilon_high)
    return -xp.minimum(xp.clip(ratio, high=delta) * advantages, clipped * advantages)


def ppo_clip_state(
    xp: Any, ratio: Any, advantages: Any, epsilon: float, epsilon_high: float, delta: float | None
) -> Any:
    """Where `ppo` has a gradient of exactly 0: +1 (A > 0, w > 1 + ε_high), −1 (A < 0, w < 1 − ε), +2 (A < 0, w > δ)."""
    high = (advantages > 0) & (ratio > 1 + epsilon_high)
    low = (advantages < 0) & (ratio < 1 - epsilon)
    state = xp.where(high, 1.0, xp.where(low, -1.0, 0.0))
    return state if delta is None else xp.where((advantages < 0) & (ratio > delta), 2.0, state)


def cispo(xp: Any, logprobs: Any, ratio: Any, advantages: Any, epsilon_high: float) -> Any:
    """Bounds the weight but keeps every gradient (MiniMax 2025, arXiv:2506.13585)."""
    return -xp.stop_gradient(xp.clip(ratio, high=epsilon_high)) * advantages * logprobs


def sapo(xp: Any, ratio: Any, advantages: Any, sapo_temperature_pos: float, sapo_temperature_neg: float) -> Any:
    """A soft clip, whose temperature depends on the sign of A (Gao et al. 2025, arXiv:2511.20347)."""
    tau = xp.let("τ", xp.where(advantages > 0, sapo_temperature_pos, sapo_temperature_neg))
    return -4 / tau * xp.sigmoid(tau * (ratio - 1)) * advantages


def dro(xp: Any, logprobs: Any, log_ratio: Any, advantages: Any, dro_beta: float) -> Any:  # noqa: ARG001
    """Without a bound, but with a square of the log-ratio that pulls back (Richemond et al. 2024, arXiv:2405.19107).

    Per token and with an advantage, as verl's `dro`.
    """
    return dro_beta / 2 * log_ratio**2 - advantages * logprobs


def vespo(
    xp: Any, logprobs: Any, log_ratio: Any, log_correction: Any, mask: Any, advantages: Any,
    vespo_k_pos: float, vespo_k_neg: float, vespo_lambda_pos: float, vespo_lambda_neg: float,
) -> Any:  # fmt: skip
    """A weight of the whole answer's ratio W that falls to 0 for small and large W (arXiv:2602.10693).

    As in TRL, token log-ratios are bounded to ±20 and log W to [log 1e-8, 20]; with a factor that corrects for the
    sampler, W is its ratio, too.
    """
    total = xp.sum_over(xp.clip(log_ratio, -20.0, 20.0) + log_correction, mask)
    log_w = xp.let("log W", xp.clip(total, SMALLEST, LARGEST))
    k = xp.let("k", xp.where(advantages >= 0, vespo_k_pos, vespo_k_neg))
    decay = xp.let("λ", xp.where(advantages >= 0, vespo_lambda_pos, vespo_lambda_neg))
    phi = xp.let("φ", xp.exp(decay + k * log_w - decay * xp.exp(log_w)))
    return -xp.stop_gradient(phi) * advantages * logprobs


def _ppo_bound(s: Chosen, state: int) -> tuple[str, str, str]:
    """For a clipped token: its sign and condition, whether it is more or less likely than the bound, and the bound."""
    low, high = s.clip_range
    return {
        1: (f"▲ clipped: A > 0 and w > {compact(1 + high)}", "more", compact(1 + high)),
        -1: (f"▼ clipped: A < 0 and w < {compact(1 - low)}", "less", compact(1 - low)),
        2: (f"▲ clipped: A < 0 and w > δ = {compact(s.delta or 0)}", "more", compact(s.delta or 0)),
    }[state]


def _ppo_clipped(s: Chosen, state: int) -> tuple[str, str]:
    head, moved, bound = _ppo_bound(s, state)
    whose = "It is" if s.importance_sampling_level == "token" else "Its answer, by w, is"
    return head, (
        f"{whose} already {moved} than {bound} times as likely as when it was sampled. There min takes {bound}·A, a "
        "constant: moving it further gains nothing"
    )


def _ppo_unclipped(s: Chosen, advantage: float, w: float) -> list[str]:
    low, high = s.clip_range
    if not 1 - low <= w <= 1 + high:
        return ["outside the band, on the side that is not clipped: it still pulls"] if advantage else []
    always = "; with one optimizer step per batch w is always 1" if s.ratio_stays_one else ""
    return [f"not clipped: w is inside {compact(1 - low)} … {compact(1 + high)}{always}"]


def _cispo_unclipped(s: Chosen, advantage: float, w: float) -> list[str]:
    cap = s.clip_range[1]
    capped = advantage and w > cap
    return [f"w is above the cap: it pulls with the weight {compact(cap)}, not {w:.2f}"] if capped else []


@dataclass(frozen=True)
class Surrogate(Choice):
    """A surrogate. `gradient_zero` computes where a bound makes its gradient zero, as `ppo_clip_state` does.

    For such a token, `clipped` gives the bound that it has reached and what that means, from settings and state. For
    other tokens, `unclipped` gives further sentences from advantage and ratio. `instead` says what a surrogate without
    a bound has in place of it. `fused` holds TRL's `loss_type`s by aggregation. verl names a surrogate that
    `verl_names_level` by the ratio's level, if the level has a name there.

    `band`: it clips the ratio at 1 − ε and 1 + ε_high. `cap`: ε_high is the largest ratio. `has_ratio`: it reads the
    ratio. `always`: it may have a gradient where A is 0, too. `trust_region`: max_kl bounds its one step along the
    natural gradient, as in TRPO. `takes_correction`: the
    factor that corrects for the sampler is part of its own weight.
    """

    gradient_zero: Callable[..., Any] | None = None
    clipped: Callable[[Chosen, int], tuple[str, str]] | None = None
    unclipped: Callable[[Chosen, float, float], list[str]] = lambda _settings, _advantage, _w: []
    instead: str = ""
    fused: Mapping[str, str] = field(default_factory=dict)
    verl_names_level: bool = False
    band: bool = False
    cap: bool = False
    has_ratio: bool = True
    trust_region: bool = False
    always: bool = False
    takes_correction: bool = False


SURROGATES: dict[str, Surrogate] = {
    row.name: row
    for row in (
        Surrogate(
            "logp", logp, "plain policy gradient.", "Williams 1992, doi:10.1007/BF00992696", verl="gpg",
            has_ratio=False, instead="the plain policy gradient (surrogate=logp) has no ratio to clip",
        ),
        Surrogate(
            "ratio", ratio, "importance-weighted.", "Kakade and Langford 2002", verl_names_level=True,
            instead="surrogate=ratio uses the ratio unclipped, however large",
        ),
        Surrogate(
            "ppo", ppo, "clipped once it has moved far enough the way A pulls.", "arXiv:1707.06347", verl="vanilla",
            verl_names_level=True, band=True,
            gradient_zero=ppo_clip_state, clipped=_ppo_clipped, unclipped=_ppo_unclipped,
            fused={
                "seq_mean_token_mean": "grpo", "token_mean": "dapo", "constant": "dr_grpo",
                "seq_mean_token_sum": "luspo",
            },
        ),
        Surrogate(
            "dppo_tv", dppo.dppo_tv, "0 once its probability has moved more than ε the way A pulls.",
            "arXiv:2602.04879", verl="dppo_tv", gradient_zero=dppo.dppo_tv_state, clipped=dppo.tv_clipped,
            unclipped=dppo.unclipped,
        ),
        Surrogate(
            "dppo_kl", dppo.dppo_kl, "the same by the KL of the token against all others.", "arXiv:2602.04879",
            verl="dppo_kl", gradient_zero=dppo.dppo_kl_state, clipped=dppo.kl_clipped, unclipped=dppo.unclipped,
        ),
        Surrogate(
            "tv_mask", dppo.tv_mask, "0 once its probability has moved more than ε either way.",
            "prime-rl's ipo", gradient_zero=dppo.tv_mask_state, clipped=dppo.mask_clipped,
        ),
        Surrogate(
            "trpo", ratio, "the same as ratio, within a KL limit.", "arXiv:1502.05477",
            trust_region=True, instead="surrogate=trpo limits the update by max_kl, not by a clip",
        ),
        Surrogate(
            "cispo", cispo, "log-probability, weighted by the capped ratio.", "arXiv:2506.13585", verl="cispo",
            cap=True, unclipped=_cispo_unclipped, fused={"token_mean": "cispo"},
            instead="surrogate=cispo caps a token's weight, but the token still pulls",
        ),
        Surrogate(
            "sapo", sapo, "a soft clip.", "arXiv:2511.20347", verl="sapo", fused={"seq_mean_token_mean": "sapo"},
            instead="surrogate=sapo damps the pull gradually",
        ),
        Surrogate(
            "dro", dro, "log-probability, less the square of the log-ratio.", "arXiv:2405.19107", verl="dro",
            instead="surrogate=dro pulls a token back by the square of its log-ratio", always=True,
        ),
        Surrogate(
            "vespo", vespo, "log-probability, weighted by the answer's ratio.", "arXiv:2602.10693",
            fused={"token_mean": "vespo"},
            instead="surrogate=vespo weights answers by a smooth function of their ratio", takes_correction=True,
        ),
    )
}  # fmt: skip
OWN_SURROGATE = Surrogate("", None, "a function of the user's.")
"""What is known of a user's function without reading its file."""
