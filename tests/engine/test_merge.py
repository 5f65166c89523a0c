"""Batches taken apart by group and put together again hold the same completions, whatever their widths."""

from __future__ import annotations

import msgspec
import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.merge import joined, selected, whole
from rlplay.tasks.task import Example
from rlplay.trace.records import Scored

FLOATS = ("old_logprobs", "entropy", "top_logprobs")
PER_TOKEN = (*FLOATS, "ids", "top_ids", "environment", "step_scores", "step_ends")
PER_COMPLETION = ("lengths", "truncated", "rewards", "outcomes")


def made(lengths: list[int], generations: int, prompts: list[int], seed: int = 0) -> Batch:
    """A scored batch of made-up numbers, nothing 0 within a completion and all 0 behind it."""
    dice, (rows, width) = torch.Generator().manual_seed(seed), (len(lengths), max(lengths))
    inside = torch.arange(width) < torch.tensor(lengths)[:, None]

    def numbers(*more: int) -> Tensor:
        found = torch.rand(rows, width, *more, generator=dice) + 1
        return found * (inside if not more else inside[..., None])

    names = [f"{seed}.{row}" for row in range(rows)]
    rewards = torch.rand(rows, generator=dice, dtype=torch.double)
    scored = Scored(
        update=3, rewards=rewards.numpy(), weights={"a": 1.0, "b": 2.0}, logged={"m": float(seed)},
        parts={"a": rewards.numpy(), "b": -rewards.numpy()}, gold={"g": 10 * rewards.numpy()},
        extra={"note": names, f"only {seed}": names},
    )  # fmt: skip
    longest = max(prompts)
    before = torch.arange(longest) >= longest - torch.tensor(prompts)[:, None]
    return Batch(
        update=3, prompts=Prompts([Example(prompt=f"{seed}.{g}", columns={}) for g in range(len(prompts))],
                                  torch.randint(1, 90, before.shape, generator=dice) * before, before.long()),
        group=torch.arange(rows) // generations, ids=(90 * numbers()).long(), lengths=torch.tensor(lengths),
        old_logprobs=-numbers(), entropy=numbers(), top_ids=(90 * numbers(2)).long(), top_logprobs=-numbers(2),
        truncated=torch.rand(rows, generator=dice) < 0.5, environment=(numbers() > 1.5) & inside, temperature=0.7,
        completions=names, states={row: [f"{seed}.{row}"] for row in range(0, rows, 2)}, rewards=rewards,
        replies={row: [[{"role": "user", "content": f"{seed}.{row}"}]] for row in range(0, rows, 3)},
        chances={row: torch.rand(4, generator=dice).numpy() for row in range(rows)},
        outcomes=2 * rewards, step_scores=numbers().double(), step_ends=(numbers() > 1.5) & inside, scored=scored,
        parts=scored.parts,
    )  # fmt: skip


def tokens_of(batch: Batch, row: int) -> dict[str, list[object]]:
    """All that a batch knows of a completion's tokens, padding aside."""
    return {name: getattr(batch, name)[row, : batch.lengths[row]].tolist() for name in PER_TOKEN}


def prompt_of(batch: Batch, row: int) -> tuple[object, list[int]]:
    """The example that a completion answers, and the token ids of its prompt."""
    prompts, group = batch.prompts, int(batch.group[row])
    return prompts.examples[group].prompt, prompts.ids[group][prompts.mask[group].bool()].tolist()


def same_completion(first: Batch, row: int, second: Batch, other: int) -> None:
    """Two batches say the same of a completion, scores included."""
    assert tokens_of(first, row) == tokens_of(second, other)
    assert prompt_of(first, row) == prompt_of(second, other)
    assert first.completions[row] == second.completions[other]
    assert first.states.get(row) == second.states.get(other)
    assert first.replies.get(row) == second.replies.get(other)
    assert first.chances[row].tolist() == second.chances[other].tolist()
    for name in PER_COMPLETION:
        assert getattr(first, name)[row] == getattr(second, name)[other], name
    one, two = first.scored, second.scored
    assert one is not None
    assert two is not None
    assert one.rewards[row] == two.rewards[other]
    for name in ("a", "b"):
        assert one.parts[name][row] == two.parts[name][other] == first.parts[name][row] == second.parts[name][other]
    assert one.gold["g"][row] == two.gold["g"][other]
    assert one.extra["note"][row] == two.extra["note"][other]


