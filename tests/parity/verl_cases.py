"""rlplay's functions against what `record_verl.py` recorded of verl's, on the recorded inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlplay.algorithms import returns, scales
from rlplay.algorithms.aggregation import token_weights
from rlplay.algorithms.apply import resolve
from rlplay.algorithms.corrections import REJECTIONS
from rlplay.algorithms.credit import advantages
from rlplay.algorithms.divergences import ESTIMATORS, ziegler
from rlplay.algorithms.settings import Settings
from rlplay.engine.batch import Batch
from rlplay.engine.correct import correct, correction_metrics
from rlplay.engine.covariance import chosen
from rlplay.engine.credit_phase import on_last
from rlplay.engine.objective import Inputs, objective, value_loss
from rlplay.engine.tensors import Tensors, group_statistics
from rlplay.engine.token_shares import Share
from tests.parity import record_verl as verl
from tests.parity.case import Case, Pairs
from tests.parity.fixed import fixed
from tests.parity.ours import SIZES, as_batch


@cache
def recorded() -> dict[str, Any]:
    """The recorded arrays by name."""
    with np.load(verl.RECORDED) as file:
        return dict(file)


def given(dtype: torch.dtype, seed: int) -> Any:
    """The recorded inputs of `seed`, in `dtype`."""
    tensors = {name: torch.from_numpy(recorded()[f"{seed}/{name}"]) for name in verl.INPUTS}
    return SimpleNamespace(**{n: t.to(dtype) if t.is_floating_point() else t for n, t in tensors.items()})


def gae(b: Any) -> dict[str, Tensor]:
    """verl whitens inside; its mask has holes where an environment spoke."""
    raw = returns.gae(Tensors(b.stream), b.stream, b.values, b.holes, verl.GAMMA, verl.LAM)
    return {"gae/advantages": scales.whiten(Tensors(raw), raw, b.holes), "gae/returns": (raw + b.values) * b.holes}


def credited(name: str, b: Any, **settings: Any) -> dict[str, Tensor]:
    """Advantages of outcome rewards, as the settings combine the axes."""
    knobs = resolve(SIZES | {"kl_placement": "none"} | settings)
    _, _, result = advantages(Tensors(b.stream), outcome(b), b.group, b.mask, knobs, greedy=b.greedy)
    return {f"{name}/advantages": result}


def outcome(b: Any) -> Tensor:
    """The summed reward of each completion on its last token."""
    return on_last(b.rewards.sum(-1), b.mask.sum(-1) - 1, b.mask.shape[1])


def grpo(b: Any) -> dict[str, Tensor]:
    """verl adds 1e-6 to a group's standard deviation where TRL and rlplay add 1e-4."""
    _, std = group_statistics(b.rewards.sum(-1), b.group, int(b.group.max()) + 1)
    found = credited("grpo", b, algorithm="grpo")["grpo/advantages"]
    return {"grpo/advantages": found * ((std + scales.STD_EPSILON) / (std + 1e-6))[b.group, None]}


def passk(b: Any) -> dict[str, Tensor]:
    """The same difference of what is added."""
    _, std = group_statistics(b.rewards.sum(-1), b.group, int(b.group.max()) + 1)
    found = credited("grpo_passk", b, algorithm="grpo-passk")["grpo_passk/advantages"]
    return {"grpo_passk/advantages": found * ((std + scales.STD_EPSILON) / (std + 1e-6))[b.group, None]}


def reinforce_plus_plus(b: Any) -> dict[str, Tensor]:
    """Discounted rewards to go, whitened over the tokens."""
    to_go = returns.to_go(Tensors(b.stream), b.stream, b.holes, verl.GAMMA)
    return {
        "reinforce_plus_plus/returns": to_go,
        "reinforce_plus_plus/advantages": scales.whiten(Tensors(to_go), to_go, b.holes),
    }


def estimator(name: str, theirs: str, b: Any) -> dict[str, Tensor]:
    """Value and gradient of a KL estimator."""
    now = b.logprobs.clone().requires_grad_()
    value = ESTIMATORS[name].compute(Tensors, b.ref - now)
    (gradient,) = torch.autograd.grad(value.sum(), now)
    return {f"{theirs}/kl": value.detach(), f"{theirs}/gradient": gradient}


def values(b: Any) -> dict[str, Tensor]:
    """The clipped value loss."""
    now = b.values_now.clone().requires_grad_()
    loss = value_loss(now, b.values, b.stream, b.holes, verl.CLIP_VALUE, int(b.holes.sum()))
    (gradient,) = torch.autograd.grad(loss, now)
    return {"value/loss": loss.detach(), "value/gradient": gradient}


