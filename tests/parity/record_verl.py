"""Records what verl's functions make of the fixed batches, in `verl.npz` beside this file.

    python -m tests.parity.record_verl [WHEEL]

WHEEL is a file `verl-*.whl`; without it `pip download verl --no-deps` fetches the version named below. Only
`verl/trainer/ppo/core_algos.py`, `rollout_corr_helper.py` beside it and the two files of tensor functions that they use
are run, straight from the wheel; what else they import (Ray, tensordict, OmegaConf and more, none of it used by these
functions) is replaced by empty modules.
The inputs are recorded too, so that the tests need neither verl nor the same random numbers.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.parity.fixed import Fixed, fixed, sampled_elsewhere

VERSION = "0.9.1"
RECORDED = Path(__file__).with_name("verl.npz")
SEEDS = (0, 1, 2)
INPUTS = ("logprobs", "old", "ref", "stream", "values", "values_now", "greedy", "mask", "holes", "group", "rewards",
          "sampling")  # fmt: skip
AGGREGATIONS = ("token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean")
GAMMA, LAM, CLIP_VALUE = 0.95, 0.8, 0.2
CLIPS = {"clip_ratio": 0.2, "clip_ratio_low": 0.2, "clip_ratio_high": 0.28, "clip_ratio_c": 1.5,
         "tau_pos": 1.0, "tau_neg": 1.05}  # fmt: skip
CLIP_COV = {"clip_cov_ratio": 1.0, "clip_cov_lb": 0.2, "clip_cov_ub": 0.8}
"""With a share of 1 every token between the bounds is chosen, and nothing is left to verl's random numbers."""
KL_COV = {"kl_cov_ratio": 0.1, "ppo_kl_coef": 0.7}
DRO_BETA = 0.6
DPPO = {"clip_ratio_low": 0.03, "clip_ratio_high": 0.02, "clip_ratio_c": 20.0}
CAP = 1.1
"""A clip_ratio_c of DPPO that bounds some ratios of the batch."""
MOST = -0.01
"""DPPO needs log-probabilities of probabilities; some of the batch are above 0."""
FACTORS = {"token": 1.3, "sequence": 1.3, "token icepop": "0.8_1.3", "sequence icepop": "0.8_1.3"}
"""verl's rollout_is_threshold, by rollout_is: an upper bound cuts, two bounds leave out."""
REJECTED = {"k1": 1.2, "k2": 0.04, "k3": 0.05}
"""verl's rollout_rs_threshold, by estimator."""
KL_COEF, TARGET_KL, HORIZON, COMPLETIONS, KLS = 0.2, 6.0, 10_000, 256, (2.0, 6.5, 30.0)


class Config(SimpleNamespace):
    """Stands for verl's ActorConfig and AlgoConfig."""

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or `default`."""
        return getattr(self, name, default)


class Algo(Config):
    """verl tells its two kinds of config apart by class."""


def load(wheel: Path) -> tuple[Any, Any]:
    """verl's `core_algos` and `rollout_corr_helper`, run from the wheel."""
    sources = zipfile.ZipFile(wheel)

    def run(name: str) -> ModuleType:
        module = ModuleType(name)
        path = name.replace(".", "/") + ".py"
        sys.modules[name] = module
        exec(compile(sources.read(path), path, "exec"), module.__dict__)
        return module

    with _stubs():
        _stub("verl.utils.device", get_device_name=lambda: "cpu", get_torch_device=None)
        tensors, groups = run("verl.utils.torch_functional"), run("verl.utils.groupwise")
        _stub("verl", utils=_stub("verl.utils", torch_functional=tensors, **_public(groups)))
        _stub("verl.protocol", DataProto=dict)
        _stub("verl.trainer.config.algorithm", RolloutCorrectionConfig=Config)
        _stub("verl.workers.config.actor", PolicyLossConfig=Config)
        return run("verl.trainer.ppo.core_algos"), run("verl.trainer.ppo.rollout_corr_helper")


def _public(module: ModuleType) -> dict[str, Any]:
    return {name: getattr(module, name) for name in module.__all__}