sizes = st.lists(st.integers(1, 5), min_size=1, max_size=3)


@settings(max_examples=40)
@given(st.lists(st.integers(1, 4), min_size=2, max_size=4), st.integers(1, 3), st.data())
def test_the_chosen_groups_of_a_batch_are_numbered_anew_and_otherwise_the_same(
    prompts: list[int], generations: int, data: st.DataObject
) -> None:
    rows = len(prompts) * generations
    batch = made(data.draw(st.lists(st.integers(1, 5), min_size=rows, max_size=rows)), generations, prompts)
    wanted = sorted(data.draw(st.sets(st.integers(0, len(prompts) - 1), min_size=1)))
    found = selected(batch, torch.tensor(wanted))
    kept = [row for row in range(rows) if row // generations in wanted]
    assert found.group.tolist() == [place for place in range(len(wanted)) for _ in range(generations)]
    assert len(found.completions) == len(kept)
    for place, row in enumerate(kept):
        same_completion(found, place, batch, row)
    assert found.answering == []


@settings(max_examples=40)
@given(st.lists(st.tuples(sizes, sizes), min_size=1, max_size=3))
def test_joined_batches_hold_the_completions_of_each_one_after_the_other(
    shapes: list[tuple[list[int], list[int]]],
) -> None:
    batches = [
        made(lengths * len(prompts), len(lengths), prompts, seed) for seed, (lengths, prompts) in enumerate(shapes)
    ]
    found, row, group = joined(batches), 0, 0
    assert found.ids.shape[1] == max(batch.ids.shape[1] for batch in batches)
    for seed, batch in enumerate(batches):
        for other in range(len(batch.group)):
            same_completion(found, row, batch, other)
            assert int(found.group[row]) == group + int(batch.group[other])
            assert found.scored.extra[f"only {seed}"][row] == batch.completions[other]
            row += 1
        group += len(batch.prompts.ids)
    assert row == len(found.group)
    assert group == len(found.prompts.ids) == len(found.prompts.examples)
    behind = ~found.completion_mask
    assert all(not getattr(found, name)[behind].any() for name in PER_TOKEN)
    assert not found.prompts.ids[found.prompts.mask == 0].any()
    assert found.prompts.mask[:, -1].all(), "prompts are padded on the left"
    assert found.scored.logged == {"m": np.mean(range(len(batches)))}
    assert (found.update, found.temperature, found.scored.update) == (3, 0.7, 3)


def test_what_only_some_batches_have_logged_is_unknown_in_the_others() -> None:
    first, second = made([2, 3], 1, [1, 1]), made([1], 1, [2], seed=1)
    second.scored = msgspec.structs.replace(second.scored, logged={"other": 4.0})
    found = joined([first, second]).scored
    assert found.logged == {"m": 0.0, "other": 4.0}
    assert found.extra["only 0"] == ["0.0", "0.1", None]
    assert found.extra["only 1"] == [None, None, "1.0"]


@settings(max_examples=40)
@given(st.lists(st.integers(1, 5), min_size=4, max_size=4), st.lists(st.integers(0, 4), max_size=2))
def test_shares_of_a_batch_are_the_batch(lengths: list[int], borders: list[int]) -> None:
    """As processes sample it: each has some of the rows, as wide as its own longest, and all prompts."""
    batch = made(lengths, 2, [1, 3])
    batch.replies = {row: [[{"role": "user", "content": str(row)}]] for row in (1, 2)}
    shares = []
    for start, end in zip([0, *sorted(borders)], [*sorted(borders), 4], strict=True):
        width = max(lengths[start:end], default=0)
        fields = {name: getattr(batch, name)[start:end, :width] for name in (*FLOATS, "ids", "top_ids", "environment")}
        fields |= {name: getattr(batch, name)[start:end] for name in ("group", "lengths", "truncated")}
        told = {
            name: {row - start: said for row, said in getattr(batch, name).items() if start <= row < end}
            for name in ("replies", "states")
        }
        shares.append(Batch(update=3, prompts=batch.prompts, temperature=0.7, **fields, **told))
    found = whole(shares)
    for name in (*FLOATS, "ids", "top_ids", "environment", "group", "lengths", "truncated"):
        assert torch.equal(getattr(found, name), getattr(batch, name)), name
    assert (found.replies, found.states) == (batch.replies, batch.states)
    assert (found is shares[0]) == (len(shares) == 1)
