"""What a GPU computes in: bfloat16 or float32 weights, TF32 products, kernels that add in one order.

A CPU has none of these choices: there `auto` is float32, products are float32, and a seed gives the same bits anyway.
"""

from __future__ import annotations

import os
import warnings

import torch

from rlplay.engine import ranks
from rlplay.scenario.dtypes import AUTO, BFLOAT16, FLOAT32, always_float32
from rlplay.scenario.schema import Scenario

_WORKSPACE = ":4096:8"
"""Of cuBLAS, 8 buffers of 4 MiB: the larger of the two sizes with which its products are deterministic."""


def chosen_dtype(scenario: Scenario, device: torch.device) -> tuple[str, str]:
    """The dtype of the model's weights on `device`, and a remark where the device decided it, else "".

    `auto` is bfloat16 where a GPU has instructions for it. The bundled model and worlds stay in float32: they are so
    small that launching kernels takes the time, and their lessons say that ratios begin at 1.
    """
    if scenario.dtype != AUTO:
        return scenario.dtype, ""
    if always_float32(scenario) or device.type != "cuda":
        return FLOAT32, ""
    if _computes_in_bfloat16(device):
        return BFLOAT16, (
            f"dtype auto chose bfloat16 weights, for which {device} has instructions; --dtype float32 keeps all bits"
        )
    return FLOAT32, f"dtype auto chose float32 weights: {device} has no instructions for bfloat16"


def _computes_in_bfloat16(device: torch.device) -> bool:
    """Whether the GPU has instructions for bfloat16; of several processes, whether every GPU of this machine has."""
    several = range(torch.cuda.device_count()) if ranks.count() > 1 else [device]
    for each in several:
        with torch.cuda.device(each):
            if not torch.cuda.is_bf16_supported(including_emulation=False):
                return False
    return True


def compute_as(scenario: Scenario, device: torch.device) -> None:
    """Let this process compute as the scenario says; it comes before the first product on a GPU.

    With `tf32`, products of float32 numbers round their factors to 10 bits after the point. With `full_determinism`,
    kernels whose sums depend on the order in which threads end are replaced by slower ones where torch has others.
    """
    on_gpu = device.type == "cuda"
    tf32, deterministic = scenario.tf32 and on_gpu, scenario.full_determinism and on_gpu
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", _WORKSPACE)
        # The cumulative sum that chooses tokens has no deterministic kernel by torch's list, so an error would end
        # every run. `rlplay doctor --gpu` measures whether two runs are equal.
        warnings.filterwarnings("ignore", message=".*does not have a deterministic implementation")
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined] # nobody reads it
    torch.use_deterministic_algorithms(deterministic, warn_only=True)
