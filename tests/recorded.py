"""Plausible recorded runs without a model: every test that needs records builds them here.

The numbers hang together as a real run's do: log-probabilities are softmaxes of one table of logits, ratios and clip
states follow from them, and `dloss_dlogp` is the exact derivative of the GRPO loss of `SETTINGS`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rlplay.algorithms.apply import resolve
from rlplay.trace.records import (
    AnyRecord,
    Array,
    Credited,
    Evaluated,
    Finished,
    Sampled,
    Scored,
    Searched,
    Started,
    Stepped,
    spans,
)
from rlplay.trace.runfile import RunWriter

END = "<|end|>"
TEMPLATE = ("<|user|>", END, "<|assistant|>")
BROKEN = "\N{REPLACEMENT CHARACTER}"  # what one byte of a longer character decodes to, alone
ROCKET = (BROKEN, BROKEN + " ")  # two tokens of one character, as byte-level tokenizers make them
CANDIDATES = 10

_QUESTIONS = (
    ("Tom has {a} apples and gets {b} more. How many apples has Tom?", "{a} + {b} = {c}"),
    ("Ann picks {a} pears, then {b} pears. How many pears has Ann?", "{a} and {b} make {c}"),
    ("A shelf holds {a} books; {b} are added. How many books now?", "start {a}, add {b}: {c}"),
    ("Sam read {a} pages on Monday and {b} on Friday. How many pages?", "{a} + {b} is {c}"),
    ("There are {a} red cars and {b} blue cars. How many cars?", "so {a} plus {b} gives {c}"),
)
_WEIRD = ("[bold]", " \x1b", "[/]", "\t", "\n", " 東", "é", " \u200b", "[red]")
_NUMBERS = tuple(str(n) for n in range(100)) + tuple(f" {n}" for n in range(100))


def _pieces(text: str) -> list[str]:
    return re.findall(r" ?[A-Za-z]+| ?\d+| ?[^\w\s]|\s", text)


def _vocabulary() -> list[str]:
    words = {piece for pair in _QUESTIONS for text in pair for piece in _pieces(re.sub(r"{\w}", "7", text))}
    return [*TEMPLATE, *ROCKET, *_WEIRD, *_NUMBERS, *sorted(words - set(_NUMBERS)), "the", " answer", " um"]


VOCABULARY = _vocabulary()
_ID = {piece: number for number, piece in enumerate(VOCABULARY)}

SETTINGS = resolve({"algorithm": "grpo", "num_prompts": 4, "num_generations": 4, "max_completion_length": 12,
                    "beta": 0.05, "use_bias_correction_kl": False, "num_minibatches": 2,
                    "candidates": CANDIDATES})  # fmt: skip


def synthetic_started(**changes: Any) -> Started:
    """How the synthetic run began; `changes` replace fields."""
    started = Started(
        update=0,
        run_id="synthetic-1",
        scenario="synthetic",
        scenario_text="name: synthetic\ntitle: Word problems\nquestion: Does it learn to add?\n",
        title="Word problems",
        settings=msgspec.to_builtins(SETTINGS),
        seed=0,
        model="pocket",
        parameters=1_234_567,
        device="cpu",
        dtype="float32",
        threads=1,
        versions={"rlplay": "0.1.0", "torch": "2.6.0"},
    )
    return msgspec.structs.replace(started, **changes)


def synthetic_update(
    number: int, seed: int = 0, *, prompts: int = 4, generations: int = 4, length: int = 12, steps: int = 2
) -> list[AnyRecord]:
    """The records of update `number`, in order: Sampled (done), Scored, Credited, `steps` × Stepped, Finished.

    `generations` completions of at most `length` tokens for each of `prompts` prompts. The second group has no
    signal, the last completion is truncated, the first holds odd text. An even number of steps means two
    minibatches a pass, an odd one means whole batches.
    """
    batch = _sample(np.random.default_rng([seed, number]), number, (prompts, generations), length)
    scored = _score(batch, number)
    credited = _credit(batch, scored)
    stepped = _optimize(batch, credited, steps)
    finished = _after(batch, scored, stepped)
    return [batch.sampled, scored, credited, *stepped, finished]


def synthetic_search(number: int, accepted: bool = True) -> list[Searched]:
    """TRPO's search in update `number`: four iterations of conjugate gradient, then three steps tried."""
    limit, residuals, kls = 0.01, (0.62, 0.31, 0.14, 0.05), (0.0131, 0.0102, 0.0064)
    found = [
        Searched(update=number, kind="cg", iteration=i, iterations=4, residual=residual, step=0.1 + i / 100, kl=None,
                 gain=0.02 + i / 1000, accepted=False)
        for i, residual in enumerate(residuals, start=1)
    ]  # fmt: skip
    tried = [
        Searched(update=number, kind="line", iteration=i, iterations=10, residual=None, step=0.8 ** (i - 1), kl=kl,
                 gain=0.031 - i / 1000, accepted=accepted and kl <= limit)
        for i, kl in enumerate(kls, start=1)
    ]  # fmt: skip
    return found + tried


