"""Troubles between a sampler and a trainer, each really there: two policies, two precisions, two texts."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import MixtralConfig, MixtralForCausalLM

from tests.sick.lab import Batch, Lab


class Steep(Lab):
    """Learns fast, so that weights of different ages differ."""

    lr = 1e-3


class Pinned(Steep):
    """The sampler keeps the first weights: what was learned never reaches it."""

    def sampler(self, update: int) -> Any:
        return self.reference


class Late(Steep):
    """The sampler has the weights of eight updates ago, and the ratio divides by what it says."""

    lag, lr = 8, 2e-3

    def build(self) -> None:
        super().build()
        self.past: list[Any] = []

    def sampler(self, update: int) -> Any:
        self.past.append(copy.deepcopy(self.policy))
        return self.past[max(0, update - 1 - self.lag)]

    def old(self, batch: Batch, scored: Tensor) -> Tensor:
        return batch.sampled.where(batch.answer, 0.0)

    def extra(self, update: int, batch: Batch, scored: Tensor) -> dict[str, float]:
        ratio = (scored - self.old(batch, scored)).exp()[batch.answer]
        return {"largest ratio": float(ratio.max()), "smallest ratio": float(ratio.min())}


class Coarse(Lab):
    """The sampler's weights are rounded, each row with a scale of its own, as a quantised engine's."""

    levels = 1.8  # on either side of 0
    dtype = torch.float32

    def sampler(self, update: int) -> Any:
        model = copy.deepcopy(self.policy).to(self.dtype)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if weight.ndim == 2 and "embed" not in name:
                    scale = weight.abs().amax(1, keepdim=True) / self.levels
                    weight.copy_((weight / scale).round() * scale)
        return model


class Half(Coarse):
    """A healthy sampler in bfloat16: off by k3 of about 1e-3, and always by as much."""

    levels = 7.0
    dtype = torch.bfloat16


class Nucleus(Lab):
    """Samples from the likeliest tokens alone, whose log-probs the sampler says after the cut."""

    top_p = 0.7

    def extra(self, update: int, batch: Batch, scored: Tensor) -> dict[str, float]:
        gap = (batch.sampled - scored)[batch.answer]
        return {"share of tokens that the sampler calls likelier": float((gap > 1e-4).float().mean()),
                "share that it calls less likely": float((gap < -1e-4).float().mean())}  # fmt: skip


class Overflowing(Lab):
    """From update 4 on the sampler's activations overflow in fp16; the same function in fp32 is fine."""

    scale = 2.0**14

    def sampler(self, update: int) -> Any:
        model = copy.deepcopy(self.policy)
        if update >= 4:
            with torch.no_grad():
                for layer in model.model.layers:
                    layer.mlp.up_proj.weight.mul_(self.scale)
                    layer.mlp.down_proj.weight.div_(self.scale)
        return model.half()

    def extra(self, update: int, batch: Batch, scored: Tensor) -> dict[str, float]:
        first = batch.ids[:, batch.asked :][batch.answer]
        return {"share of token 0": float((first == 0).float().mean()),
                "NaN in the sampler": float(batch.sampled[batch.answer].isnan().float().mean()),
                "NaN in the trainer": float(scored.isnan().float().mean())}  # fmt: skip


class Experts(Lab):
    """A mixture of experts, pretrained on sums, whose sampler routes some tokens to other experts."""

    def build(self) -> None:
        super().build()
        config = MixtralConfig(
            vocab_size=len(self.tokenizer), hidden_size=96, intermediate_size=96, num_hidden_layers=3,
            num_attention_heads=4, num_key_value_heads=2, num_local_experts=8, num_experts_per_tok=1,
            initializer_range=0.12, pad_token_id=self.pad, eos_token_id=self.end,
        )  # fmt: skip
        self.policy = MixtralForCausalLM(config)
        self._pretrain()

    def _pretrain(self) -> None:
        optimizer = torch.optim.AdamW(self.policy.parameters(), lr=3e-3)
        asked = [self.prompt_ids(row) for row in self.questions]
        rows = [a + self.tokenizer(str(row["answer"] + shift), add_special_tokens=False)["input_ids"] + [self.end]
                for a, row in zip(asked, self.questions, strict=True) for shift in (0, 1)]  # fmt: skip
        for _ in range(250):
            chosen = [rows[i] for i in torch.randint(len(rows), (24,), generator=self.rng).tolist()]
            wide = max(map(len, chosen))
            ids = torch.tensor([r + [self.pad] * (wide - len(r)) for r in chosen])
            optimizer.zero_grad()
            self.policy(input_ids=ids, labels=ids.where(ids != self.pad, -100)).loss.backward()
            optimizer.step()

    def sampler(self, update: int) -> Any:
        """Its routers round: experts that are nearly equal change places."""
        model = copy.deepcopy(self.policy)
        noise = torch.Generator().manual_seed(update)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if name.endswith("gate.weight"):
                    weight.add_(0.3 * weight.std() * torch.randn(weight.shape, generator=noise))
        return model

    def extra(self, update: int, batch: Batch, scored: Tensor) -> dict[str, float]:
        gap = (batch.sampled - scored)[batch.answer].abs().numpy()
        return {"median gap": float(np.median(gap)), "99th gap": float(np.quantile(gap, 0.99)),
                "share of gaps above 0.1": float((gap > 0.1).mean())}  # fmt: skip


