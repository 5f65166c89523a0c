"""Which dtype `auto` is where, and that TF32 and deterministic kernels are on where a run asks for them on a GPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import msgspec
import pytest
import torch

from rlplay.engine import arithmetic
from rlplay.engine.arithmetic import chosen_dtype, compute_as
from rlplay.engine.driver import Driver
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Scenario
from rlplay.trace.records import AnyRecord, Notice, Started
from tests.engine.test_update import only

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
OWN = Scenario(name="own", title="", question="", model="some/model")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    compute_as(OWN, CPU)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Says which GPUs there are: for each, whether it has instructions for bfloat16."""

    def there(*able: bool) -> None:
        current = [0]

        def enter(device: int | torch.device) -> Any:
            current[0] = device if isinstance(device, int) else device.index or 0
            return nullcontext()

        monkeypatch.setattr(torch.cuda, "device", enter)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(able))
        monkeypatch.setattr(
            torch.cuda, "is_bf16_supported", lambda including_emulation: not including_emulation and able[current[0]]
        )

    return there


def test_auto_is_bfloat16_on_a_gpu_that_computes_in_it(gpus: Callable[..., None]) -> None:
    gpus(True, False)
    assert chosen_dtype(OWN, GPU) == (
        "bfloat16", "dtype auto chose bfloat16 weights, for which cuda:0 has instructions; --dtype float32 keeps all "
        "bits"
    )  # fmt: skip
    old = chosen_dtype(OWN, torch.device("cuda", 1))
    assert old == ("float32", "dtype auto chose float32 weights: cuda:1 has no instructions for bfloat16")
    assert chosen_dtype(OWN, CPU) == chosen_dtype(OWN, torch.device("mps")) == ("float32", "")


def test_the_bundled_model_and_worlds_stay_in_float32(gpus: Callable[..., None]) -> None:
    gpus(True)
    for name in ("learn-to-think", "cliff"):
        assert chosen_dtype(load(name), GPU) == ("float32", "")
    asked = msgspec.structs.replace(load("learn-to-think"), dtype="bfloat16")
    assert chosen_dtype(asked, GPU) == ("bfloat16", "")


def test_processes_with_other_gpus_agree(gpus: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(True, False)
    monkeypatch.setattr(arithmetic.ranks, "count", lambda: 2)
    assert chosen_dtype(OWN, GPU)[0] == "float32"


def test_a_run_records_what_auto_was(start: Callable[..., tuple[Driver, list[AnyRecord]]]) -> None:
    driver, records = start()
    driver.close()
    (started,) = only(Started, records)
    assert started.dtype == "float32"
    assert msgspec.yaml.decode(started.scenario_text)["dtype"] == "float32"  # on a GPU, a resumed run stays so
    assert not [notice for notice in only(Notice, records) if "dtype" in notice.text]


def test_tf32_and_determinism_are_asked_of_a_gpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    both = msgspec.structs.replace(OWN, tf32=True, full_determinism=True)
    for scenario, device, on in ((both, GPU, True), (OWN, GPU, False), (both, GPU, True), (both, CPU, False)):
        compute_as(scenario, device)
        assert torch.backends.cuda.matmul.allow_tf32 is on
        assert torch.backends.cudnn.allow_tf32 is on
        assert torch.are_deterministic_algorithms_enabled() is on
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