def synthetic_sampling(number: int, seed: int = 0, **shape: int) -> list[Sampled]:
    """What update `number` sends while it samples: one record per decoded position, the last one done."""
    last = synthetic_update(number, seed, **shape)[0]
    assert isinstance(last, Sampled)
    lengths = np.diff(last.offsets)
    return [_first_positions(last, lengths, position) for position in range(1, int(lengths.max()))] + [last]


def _first_positions(whole: Sampled, lengths: Array, position: int) -> Sampled:
    kept = np.minimum(lengths, position)
    index = np.concatenate([np.arange(start, start + n) for start, n in zip(whole.offsets, kept, strict=False)])
    flat = ("token_ids", "mask", "old_logprobs", "entropy", "top_ids", "top_logprobs")
    return msgspec.structs.replace(
        whole,
        done=False,
        position=position,
        offsets=np.concatenate([[0], np.cumsum(kept)]).astype(np.int64),
        texts=[whole.texts[i] for i in index],
        truncated=((lengths > position) | (whole.truncated == 1)).astype(np.uint8),
        **{name: getattr(whole, name)[index] for name in flat},
    )


@dataclass
class _Batch:
    """What the pretended policy knows: its logits [T, V] now, the reference's, and the generator."""

    rng: np.random.Generator
    sampled: Sampled
    logits: Array
    reference: Array
    right: Array  # bool [N]: the completion ends in the right number

    def logprobs(self, index: Array) -> Array:
        chosen = _log_softmax(self.logits[index])
        return chosen[np.arange(len(index)), self.sampled.token_ids[index]].astype(np.float32)


