"""Really trained runs of TRL whose sampler is another than the policy, and what health says of them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

import torch
from datasets import Dataset

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from trl import GRPOConfig, GRPOTrainer

from rlplay.record.trl import RlplayCallback
from tests.record import tiny
from tests.record.test_trl_broken import first_finding

FIRST = "The sampler does not have the new weights"


class Sampler:
    """In vLLM's place: the policy's weights or its `first` ones, at some temperature, from the nucleus `top_p`."""

    def __init__(self, trainer: Any, first: Any = None, temperature: float = 1.0, top_p: float = 1.0) -> None:
        self._trainer, self._first, self._temperature, self._top_p = trainer, first, temperature, top_p

    def sync_weights(self) -> None:
        pass

    @torch.no_grad()
    def generate(self, prompts: list[list[int]], num_generations: int, **_: Any) -> tuple[Any, ...]:
        model = self._first or self._trainer.accelerator.unwrap_model(self._trainer.model)
        answers, all_logprobs = [], []
        for prompt in prompts:
            ids, logprobs = list(prompt), []
            while len(logprobs) < 10 and (not logprobs or ids[-1] != tiny.END):
                scores = (model(input_ids=torch.tensor([ids])).logits[0, -1] / self._temperature).log_softmax(-1)
                order = scores.argsort(descending=True)
                before = scores[order].exp().cumsum(-1) - scores[order].exp()
                scores = scores.index_fill(0, order[before >= self._top_p], -torch.inf).log_softmax(-1)
                ids.append(int(torch.multinomial(scores.exp(), 1)))
                logprobs.append([float(scores[ids[-1]])])
            answers.append(ids[len(prompt) :])
            all_logprobs.append(logprobs)
        return None, answers, all_logprobs, None


def trained(folder: Path, how: dict[str, Any], own: bool = False, **options: Any) -> Path:
    """A recording of ten updates. The sampler is `own`: a method of the model, whose log-probabilities nobody sees."""
    args = GRPOConfig(
        output_dir=str(folder), report_to=[], use_cpu=True, bf16=False, save_strategy="no", disable_tqdm=True, seed=3,
        per_device_train_batch_size=16, num_generations=8, max_completion_length=10, max_steps=10, logging_steps=1,
        learning_rate=0.005, lr_scheduler_type="constant", vllm_importance_sampling_mode="token_truncate", **options,
    )  # fmt: skip
    trainer: Any = GRPOTrainer(
        model=tiny.model(folder / "model"), args=args, train_dataset=Dataset.from_list(tiny.PROMPTS),
        reward_funcs=[tiny.digits], processing_class=tiny.tokenizer(), callbacks=[RlplayCallback(folder / "rec")],
    )  # fmt: skip
    if how.pop("first", False):
        how["first"] = tiny.model(folder / "model")
    if own:
        trainer.generation_config.temperature = how.get("temperature", 1.0)
        if "first" in how:
            trainer.model.generate = how["first"].generate
    else:
        trainer.use_vllm = args.use_vllm = True
        trainer.vllm_generation, trainer._last_loaded_step = Sampler(trainer, **how), -1
    trainer.train()
    return folder / "rec"


@pytest.mark.parametrize(
    ("how", "own", "options", "title"),
    [
        ({"first": True}, False, {}, FIRST),
        ({"first": True}, False, {"beta": 0.01}, FIRST),
        ({"first": True}, True, {"beta": 0.01}, FIRST),
        ({"temperature": 2.0}, True, {}, "The sampler is hotter than the policy"),
        ({"temperature": 0.5}, True, {}, "The sampler is colder than the policy"),
        ({"top_p": 0.8}, False, {}, "The ratio counts tokens that the sampler cannot say"),
    ],
)
def test_a_sampler_that_is_not_the_policy(
    how: dict[str, Any], own: bool, options: dict[str, Any], title: str, tmp_path: Path
) -> None:
    finding, _ = first_finding(trained(tmp_path, dict(how), own, **options))
    assert finding is not None
    assert finding.title == title


def test_a_sampler_that_is_the_policy(tmp_path: Path) -> None:
    finding, _ = first_finding(trained(tmp_path, {}))
    assert finding is None or finding.name not in ("sampler", "left out", "mismatch")
