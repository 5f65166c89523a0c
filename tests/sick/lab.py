"""A small trainer that samples and learns with two models, for troubles that lie between a sampler and a trainer.

It trains the bundled model on sums by GRPO and writes through `rlplay.record`; each trouble overrides one method.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlplay.paths import POCKET_PATH
from rlplay.record import Recorder
from rlplay.tasks import load_task
from tests.sick.rewards import right


@dataclass
class Batch:
    """Answers to prompts, padded: the prompts' end and the answers' beginning meet at column `asked`."""

    ids: Tensor  # int64 [N, asked + L]
    real: Tensor  # bool, the same: no padding
    asked: int
    group: Tensor  # int64 [N]
    own: Tensor  # bool [N, L] written by the policy, not by an environment
    rows: list[dict[str, Any]]  # [G] the prompts' columns
    texts: list[str] = field(default_factory=list)  # [N]
    sampled: Tensor = field(default_factory=lambda: torch.zeros(0))  # [N, L] log-probs as the sampler says

    @property
    def answer(self) -> Tensor:
        """Which places of the answers hold a token: bool [N, L]."""
        return self.real[:, self.asked :]


class Lab:
    """One run. `settings` have TRL's names and are recorded; what they say is what is done, but for the trouble."""

    groups, size, length, steps = 6, 6, 12, 1
    lr, temperature, top_p, top_k = 3e-4, 1.0, 1.0, 0
    settings: dict[str, Any] = {}  # noqa: RUF012
    says_sampler = True  # records the sampler's log-probs
    beta = 0.0

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = torch.Generator().manual_seed(seed)
        self.seed = seed
        torch.manual_seed(seed)
        self.build()
        self.reference = copy.deepcopy(self.policy)
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), lr=self.lr, weight_decay=0.0)
        self.recorder = Recorder(folder)
        self.proof: dict[str, list[float]] = {}

    def build(self) -> None:
        """The policy, its tokenizer and its questions."""
        self.tokenizer: Any = AutoTokenizer.from_pretrained(POCKET_PATH)
        self.policy: Any = AutoModelForCausalLM.from_pretrained(POCKET_PATH, dtype=torch.float32)
        self.end, self.pad = self.tokenizer.eos_token_id, self.tokenizer.pad_token_id
        self.questions = [{"prompt": e.prompt, **e.columns} for e in load_task("arithmetic").train]

    # What a trouble overrides.

    def sampler(self, update: int) -> Any:
        """The model that samples in this update."""
        return self.policy

    def logits(self, model: Any, batch: Batch) -> Tensor:
        """Of each answer's tokens, float32 [N, L, V]."""
        out = model(input_ids=batch.ids, attention_mask=batch.real.long(), position_ids=_places(batch.real)).logits
        return out[:, batch.asked - 1 : -1].float() / self.temperature

    def reward(self, batch: Batch) -> dict[str, list[float]]:
        """By reward function."""
        completions = [[{"content": text}] for text in batch.texts]
        return {"right": right(completions, [batch.rows[g]["answer"] for g in batch.group.tolist()])}

    def advantages(self, rewards: Tensor) -> Tensor:
        """[N] of the rewards [N]."""
        of = rewards.view(-1, self.size)
        return ((of - of.mean(1, keepdim=True)) / (of.std(1, keepdim=True) + 1e-4)).flatten()

    def old(self, batch: Batch, scored: Tensor) -> Tensor:
        """The log-probs that the ratio divides by."""
        return scored

    def trained(self, batch: Batch) -> Tensor:
        """Which tokens are in the loss: bool [N, L]."""
        return batch.own & batch.answer

    def extra(self, update: int, batch: Batch, scored: Tensor) -> dict[str, float]:
        """Numbers of the update that prove the trouble."""
        return {}

    # The loop.

    def run(self, updates: int) -> dict[str, float]:
        """Train, record, and return the proof: the last value of each number."""
        own = {"algorithm": "grpo", "num_prompts": self.groups, "num_generations": self.size, "beta": self.beta,
               "max_completion_length": self.length, "learning_rate": self.lr, "temperature": self.temperature,
               "top_p": self.top_p, "top_k": self.top_k, "num_iterations": self.steps, "epsilon": 0.2,
               "scale_rewards": "group"}  # fmt: skip
        self.recorder.begin("a trainer of our own", own | self.settings, seed=self.seed, model="pocket",
                            parameters=sum(p.numel() for p in self.policy.parameters()), dtype="float32")  # fmt: skip
        for update in range(1, updates + 1):
            self.update(update)
        self.recorder.close()
        return {name: values[-1] for name, values in self.proof.items()} | {
            f"{name} at first": values[0] for name, values in self.proof.items()
        }

    def update(self, update: int) -> None:
        """Sample, score, learn and record."""
        batch = self.sample(self.sampler(update))
        with torch.no_grad():
            logits = self.logits(self.policy, batch)
            scored, spread = _picked(logits, batch), torch.distributions.Categorical(logits=logits).entropy()
            reference = _picked(self.logits(self.reference, batch), batch) if self.beta else None
        each = self.reward(batch)
        total = torch.tensor([*each.values()]).sum(0)
        advantages, old, into = self.advantages(total), self.old(batch, scored), self.trained(batch)
        self._write(update, batch, each, advantages, old, spread, reference)
        shared: dict[str, float] = {}
        for step in range(self.steps):
            shared = self._step(update, step, batch, advantages, old, into, reference)
        own = batch.own & batch.answer
        found = {"reward": float(total.mean()), "reward_std": float(total.std()), "entropy": float(spread[own].mean()),
                 "completions/mean_length": float(own.sum(1).float().mean()), "learning_rate": self.lr,
                 "frac_reward_zero_std": float((total.view(-1, self.size).std(1) == 0).float().mean()),
                 "completions/clipped_ratio": float(self._cut(batch).mean())}  # fmt: skip
        found |= {f"rewards/{name}/mean": float(np.mean(values)) for name, values in each.items()} | shared
        if reference is not None:
            found["kl"] = float((scored - reference)[own].mean())
        if self.says_sampler:  # as TRL logs it
            away = (scored - batch.sampled)[own].abs()
            found |= {"sampling/sampling_logp_difference/mean": float(away.mean()),
                      "sampling/sampling_logp_difference/max": float(away.max())}  # fmt: skip
        self.recorder.end(update, found, seconds=1.0)
        gap = (scored - batch.sampled)[own]
        own_proof = {"k3 to the sampler": float((gap.exp() - 1 - gap).mean())} | self.extra(update, batch, scored)
        for name, value in (found | own_proof).items():
            self.proof.setdefault(name, []).append(value)

    def _cut(self, batch: Batch) -> Any:
        last = batch.ids[torch.arange(len(batch.ids)), batch.asked + batch.answer.sum(1) - 1]
        return (last != self.end).numpy()

    def _step(
        self, update: int, step: int, batch: Batch, advantages: Tensor, old: Tensor, into: Tensor, ref: Tensor | None
    ) -> dict[str, float]:
        now = _picked(self.logits(self.policy, batch), batch)
        now.retain_grad()
        ratio, a = (now - old).exp(), advantages[:, None]
        loss = -torch.minimum(ratio * a, ratio.clamp(0.8, 1.2) * a)
        if ref is not None and self.beta:
            loss = loss + self.beta * ((ref - now).exp() - 1 - (ref - now))
        loss = (torch.where(into, loss, 0.0).sum(1) / into.sum(1).clamp(min=1)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
        keep, gradient = batch.answer, now.grad
        assert gradient is not None
        self.recorder.step(
            update, step, self.steps, rows=range(len(batch.ids)), logprobs=now.detach()[keep].numpy(),
            importance_ratio=ratio.detach()[keep].numpy(), dloss_dlogp=gradient[keep].numpy(),
            tokens=int(into.sum()), metrics={"loss": float(loss.detach()), "grad_norm": float(norm)},
        )  # fmt: skip
        self.optimizer.step()
        return {"loss": float(loss.detach()), "grad_norm": float(norm)}

    def _write(
        self, update: int, batch: Batch, rewards: dict[str, list[float]], advantages: Tensor, old: Tensor,
        entropy: Tensor, reference: Tensor | None,
    ) -> None:  # fmt: skip
        keep, asked = batch.answer, [self.prompt_ids(row) for row in batch.rows]
        ids = batch.ids[:, batch.asked :][keep].tolist()
        known = {} if reference is None else {"ref_logprobs": reference[keep].numpy()}
        if self.says_sampler:
            known["sampling_logprobs"] = batch.sampled[keep].numpy()
        self.recorder.rollouts(
            update,
            prompts=[self.heading(row) for row in batch.rows],
            columns=[{k: v for k, v in row.items() if k != "prompt"} for row in batch.rows],
            group=batch.group.numpy(), lengths=keep.sum(1).numpy(), texts=[self.word(i) for i in ids],
            token_ids=ids, mask=batch.own[keep].numpy(), rewards=rewards, temperature=self.temperature,
            prompt_ids=[i for each in asked for i in each], prompt_lengths=[len(each) for each in asked],
            prompt_texts=[self.word(i) for each in asked for i in each], truncated=self._cut(batch),
            advantages=advantages.numpy(), old_logprobs=old[keep].numpy(), entropy=entropy[keep].numpy(), **known,
        )  # fmt: skip

    def heading(self, row: dict[str, Any]) -> str:
        """The user's turn."""
        return str(row["prompt"][-1]["content"])

    def word(self, token: int) -> str:
        """A token's text."""
        return str(self.tokenizer.decode([token]))

    def prompt_ids(self, row: dict[str, Any]) -> list[int]:
        """A prompt as the model reads it."""
        text = self.tokenizer.apply_chat_template(row["prompt"], tokenize=False, add_generation_prompt=True)
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def filtered(self, logits: Tensor) -> Tensor:
        """The sampler's logits [N, V] after top-p and top-k."""
        if self.top_k:
            least = logits.topk(self.top_k).values[:, -1:]
            logits = logits.where(logits >= least, -torch.inf)
        if self.top_p < 1:
            order = logits.sort(descending=True)
            before = order.values.softmax(-1).cumsum(-1) - order.values.softmax(-1)
            kept = torch.zeros_like(before, dtype=torch.bool).scatter(1, order.indices, before < self.top_p)
            logits = logits.where(kept, -torch.inf)
        return logits

    @torch.no_grad()
    def sample(self, model: Any) -> Batch:
        """Answers of `model`, token by token, with what it says of their log-probs."""
        chosen = torch.randperm(len(self.questions), generator=self.rng)[: self.groups].tolist()
        rows = [self.questions[i] for i in chosen]
        group = torch.arange(self.groups).repeat_interleave(self.size)
        asked = [self.prompt_ids(row) for row in rows]
        wide = max(map(len, asked))
        ids = torch.tensor([[self.pad] * (wide - len(a)) + a for a in asked])[group]
        real = torch.tensor([[False] * (wide - len(a)) + [True] * len(a) for a in asked])[group]
        going, said = torch.ones(len(ids), dtype=torch.bool), []
        for _ in range(self.length):
            found = model(input_ids=ids, attention_mask=real.long(), position_ids=_places(real)).logits[:, -1].float()
            spread = self.filtered(found / self.temperature).log_softmax(-1)
            token = self.draw(spread)
            said.append(spread.gather(1, token[:, None]).squeeze(1))
            ids = torch.cat([ids, token.where(going, self.pad)[:, None]], 1)
            real = torch.cat([real, going[:, None]], 1)
            going = going & (token != self.end)
            if not going.any():
                break
        batch = Batch(ids, real, wide, group, real[:, wide:].clone(), rows, sampled=torch.stack(said, 1))
        batch.texts = [self.tokenizer.decode(i[m], skip_special_tokens=True) for i, m in
                       zip(ids[:, wide:], batch.answer, strict=True)]  # fmt: skip
        return batch

    def draw(self, spread: Tensor) -> Tensor:
        """A token of each row of log-probabilities; where there are none, token 0, as engines do."""
        broken = spread.isnan().any(1)
        chances = spread.exp().where(~broken[:, None], 1.0)
        return torch.multinomial(chances, 1, generator=self.rng).squeeze(1).where(~broken, 0)


def _places(real: Tensor) -> Tensor:
    return (real.long().cumsum(1) - 1).clamp(min=0)


def _picked(logits: Tensor, batch: Batch) -> Tensor:
    """Log-probs of the tokens [N, L]; 0 where there is none."""
    found = logits.log_softmax(-1).gather(2, batch.ids[:, batch.asked :, None]).squeeze(2)
    return found.where(batch.answer, 0.0)


warnings.filterwarnings("ignore", message=".*torch_dtype.*")