def policy(name: str, of_sequence: bool, b: Any, **settings: Any) -> dict[str, Tensor]:
    """Loss, gradient and clip shares of a surrogate with verl's clip bounds."""
    bounds = {"epsilon": verl.CLIPS["clip_ratio_low"], "epsilon_high": verl.CLIPS["clip_ratio_high"]}
    knobs = resolve(SIZES | {"kl_placement": "none"} | bounds | settings)
    now = b.logprobs.clone().requires_grad_()
    advantage = b.rewards.sum(-1, keepdim=True).expand_as(b.stream) if of_sequence else b.stream
    weights = token_weights(
        Tensors, knobs.aggregation, b.mask, b.mask.to(torch.get_default_dtype()), knobs.max_completion_length
    )
    terms = objective(Inputs(now, b.old, b.ref, advantage), weights, knobs, 0.0)
    (gradient,) = torch.autograd.grad(terms.loss, now)
    found = {f"{name}/loss": terms.loss.detach(), f"{name}/dloss_dlogp": gradient}
    if knobs.surrogate == "ppo":
        state = terms.clip_state[b.mask]
        found[f"{name}/actor/pg_clipfrac"] = (state.abs() == 1).double().mean()
        found[f"{name}/actor/pg_clipfrac_lower"] = (state == 2).double().mean()
    return found


def divergence_clip(name: str, b: Any, delta: float | None = None) -> dict[str, Tensor]:
    """DPPO. verl's loss is Σ ∂L/∂ℓ·ℓ, because it holds the weight of ℓ constant; rlplay's is that of the ratio."""
    bounds = {"epsilon": verl.DPPO["clip_ratio_low"], "epsilon_high": verl.DPPO["clip_ratio_high"]}
    knobs = resolve(SIZES | bounds | {"algorithm": "dppo", "surrogate": name, "delta": delta})
    now = b.logprobs.clone().requires_grad_()
    weights = token_weights(
        Tensors, knobs.aggregation, b.mask, b.mask.to(torch.get_default_dtype()), knobs.max_completion_length
    )
    terms = objective(Inputs(now, b.old.clamp(max=verl.MOST), None, b.stream), weights, knobs, 0.0)
    (gradient,) = torch.autograd.grad(terms.loss, now)
    name = name if delta is None else f"{name} capped"
    return {
        f"{name}/loss": (gradient * b.logprobs).sum(),
        f"{name}/dloss_dlogp": gradient,
        f"{name}/actor/pg_clipfrac": (terms.clip_state[b.mask] != 0).double().mean(),
    }


def corrected(name: str, b: Any) -> dict[str, Tensor]:
    """The factor of a sampler; verl's is 0 where nothing was sampled."""
    level, _, outside = name.partition(" ")
    low, _, high = str(verl.FACTORS[name]).rpartition("_")
    word = f"{level}_{'mask' if outside else 'truncate'}"
    s = resolve({"importance_sampling_mode": word, "importance_sampling_clip_max": high,
                 "importance_sampling_clip_min": low or None})  # fmt: skip
    batch = _with_sampler(b, s)
    assert batch.correction is not None
    return {f"rollout_is {name}/factor": batch.correction * b.holes}


def rejected(option: str, b: Any) -> dict[str, Tensor]:
    """What stays in the loss, and the share that does not."""
    s = resolve({"rollout_rs": option, "rollout_rs_threshold": verl.REJECTED[option[-2:]]})
    batch = _with_sampler(b, s)
    assert batch.rejected is not None
    share = correction_metrics(batch, s)["sampling/importance_sampling_ratio/masked"]
    return {
        f"rollout_rs {option}/kept": (b.holes & ~batch.rejected).to(torch.get_default_dtype()),
        f"rollout_rs {option}/masked_fraction": torch.tensor(share, dtype=torch.double),
    }


def _with_sampler(b: Any, settings: Settings) -> Batch:
    plain = fixed(b.old.dtype, 0)
    found = as_batch(replace(plain, old=b.old, sampling=b.sampling, mask=b.mask, environment=b.mask & ~b.holes))
    correct(found, settings)
    return found


def by_covariance(name: str, b: Any, **settings: Any) -> dict[str, Tensor]:
    """Loss and gradient of a surrogate whose tokens are chosen by their covariance."""
    bounds = {"epsilon": verl.CLIPS["clip_ratio_low"], "epsilon_high": verl.CLIPS["clip_ratio_high"]}
    knobs, now = resolve(SIZES | bounds | settings), b.logprobs.clone().requires_grad_()
    counted = b.mask.to(torch.get_default_dtype())
    weights = token_weights(Tensors, knobs.aggregation, b.mask, counted, knobs.max_completion_length)
    batch: Any = SimpleNamespace(on_host=lambda *_: (b.stream, b.old))
    every = Share(weights, torch.ones_like(weights), weights, torch.zeros_like(b.mask, dtype=torch.uint8), 0)
    share = chosen(batch, torch.arange(len(b.group)), every, knobs, b.logprobs, (0, 1, 0))
    terms = objective(Inputs(now, b.old, None, b.stream), weights, knobs, knobs.beta, share.keep, held=share.held)
    (gradient,) = torch.autograd.grad(terms.loss, now)
    found = {f"{name}/loss": terms.loss.detach(), f"{name}/dloss_dlogp": gradient}
    if knobs.clip_cov_ratio:
        found[f"{name}/actor/pg_clipfrac"] = (share.left_out[b.mask] > 0).double().mean()
    return found