def _stub(name: str, **content: Any) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(content)
    sys.modules[name] = module
    return module


@contextmanager
def _stubs() -> Iterator[None]:
    before = dict(sys.modules)
    _stub("omegaconf", DictConfig=dict)
    _stub("tensordict", TensorDict=dict)
    _stub("verl.trainer.config", AlgoConfig=Algo)
    _stub("verl.workers.config", ActorConfig=Config)
    _stub("verl.utils.import_utils", deprecated=lambda _: lambda function: function)
    yield
    for name in set(sys.modules) - set(before):
        del sys.modules[name]
    sys.modules.update(before)


def record(core: Any, helper: Any, batch: Fixed) -> dict[str, Tensor]:
    """Every function's outputs on one batch, named function/output."""
    return _credit(core, batch) | _losses(core, batch) | _estimators(core, batch) | _corrections(helper, batch)


def _corrections(helper: Any, b: Fixed) -> dict[str, Tensor]:
    assert b.sampling is not None
    log_ratio, mask = b.old - b.sampling, b.holes.to(b.old.dtype)
    found: dict[str, Tensor] = {}
    for name, threshold in FACTORS.items():
        level = name.partition(" ")[0]
        factor, _ = helper.compute_rollout_correction_weights(log_ratio, mask, level, threshold)
        found[f"rollout_is {name}/factor"] = factor
    for option in sorted(helper.SUPPORTED_ROLLOUT_RS_OPTIONS):
        kept, metrics = helper.compute_rollout_rejection_mask(log_ratio, mask, option, REJECTED[option[-2:]])
        share = metrics["rollout_rs_masked_fraction"]
        found[f"rollout_rs {option}/kept"] = kept
        found[f"rollout_rs {option}/masked_fraction"] = torch.tensor(share, dtype=torch.double)
    return found


def _credit(core: Any, b: Fixed) -> dict[str, Tensor]:
    outcome = torch.zeros_like(b.stream)
    outcome[torch.arange(len(outcome)), b.lengths - 1] = b.rewards.sum(-1)
    mask, holes, index = b.mask.to(outcome.dtype), b.holes.to(outcome.dtype), b.group.numpy()
    config = Algo(gamma=GAMMA)
    whitened, returns = core.compute_gae_advantage_return(b.stream, b.values, holes, GAMMA, LAM)
    plus, to_go = core.compute_reinforce_plus_plus_outcome_advantage(b.stream, holes, config=config)
    grouped: dict[str, Callable[..., Any]] = {
        "grpo": core.compute_grpo_outcome_advantage,
        "rloo": core.compute_rloo_outcome_advantage,
        "rloo_vectorized": core.compute_rloo_vectorized_outcome_advantage,
        "opo": core.compute_opo_outcome_advantage,
        "reinforce_plus_plus_baseline": core.compute_reinforce_plus_plus_baseline_outcome_advantage,
    }
    found = {name: function(outcome.clone(), mask, index)[0] for name, function in grouped.items()}
    found["dr_grpo"] = grouped["grpo"](outcome.clone(), mask, index, norm_adv_by_std_in_grpo=False)[0]
    found["grpo_passk"] = core.compute_grpo_passk_outcome_advantage(outcome.clone(), mask, index, config=config)[0]
    found["remax"] = core.compute_remax_outcome_advantage(outcome, b.greedy, mask)[0]
    found["gae"], found["reinforce_plus_plus"] = whitened * holes, plus
    extra = {"gae/returns": returns * holes, "reinforce_plus_plus/returns": to_go}
    return {f"{name}/advantages": value for name, value in found.items()} | extra


