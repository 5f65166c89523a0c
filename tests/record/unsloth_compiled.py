"""GRPOTrainer as unsloth 2026.10.9 compiles it: TRL's source under another name in a module of its own.

`models/rl.py` writes `class _UnslothGRPOTrainer` with TRL's source and `class UnslothGRPOTrainer` below it, and puts
the latter in the place of `trl.GRPOTrainer`. `models/rl_replacements.py` changes methods: the pass of the loss gives no
log-probabilities (`compute_efficient`), and the loss computes its own.
"""

from __future__ import annotations

import inspect
import sys
import types
from typing import Any

import torch
import trl

MODULE = "UnslothGRPOTrainer"


def compiled() -> type:
    """The class that unsloth puts in the place of `trl.GRPOTrainer`; the caller has to put it there."""
    original = trl.GRPOTrainer
    source = inspect.getsource(original).replace("class GRPOTrainer", "class _UnslothGRPOTrainer", 1)
    module = types.ModuleType(MODULE)
    vars(module).update(vars(inspect.getmodule(original)) | {"__name__": MODULE})
    exec(compile(source, f"<{MODULE}>", "exec"), vars(module))
    base: Any = module._UnslothGRPOTrainer  # type: ignore[attr-defined]
    score = base._get_per_token_logps_and_entropies

    def sparing(self: Any, *values: Any, compute_efficient: bool = False, **options: Any) -> Any:
        return (None, None) if compute_efficient else score(self, *values, **options)

    def own_loss(
        self: Any, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
        mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
        keep = inputs["completion_ids"].size(1)
        assert self._get_per_token_logps_and_entropies(model, ids, mask, keep, compute_efficient=True) == (None, None)
        logits = model(input_ids=ids, attention_mask=mask).logits[:, -keep - 1 : -1]
        logps = logits.log_softmax(-1).gather(-1, inputs["completion_ids"].unsqueeze(-1)).squeeze(-1)
        inside = inputs["completion_mask"]
        self._metrics["train"].setdefault("completion_length", []).append(float(inside.sum(1).float().mean()))
        return -(logps * inputs["advantages"].unsqueeze(1) * inside).sum() / inside.sum()

    base._get_per_token_logps_and_entropies, base.compute_loss = sparing, own_loss
    made = type("UnslothGRPOTrainer", (base,), {"__module__": MODULE})
    sys.modules[MODULE] = module
    return made
