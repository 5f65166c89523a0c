"""LoRA through peft: small matrices beside frozen weights are all that is trained.

Hu et al. 2021, arXiv:2106.09685. The policy is the base with its adapters; the reference is the same base without
them, or with those it had when it became the reference, so that there is no second copy of the base.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.func import functional_call

from rlplay.engine.weights import Weights
from rlplay.trace.text import brief_path, quote, visible

ADAPTER_CONFIG = "adapter_config.json"
"""The file that makes a folder one of adapters."""
ADAPTER_WEIGHTS = "adapter_model.safetensors"


DRAWN = ("lora_A", "lora_embedding_B")
"""What the names of the matrices hold that are drawn at random; the other of each pair is 0 at first."""


def _peft() -> Any:
    try:
        import peft
    except ImportError as error:
        raise ValueError("LoRA needs peft, which is not installed: pip install 'rlplay[peft]'") from error
    return peft


def with_adapters(policy: Any, weights: Weights) -> Any:
    """`policy` with fresh adapters, which change nothing yet: one matrix of each pair is 0.

    The model stays in eval mode, so there is no dropout. Raises ValueError, one line, without peft or where the model
    has no such layers.
    """
    peft, wanted = _peft(), list(weights.lora_target_modules)
    config = peft.LoraConfig(
        r=weights.lora_r, lora_alpha=weights.lora_alpha, lora_dropout=0.0, task_type="CAUSAL_LM",
        target_modules=wanted[0] if wanted == ["all-linear"] else wanted or None,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(weights.seed)
        try:
            return peft.get_peft_model(policy, config)
        except ValueError as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"LoRA: {reason[:200]}; set lora_target_modules, e.g. all-linear") from error


def base_of(folder: Path) -> str:
    """The name or folder of the model that the adapters in `folder` belong to.

    Raises ValueError, one line, without peft, and if rlplay cannot use the adapters.
    """
    _peft()
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise ValueError(
            f"model {brief_path(str(folder))}: these adapters have no {ADAPTER_WEIGHTS}; pickled weights are not read"
        )
    with _refused(folder):
        config = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
        kind, base = str(config["peft_type"]), config["base_model_name_or_path"]
        if kind != "LORA":
            raise ValueError(f"peft_type is {quote(visible(kind))}; rlplay trains LORA")
        if not isinstance(base, str) or (Path(base).expanduser() / ADAPTER_CONFIG).is_file():
            raise ValueError("base_model_name_or_path names no model; merge the adapters into their base first")
        _check_size(config)
    return base


def _check_size(config: dict[str, Any]) -> None:
    """Raises ValueError if adapters ask for more memory or time than those that anybody trains."""
    ranks = [config.get("r", 8), *(config.get("rank_pattern") or {}).values()]
    if not all(isinstance(rank, int) and 0 < rank <= _LARGEST_RANK for rank in ranks):
        raise ValueError(f"r is from 1 to {_LARGEST_RANK}")
    if config.get("layer_replication"):
        raise ValueError("layer_replication is not supported; merge the adapters into their base first")
    named = [config.get(name) or () for name in _NAMES]
    words = [word for names in named for word in ([names] if isinstance(names, str) else names)]
    if len(words) > _MOST_NAMES or not all(_PLAIN_NAME.fullmatch(str(word)) for word in words):
        raise ValueError(f"{', '.join(_NAMES)} take up to {_MOST_NAMES} names of modules, without patterns")


_LARGEST_RANK, _MOST_NAMES = 4096, 10_000
_PLAIN_NAME = re.compile(r"[\w.-]{1,200}")
_NAMES = (
    "target_modules", "exclude_modules", "modules_to_save", "rank_pattern", "alpha_pattern", "layers_pattern",
    "target_parameters",
)  # fmt: skip
"""What peft compares with the names of all modules, mostly as regular expressions."""


def put_adapters(policy: Any, folder: Path) -> None:
    """Give the adapters of `policy` the weights of those in `folder`. Raises ValueError, one line, if they differ."""
    with _refused(folder):
        tensors = load_file(folder / ADAPTER_WEIGHTS)
        found = _peft().set_peft_model_state_dict(policy, tensors)
        if strange := list(found.unexpected_keys):
            raise ValueError(f"the model has no {strange[0]}")


def with_saved_adapters(policy: Any, folder: Path) -> Any:
    """`policy` with the adapters in `folder`, which go on being trained.

    Raises ValueError, one line, if they do not fit.
    """
    with _refused(folder):
        return _peft().PeftModel.from_pretrained(policy, str(folder), is_trainable=True)


@contextmanager
def _refused(folder: Path) -> Iterator[None]:
    """Whatever these adapters of somebody else's make libraries raise becomes a ValueError, one line."""
    try:
        yield
    except Exception as error:
        missing = f"no {error}" if isinstance(error, KeyError) else str(error)
        reason = visible(" ".join(missing.split()))[:200] or type(error).__name__
        raise ValueError(f"model {brief_path(str(folder))}: its adapters cannot be used: {reason}") from error


def has_adapters(policy: Any) -> bool:
    """Whether the model is one of peft's."""
    return hasattr(policy, "disable_adapter")


def saving_options(policy: Any) -> dict[str, Any]:
    """What `save_pretrained` is to be given: peft would otherwise ask the hub for the base's configuration."""
    return {"save_embedding_layers": False} if has_adapters(policy) else {}


def _changes(name: str, parameter: Tensor) -> bool:
    """Whether a trained parameter changes what the base computes: the drawn matrix does not where the other is 0."""
    return not any(drawn in name for drawn in DRAWN) and bool(parameter.any())


class FrozenAdapters:
    """The policy with the `adapters` that it had when this was made, by the names of its parameters.

    They are `off` as long as they change nothing, as fresh ones do. All else is the policy's: its frozen base, its
    configuration.
    """

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        trained = ((name, p) for name, p in policy.named_parameters() if p.requires_grad)
        self.adapters: dict[str, Tensor] = {name: p.detach().clone() for name, p in trained}
        self.off = not any(_changes(name, p) for name, p in self.adapters.items())

    def beside(self, policy: Any) -> FrozenAdapters:
        """These adapters in a copy of the policy, which they have nothing in common with."""
        found = FrozenAdapters(policy)
        found.adapters = {name: adapter.clone() for name, adapter in self.adapters.items()}
        found.off = self.off
        return found

    def __call__(self, **given: Any) -> Any:
        if not self.off:
            return functional_call(self.policy, self.adapters, kwargs=given)
        with self.policy.disable_adapter():
            return self.policy(**given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Those of the policy, with these adapters in place of its own."""
        for name, parameter in self.policy.named_parameters():
            yield name, self.adapters.get(name, parameter)