class Negative(Pinned):
    """The same, known from the KL alone: k1 of answers that another policy sampled falls below 0."""

    beta, says_sampler = 0.02, False
    settings = {"kl_estimator": "k1", "kl_placement": "loss"}  # noqa: RUF012


class Turns(Lab):
    """Two turns. The tokens of the second were sampled after a prompt without the first turn's reasoning, which the
    chat template cuts away; the trainer scores them after the whole of it."""

    def build(self) -> None:
        super().build()
        self.between = self.tokenizer("<|user|>Sure?<|end|><|assistant|>", add_special_tokens=False)["input_ids"]

    @torch.no_grad()
    def sample(self, model: Any) -> Batch:
        first = super().sample(model)
        rows, own, said, texts = [], [], [], []
        asked = [self.prompt_ids(row) for row in first.rows]
        for row, group in enumerate(first.group.tolist()):
            wrote = first.ids[row, first.asked :][first.answer[row]].tolist()
            kept = self.kept(wrote)
            answer, log = self.goes_on(model, asked[group] + kept + self.between)
            rows.append(wrote + self.between + answer)
            own.append([1] * len(wrote) + [0] * len(self.between) + [1] * len(answer))
            said.append(first.sampled[row, : len(wrote)].tolist() + [0.0] * len(self.between) + log)
            texts.append(first.texts[row])
        wide = max(map(len, rows))
        pad = [[self.pad] * (wide - len(r)) for r in rows]
        ids = torch.cat([first.ids[:, : first.asked], torch.tensor([r + p for r, p in zip(rows, pad, strict=True)])], 1)
        held = torch.tensor([[True] * len(r) + [False] * len(p) for r, p in zip(rows, pad, strict=True)])
        real = torch.cat([first.real[:, : first.asked], held], 1)
        mine = torch.tensor([o + [0] * len(p) for o, p in zip(own, pad, strict=True)]).bool()
        sampled = torch.tensor([s + [0.0] * len(p) for s, p in zip(said, pad, strict=True)])
        return Batch(ids, real, first.asked, first.group, mine, first.rows, texts, sampled)

    def kept(self, wrote: list[int]) -> list[int]:
        """What the template keeps of a turn: its end alone, or all if it is as short as that."""
        return wrote[-1:]

    def goes_on(self, model: Any, before: list[int]) -> tuple[list[int], list[float]]:
        """The second turn."""
        ids, wrote, log = torch.tensor([before]), [], []
        for _ in range(6):
            spread = model(input_ids=ids).logits[:, -1].float().log_softmax(-1)
            token = self.draw(spread)
            wrote.append(int(token))
            log.append(float(spread[0, token]))
            ids = torch.cat([ids, token[:, None]], 1)
            if wrote[-1] == self.end:
                break
        return wrote, log

    def extra(self, update: int, batch: Batch, scored: Tensor) -> dict[str, float]:
        gap = (batch.sampled - scored).abs()
        second = (~batch.own & batch.answer).cumsum(1) > 0
        return {"gap in the first turn": float(gap[batch.own & ~second].mean()),
                "gap in the second turn": float(gap[batch.own & second].mean())}  # fmt: skip


class ToolInLoss(Turns):
    """The environment's tokens are marked as its own, and the loss takes them all the same."""

    def kept(self, wrote: list[int]) -> list[int]:
        return wrote

    def trained(self, batch: Batch) -> Tensor:
        return batch.answer

    def extra(self, update: int, batch: Batch, scored: Tensor) -> dict[str, float]:
        return {"share of the loss's tokens that the environment wrote":
                float((~batch.own & batch.answer).sum() / batch.answer.sum())}  # fmt: skip