def _log_softmax(logits: Array) -> Array:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def _sample(rng: np.random.Generator, number: int, shape: tuple[int, int], length: int) -> _Batch:
    prompts, generations = shape
    questions, columns, answers = [], [], []
    for _ in range(prompts):
        question, answer = _QUESTIONS[rng.integers(len(_QUESTIONS))]
        a, b = (int(n) for n in rng.integers(2, 40, size=2))
        questions.append(question.format(a=a, b=b))
        answers.append((answer, a, b))
        columns.append({"answer": str(a + b), "topic": "addition"})
    prompt_pieces = [[TEMPLATE[0], *_pieces(question), *TEMPLATE[1:]] for question in questions]
    count = prompts * generations
    skill = 0.2 + 0.6 * (1 - np.exp(-number / 10))
    right = rng.random(count) < skill
    if prompts > 1:
        right[generations : 2 * generations] = False
    rows = [_completion(rng, answers[i // generations], bool(right[i]), length) for i in range(count)]
    rows[0] = ["[bold]", *ROCKET, " \x1b", *_pieces("the answer is")]
    rows[0] = [*rows[0][: length - 1], END]
    rows[-1] = (rows[-1][:-1] + [" um"] * length)[:length]
    right[0] = right[-1] = False
    token_ids = np.array([_ID[piece] for row in rows for piece in row], dtype=np.int32)
    logits = rng.normal(0, 1.2, (len(token_ids), len(VOCABULARY)))
    logits[np.arange(len(token_ids)), token_ids] += rng.uniform(4, 12, len(token_ids))
    drift = rng.normal(0, min(0.3, 0.02 * (number - 1)), logits.shape)
    old = _log_softmax(logits)
    logprobs, entropy = old[np.arange(len(token_ids)), token_ids], -(np.exp(old) * old).sum(axis=1)
    top = np.argsort(-old, axis=1)[:, :CANDIDATES].astype(np.int32)
    shown = sorted({*top.ravel().tolist(), *token_ids.tolist()})
    sampled = Sampled(
        update=number,
        done=True,
        position=max(len(row) for row in rows),
        temperature=1.0,
        prompts=questions,
        prompt_ids=np.array([_ID[p] for pieces in prompt_pieces for p in pieces], dtype=np.int32),
        prompt_offsets=np.cumsum([0] + [len(pieces) for pieces in prompt_pieces], dtype=np.int64),
        prompt_texts=[piece for pieces in prompt_pieces for piece in pieces],
        columns=columns,
        group=np.repeat(np.arange(prompts, dtype=np.int32), generations),
        offsets=np.cumsum([0] + [len(row) for row in rows], dtype=np.int64),
        token_ids=token_ids,
        texts=[{ROCKET[0]: "", ROCKET[1]: "🚀 "}.get(piece, piece) for row in rows for piece in row],
        mask=np.ones(len(token_ids), dtype=np.uint8),
        old_logprobs=logprobs.astype(np.float32),
        # The tokens were not drawn from this policy; the policy's own would be as unlikely as its entropy says.
        entropy=(entropy * -logprobs.mean() / entropy.mean()).astype(np.float32),
        top_ids=top,
        top_logprobs=np.take_along_axis(old, top, axis=1).astype(np.float32),
        truncated=np.array([row[-1] != END for row in rows], dtype=np.uint8),
        pieces={number: VOCABULARY[number] for number in shown},
    )
    return _Batch(rng, sampled, logits, logits + drift, right)


def _completion(rng: np.random.Generator, sum_of: tuple[str, int, int], right: bool, length: int) -> list[str]:
    answer, a, b = sum_of
    c = a + b if right else a + b + int(rng.choice([-3, -2, -1, 1, 2, 3]))
    pieces = _pieces(answer.format(a=a, b=b, c=c))
    if rng.random() < 0.3:
        pieces = [*_pieces("the answer is"), f" {c}"]
    if rng.random() < 0.2:
        pieces.insert(1, str(rng.choice(_WEIRD)))
    return [*pieces[: length - 1], END]


def _score(batch: _Batch, number: int) -> Scored:
    sampled = batch.sampled
    correct = batch.right.astype(np.float32)
    form = (1 - sampled.truncated).astype(np.float32)
    form[:1] = np.nan if len(form) > 1 else form[:1]
    weights = {"correct": 1.0, "format": 0.2}
    parts = {"correct": correct, "format": form}
    rewards = np.nansum([weights[name] * part for name, part in parts.items()], axis=0).astype(np.float32)
    return Scored(update=number, rewards=rewards, parts=parts, weights=weights, gold={"true": correct * 0.9})


def _credit(batch: _Batch, scored: Scored) -> Credited:
    sampled = batch.sampled
    lengths = np.diff(sampled.offsets)
    groups = len(sampled.prompts)
    by_group = scored.rewards.reshape(groups, -1).astype(np.float64)
    mean = by_group.mean(axis=1)
    std = by_group.std(axis=1, ddof=1) if by_group.shape[1] > 1 else np.zeros(groups)
    advantages = (scored.rewards - mean[sampled.group]) / (std[sampled.group] + 1e-4)
    token_rewards = np.zeros(len(sampled.token_ids), dtype=np.float32)
    token_rewards[sampled.offsets[1:] - 1] = scored.rewards
    reference = _log_softmax(batch.reference)
    return Credited(
        update=sampled.update,
        token_rewards=token_rewards,
        returns=np.repeat(scored.rewards, lengths),
        baseline=np.repeat(mean[sampled.group], lengths).astype(np.float32),
        advantages=np.repeat(advantages, lengths).astype(np.float32),
        values=None,
        ref_logprobs=reference[np.arange(len(reference)), sampled.token_ids].astype(np.float32),
        ref_top_logprobs=np.take_along_axis(reference, sampled.top_ids, axis=1).astype(np.float32),
        group_mean=mean.astype(np.float32),
        group_std=std.astype(np.float32),
    )


def _optimize(batch: _Batch, credited: Credited, steps: int) -> list[Stepped]:
    count = len(batch.sampled.group)
    minibatches = 2 if steps % 2 == 0 and count > 1 else 1
    stepped: list[Stepped] = []
    order = np.arange(count, dtype=np.int32)
    for step in range(steps):
        if step % minibatches == 0:
            order = batch.rng.permutation(count).astype(np.int32)
        rows = np.array_split(order, minibatches)[step % minibatches]
        stepped.append(_step(batch, credited, step, (steps // minibatches, minibatches), rows))
    return stepped


def _step(batch: _Batch, credited: Credited, step: int, passes: tuple[int, int], rows: Array) -> Stepped:
    epochs, minibatches = passes
    sampled = batch.sampled
    index = spans(sampled.offsets, rows)
    lengths = np.diff(sampled.offsets)[rows]
    assert credited.ref_logprobs is not None
    logprobs = batch.logprobs(index)
    ratio = np.exp(logprobs - sampled.old_logprobs[index])
    advantages = credited.advantages[index]
    high = (advantages > 0) & (ratio > 1 + SETTINGS.epsilon)
    low = (advantages < 0) & (ratio < 1 - SETTINGS.epsilon)
    share = 1 / (len(rows) * np.repeat(lengths, lengths))
    gap = credited.ref_logprobs[index] - logprobs
    kl = np.exp(gap) - gap - 1
    kl_pull = SETTINGS.beta * (1 - np.exp(gap))
    pull = np.where(high | low, 0, -ratio * advantages) + kl_pull
    clipped = np.clip(ratio, 1 - SETTINGS.epsilon, 1 + SETTINGS.epsilon)
    policy_loss = -float((share * np.minimum(ratio * advantages, clipped * advantages)).sum())
    chosen = np.arange(len(sampled.token_ids)), sampled.token_ids
    batch.logits[chosen] += 0.5 * credited.advantages + batch.rng.normal(0, 0.05, len(sampled.token_ids))
    return Stepped(
        update=sampled.update,
        step=step,
        epoch=step // minibatches,
        epochs=epochs,
        minibatch=step % minibatches,
        minibatches=minibatches,
        rows=rows,
        logprobs=logprobs,
        importance_ratio=ratio,
        clip_state=high.astype(np.int8) - low.astype(np.int8),
        dloss_dlogp=(share * pull).astype(np.float32),
        dkl_dlogp=(share * kl_pull).astype(np.float32),
        weights=share.astype(np.float32),
        left_out=np.zeros(len(index), dtype=np.uint8),
        kl=kl.astype(np.float32),
        values=None,
        metrics={
            "loss": policy_loss + SETTINGS.beta * float((share * kl).sum()),
            "policy_loss": policy_loss,
            "kl": float(kl.mean()),
            "grad_norm": float(np.linalg.norm(share * pull) * 10),
            "learning_rate": SETTINGS.learning_rate,
            "clip_ratio/high_mean": float(high.mean()),
            "clip_ratio/low_mean": float(low.mean()),
            "clip_ratio/region_mean": float((high | low).mean()),
            "ratio_outside": float((np.abs(ratio - 1) > SETTINGS.epsilon).mean()),
            "ratio_max": float(ratio.max()),
        },
    )


def _after(batch: _Batch, scored: Scored, stepped: list[Stepped]) -> Finished:
    sampled = batch.sampled
    lengths = np.diff(sampled.offsets)
    index = np.arange(len(sampled.token_ids))
    new, after = batch.logprobs(index), _log_softmax(batch.logits)
    favourites = after.argmax(axis=1)
    gap = new - sampled.old_logprobs
    stds = scored.rewards.reshape(len(sampled.prompts), -1).std(axis=1)
    metrics = {
        "reward": float(scored.rewards.mean()),
        "reward_std": float(scored.rewards.std(ddof=1)) if len(scored.rewards) > 1 else 0.0,
        "reward_p10": float(np.quantile(scored.rewards, 0.1)),
        "reward_p90": float(np.quantile(scored.rewards, 0.9)),
        "frac_reward_zero_std": float((stds < 1e-6).mean()),
        "gold/true/mean": float(scored.gold["true"].mean()),
        "completions/mean_length": float(lengths.mean()),
        "completions/min_length": float(lengths.min()),
        "completions/max_length": float(lengths.max()),
        "completions/clipped_ratio": float(sampled.truncated.mean()),
        "entropy": float(sampled.entropy.mean()),
        "kl_old": float((np.exp(gap) - gap - 1).mean()),
        "num_tokens": float(sampled.update * len(sampled.token_ids)),
    }
    for name, part in scored.parts.items():
        metrics[f"rewards/{name}/mean"] = float(np.nanmean(part))
    for name in stepped[0].metrics if stepped else ():
        metrics[name] = float(np.mean([record.metrics[name] for record in stepped]))
    if stepped:
        metrics["ratio_max"] = max(record.metrics["ratio_max"] for record in stepped)
    timings = {"sample": 0.4, "score": 0.01, "reference": 0.05, "forward": 0.1, "backward": 0.2, "look": 0.1}
    return Finished(
        update=sampled.update,
        rows=np.arange(len(sampled.group), dtype=np.int32),
        logprobs=new,
        top_logprobs=np.take_along_axis(after, sampled.top_ids, axis=1).astype(np.float32),
        favourite_ids=favourites.astype(np.int32),
        favourite_logprobs=after[index, favourites].astype(np.float32),
        pieces={number: VOCABULARY[number] for number in set(favourites.tolist()).difference(sampled.pieces)},
        metrics=metrics,
        timings=timings,
        seconds=sum(timings.values()),
    )


def synthetic_run(path: Path, updates: int = 5, seed: int = 0) -> Path:
    """A finished run file at `path` with `updates` updates, held-out scores after every second one."""
    writer = RunWriter.create(path, synthetic_started(seed=seed))
    for number in range(1, updates + 1):
        for record in synthetic_update(number, seed):
            writer.append(record)
        if number % 2 == 0:
            writer.append(synthetic_evaluated(number))
    writer.close()
    return path


def synthetic_evaluated(number: int) -> Evaluated:
    """Held-out answers after update `number`."""
    return Evaluated(
        update=number,
        metrics={"eval_reward": 0.2 + 0.02 * number, "eval_rewards/correct/mean": 0.1 + 0.02 * number},
        prompts=["Tom has 3 apples and gets 4 more. How many apples has Tom?"] * 2,
        completions=["3 + 4 = 7<|end|>", "3 + 4 = 8<|end|>"],
        rewards=np.array([1.2, 0.2], dtype=np.float32),
        seconds=0.2,
    )