def _losses(core: Any, b: Fixed) -> dict[str, Tensor]:
    mask = b.mask.to(b.old.dtype)
    found: dict[str, Tensor] = {}

    own = Config(**CLIP_COV, **KL_COV, dro_beta=DRO_BETA)

    def loss(name: str, policy_loss: str, advantages: Tensor, mode: str, old: Tensor = b.old, **changes: float) -> None:
        config = Config(**CLIPS | changes, global_batch_info={}, policy_loss=own)
        now = b.logprobs.clone().requires_grad_()
        value, metrics = core.get_policy_loss_fn(policy_loss)(old, now, advantages, mask, mode, config)
        (gradient,) = torch.autograd.grad(value, now)
        found.update({f"{name}/loss": value.detach(), f"{name}/dloss_dlogp": gradient})
        found.update({f"{name}/{key}": torch.tensor(number, dtype=torch.double) for key, number in metrics.items()})

    for mode in AGGREGATIONS:
        loss(f"ppo {mode}", "vanilla", b.stream, mode)
    of_sequence = b.rewards.sum(-1, keepdim=True).expand_as(b.stream)
    loss("gspo", "gspo", of_sequence, "seq-mean-token-mean")
    loss("gmpo", "geo_mean", of_sequence, "token-mean")
    loss("sapo", "sapo", b.stream, "seq-mean-token-mean")
    loss("gpg", "gpg", b.stream, "token-mean")
    loss("cispo", "cispo", b.stream, "token-mean", clip_ratio_low=1.0)
    for name in ("dppo_tv", "dppo_kl"):
        loss(name, name, b.stream, "token-mean", b.old.clamp(max=MOST), **DPPO)
        loss(f"{name} capped", name, b.stream, "token-mean", b.old.clamp(max=MOST), **DPPO | {"clip_ratio_c": CAP})
    loss("clip_cov", "clip_cov", b.stream, "token-mean")
    loss("kl_cov", "kl_cov", b.stream, "token-mean")
    loss("dro", "dro", b.stream, "token-mean")
    return found


def _estimators(core: Any, b: Fixed) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for name in ("kl", "mse", "low_var_kl"):
        now = b.logprobs.clone().requires_grad_()
        value = core.kl_penalty(now, b.ref, name)
        found[f"{name}/kl"] = value.detach()
        (found[f"{name}/gradient"],) = torch.autograd.grad(value.sum(), now)
    values = b.values_now.clone().requires_grad_()
    holes = b.holes.to(values.dtype)
    error, share = core.compute_value_loss(values, b.stream, b.values, holes, CLIP_VALUE)
    (gradient,) = torch.autograd.grad(error, values)
    found |= {"value/loss": error.detach(), "value/gradient": gradient, "value/clipfrac": share}
    found["kl in reward/stream"] = core.compute_rewards(b.stream, b.old, b.ref, KL_COEF)
    controller = core.AdaptiveKLController(KL_COEF, TARGET_KL, HORIZON)
    coefficients = []
    for kl in KLS:
        controller.update(kl, COMPLETIONS)
        coefficients.append(controller.value)
    found["adaptive kl/coefficient"] = torch.tensor(coefficients, dtype=torch.double)
    return found


def main(given: list[str]) -> None:
    """Load verl, run it, write the file."""
    with tempfile.TemporaryDirectory() as folder:
        if not given:
            command = ["pip", "download", f"verl=={VERSION}", "--no-deps", "--quiet", "--dest", folder]
            subprocess.run([sys.executable, "-m", *command], check=True)
        wheel = Path(given[0]) if given else next(Path(folder).glob("verl-*.whl"))
        core, helper = load(wheel)
    content: dict[str, Any] = {"version": wheel.name.split("-")[1], "seeds": np.array(SEEDS)}
    for seed in SEEDS:
        batch = sampled_elsewhere(fixed(torch.float32, seed), seed)
        content |= {f"{seed}/{name}": getattr(batch, name).numpy() for name in INPUTS}
        for dtype in (torch.float32, torch.float64):
            torch.set_default_dtype(dtype)
            outputs = record(core, helper, sampled_elsewhere(fixed(dtype, seed), seed))
            content |= {f"{seed}/{dtype}/{name}".replace("torch.", ""): t.numpy() for name, t in outputs.items()}
    torch.set_default_dtype(torch.float32)
    np.savez_compressed(RECORDED, **content)
    print(f"verl {content['version']}: {len(content)} arrays, {RECORDED.stat().st_size / 1000:.0f} kB in {RECORDED}")


if __name__ == "__main__":
    main(sys.argv[1:])
