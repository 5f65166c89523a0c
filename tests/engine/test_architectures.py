"""Every kind of model gets the numbers that each of its sequences has alone, or is refused in a line."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from rlplay.engine import passes
from rlplay.engine.agreement import settle
from rlplay.engine.driver import Driver
from rlplay.engine.model import Kind, load_model
from rlplay.trace.records import AnyRecord, Credited, Finished, Notice, Sampled, Stepped
from tests.engine import architectures

ALIKE = {
    "qwen2": "llama", "qwen3": "llama", "phi3": "llama", "olmo2": "llama", "granite": "llama", "cohere": "llama",
    "gpt-j": "gpt2", "gpt-neox": "gpt2", "mistral": "gemma2", "gemma3": "gemma2", "opt-350m": "opt",
    "granite-hybrid": "bamba", "falcon-h1": "bamba", "gpt-oss": "gemma2",
}  # fmt: skip
"""Architectures that read positions and keep caches as another one does, which is tried each time."""
CAUSAL = [
    pytest.param(name, marks=[pytest.mark.slow] * (name in ALIKE)) for name in architectures.SIZES if name != "bert"
]
ANSWERS: dict[str, Any] = {"num_prompts": 4, "num_generations": 4, "num_minibatches": 2, "max_completion_length": 12}
TOLERANCE = 1e-4

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


@torch.no_grad()
def _alone(model: Any, sampled: Sampled, rows: list[int]) -> Tensor:
    """The log-probabilities of the completions `rows`, each after its prompt in a pass of its own, laid end to end."""
    found = []
    for row in rows:
        group = sampled.group[row]
        prompt = sampled.prompt_ids[sampled.prompt_offsets[group] : sampled.prompt_offsets[group + 1]].tolist()
        ids = sampled.token_ids[sampled.offsets[row] : sampled.offsets[row + 1]].tolist()
        logits = model(input_ids=torch.tensor([prompt + ids]), use_cache=False).logits[0, len(prompt) - 1 : -1]
        found.append(logits.log_softmax(-1).gather(-1, torch.tensor(ids)[:, None])[:, 0])
    return torch.cat(found)


def _weights(model: Any) -> dict[str, Tensor]:
    return {name: weight.clone() for name, weight in model.state_dict().items()}


def _of(records: list[AnyRecord], kind: type[Any], update: int = 2) -> list[Any]:
    return [record for record in records if isinstance(record, kind) and record.update == update]


@pytest.mark.parametrize("architecture", CAUSAL)
def test_recorded_logprobs_are_those_of_each_sequence_alone(start: Start, architecture: str) -> None:
    driver, records = start(architecture=architecture, **ANSWERS)
    lm = driver._state.lm
    reference = _weights(lm.reference)
    driver.advance("update", 1, lambda: False)
    weights = [_weights(lm.policy)]
    for _ in range(2):
        driver.advance("step", 1, lambda: False)
        weights.append(_weights(lm.policy))
    driver.advance("update", 1, lambda: False)
    driver.close()

    sampled = next(record for record in _of(records, Sampled) if record.done)
    rows = list(range(len(sampled.group)))
    assert len(rows) == 16
    assert len(set((sampled.offsets[1:] - sampled.offsets[:-1]).tolist())) > 4
    compared = {
        "old": (sampled.old_logprobs, weights[0], rows),
        "reference": (_of(records, Credited)[0].ref_logprobs, reference, rows),
        "new": (_of(records, Finished)[0].logprobs, weights[-1], rows),
    }
    for step, record in enumerate(_of(records, Stepped)):
        compared[f"step {step}"] = record.logprobs, weights[step], record.rows.tolist()
    assert len(compared) == 5
    for name, (recorded, then, places) in compared.items():
        lm.policy.load_state_dict(then)
        apart = (torch.as_tensor(recorded) - _alone(lm.policy, sampled, places)).abs().max()
        assert float(apart) < TOLERANCE, name
    assert not [record for record in records if isinstance(record, Notice) and record.level == "warning"]


@pytest.mark.parametrize("architecture", ["opt-350m", "mamba2", "rwkv", "lfm2"])
def test_a_value_head_fits_any_model(start: Start, architecture: str) -> None:
    driver, records = start(architecture=architecture, algorithm="ppo")
    driver.advance("update", 2, lambda: False)
    driver.close()
    assert _of(records, Credited)[0].values.any()


@pytest.mark.parametrize(
    ("architecture", "kind", "cached"),
    [("llama", "tree", True), ("mistral", "tree", True), ("gemma2", "shared", True), ("bloom", "shared", True),
     ("lfm2", "shared", True), ("bamba", "padded", True), ("zamba2", "padded", False),
     ("mamba2", "padded", True), ("rwkv", "by_length", False), ("recurrent-gemma", "by_length", False)],
)  # fmt: skip
def test_each_model_is_run_in_the_fastest_way_that_is_right(
    micro_models: Callable[[str], Path], architecture: str, kind: str, cached: bool
) -> None:
    lm = load_model(str(micro_models(architecture)), torch.device("cpu"))
    settle(lm)
    assert (lm.passes, lm.cached) == (kind, cached)
    assert bool(lm.remarks) != cached


def test_an_encoder_is_refused_in_a_line(start: Start) -> None:
    with pytest.raises(ValueError, match=r"^BertLMHeadModel is not causal: what follows a token changes") as refused:
        start(architecture="bert")
    assert "\n" not in str(refused.value)


def test_caches_whose_states_are_shared_between_chunks_are_found_out(
    micro_models: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    lm = load_model(str(micro_models("lfm2")), torch.device("cpu"))
    monkeypatch.setattr(passes, "_copied", copy.copy)
    settle(lm)
    assert lm.passes == "padded"


class Forgetful:
    """A model that goes wrong once a sequence is long: later tokens are then read without the beginning.

    It does so where it is `wrong`: while "sampling", in all that has a "cache", or in a "tree".
    """

    LIMIT = 20

    def __init__(self, model: Any, wrong: str) -> None:
        self.model, self.wrong = model, wrong

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Forgetful:
        return Forgetful(copy.deepcopy(self.model, memo), self.wrong)

    def __call__(self, input_ids: Tensor, attention_mask: Tensor, use_cache: bool, **given: Any) -> Any:
        forgets = given.get("past_key_values") is not None and attention_mask.shape[1] > self.LIMIT
        if self.wrong == "tree" and attention_mask.dim() == 4:
            input_ids = input_ids.where(given["position_ids"] < self.LIMIT, 0)
        elif forgets and (self.wrong == "cache" or (self.wrong == "sampling" and input_ids.shape[1] == 1)):
            attention_mask = attention_mask.clone()
            attention_mask[:, : self.LIMIT // 2] = 0
        return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=use_cache, **given)


@pytest.mark.parametrize(
    ("wrong", "before", "passes", "cached"),
    [("sampling", "shared", "shared", False), ("cache", "shared", "padded", False), ("tree", "tree", "shared", True)],
)
def test_a_model_that_goes_wrong_in_long_answers_is_run_another_way_from_there_on(
    start: Start, wrong: str, before: Kind, passes: str, cached: bool
) -> None:
    driver, records = start(num_generations=8, max_completion_length=40)
    lm = driver._state.lm
    exact = copy.deepcopy(lm.policy)
    lm.policy, lm.passes = Forgetful(lm.policy, wrong), before
    driver.advance("phase", 1, lambda: False)
    driver.close()
    sampled = _of(records, Sampled, 1)[-1]
    assert sampled.offsets[-1] > 0
    assert (sampled.offsets[1:] - sampled.offsets[:-1]).max() > Forgetful.LIMIT
    found = torch.as_tensor(sampled.old_logprobs)
    assert float((found - _alone(exact, sampled, list(range(len(sampled.group))))).abs().max()) < TOLERANCE
    assert (lm.passes, lm.cached) == (passes, cached)
    (notice,) = [record for record in records if isinstance(record, Notice)]
    assert notice.text.startswith("Forgetful has no cache that sampling can rely on") != cached
