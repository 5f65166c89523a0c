"""How the weights of a model are kept, and which of them are trained: what a run decides before it loads a model."""

from __future__ import annotations

from dataclasses import dataclass

from rlplay.scenario.dtypes import AUTO, FLOAT32
from rlplay.scenario.schema import Scenario


@dataclass(frozen=True)
class Weights:
    """`dtype` of the weights, and LoRA's rank, scale and layers where `use_peft`; names and defaults are TRL's.

    No `lora_target_modules` means peft's own choice for the model. `seed` draws the adapters' first matrices.
    """

    dtype: str = FLOAT32
    use_peft: bool = False
    lora_r: int = 16
    lora_alpha: int = 32
    lora_target_modules: tuple[str, ...] = ()
    seed: int = 0

    @classmethod
    def of(cls, scenario: Scenario) -> Weights:
        """Those that a scenario asks for; `auto` is float32 here, until a device decides."""
        s, dtype = scenario, FLOAT32 if scenario.dtype == AUTO else scenario.dtype
        return cls(dtype, s.use_peft, s.lora_r, s.lora_alpha, tuple(s.lora_target_modules), s.seed)