def in_reward(b: Any) -> dict[str, Tensor]:
    """Token rewards less β·k1."""
    return {"kl in reward/stream": b.stream - verl.KL_COEF * ESTIMATORS["k1"].compute(Tensors, b.ref - b.old)}


def adaptive(_: Any) -> dict[str, Tensor]:
    """Ziegler's controller over a few updates."""
    beta, found = verl.KL_COEF, []
    for divergence in verl.KLS:
        found.append(beta := ziegler(beta, divergence, verl.TARGET_KL, verl.COMPLETIONS, verl.HORIZON))
    return {"adaptive kl/coefficient": torch.tensor(found, dtype=torch.double)}


Own = Callable[[Any], dict[str, Tensor]]

ROWS: list[tuple[str, Own]] = [
    ("GAE, whitened", gae),
    ("REINFORCE++ advantages", reinforce_plus_plus),
    ("REINFORCE++ baseline advantages",
     partial(credited, "reinforce_plus_plus_baseline", algorithm="grpo", scale_rewards="whiten")),
    ("GRPO advantages", grpo),
    ("GRPO advantages for pass@k", passk),
    ("Dr. GRPO advantages", partial(credited, "dr_grpo", algorithm="dr-grpo")),
    ("RLOO advantages", partial(credited, "rloo", algorithm="rloo", kl_placement="none")),
    ("RLOO advantages", partial(credited, "rloo_vectorized", algorithm="rloo", kl_placement="none")),
    ("OPO advantages", partial(credited, "opo", algorithm="opo")),
    ("ReMax advantages", partial(credited, "remax", algorithm="remax")),
    *(
        ("PPO with dual clip", partial(policy, f"ppo {mode}", False, algorithm="grpo", delta=verl.CLIPS["clip_ratio_c"],
                                       aggregation=aggregation))
        for mode, aggregation in (("token-mean", "token_mean"), ("seq-mean-token-sum", "seq_mean_token_sum"),
                                  ("seq-mean-token-sum-norm", "constant"),
                                  ("seq-mean-token-mean", "seq_mean_token_mean"))
    ),
    ("GSPO", partial(policy, "gspo", True, algorithm="gspo")),
    ("GMPO", partial(policy, "gmpo", True, algorithm="gmpo")),
    ("SAPO", partial(policy, "sapo", False, algorithm="sapo")),
    *((f"DPPO ({name})", partial(divergence_clip, name)) for name in ("dppo_tv", "dppo_kl")),
    *((f"DPPO ({name}) with a largest weight", partial(divergence_clip, name, delta=verl.CAP))
      for name in ("dppo_tv", "dppo_kl")),
    *(("Sampler corrected (rollout_is)", partial(corrected, name)) for name in verl.FACTORS),
    *(("Sampler rejected (rollout_rs)", partial(rejected, name)) for name in REJECTIONS if name != "none"),
    # verl clamps the weight to [1 − ε, 1 + ε_high]; recorded with ε = 1 only the upper bound is left, TRL's cap.
    ("CISPO", partial(policy, "cispo", False, algorithm="cispo", epsilon_high=1 + verl.CLIPS["clip_ratio_high"])),
    ("Clip-Cov, all tokens between its bounds", partial(by_covariance, "clip_cov", algorithm="clip-cov",
                                                       **verl.CLIP_COV)),
    ("KL-Cov", partial(by_covariance, "kl_cov", algorithm="kl-cov", kl_cov_ratio=verl.KL_COV["kl_cov_ratio"],
                       beta=verl.KL_COV["ppo_kl_coef"])),
    ("DRO", partial(policy, "dro", False, surrogate="dro", dro_beta=verl.DRO_BETA, aggregation="token_mean")),
    ("Policy gradient (gpg)", partial(policy, "gpg", False, algorithm="a2c")),
    ("Value loss, clipped", values),
    ("KL k1 (kl)", partial(estimator, "k1", "kl")),
    ("KL k2 (mse)", partial(estimator, "k2", "mse")),
    ("KL k3 (low_var_kl)", partial(estimator, "k3", "low_var_kl")),
    ("KL in the reward", in_reward),
    ("KL coefficient, adaptive", adaptive),
]  # fmt: skip


def compare(own: Own, dtype: torch.dtype, seed: int) -> Pairs:
    """Every number that rlplay's side gives, and the recorded one of the same name."""
    prefix = f"{seed}/{dtype}/".replace("torch.", "")
    return {
        name: (value, torch.from_numpy(recorded()[prefix + name])) for name, value in own(given(dtype, seed)).items()
    }


def cases() -> list[Case]:
    """All of them."""
    against = f"verl {recorded()['version']}"
    return [Case(row, against, f"verl {i} {row}", partial(compare, own)) for i, (row, own) in enumerate(ROWS)]
