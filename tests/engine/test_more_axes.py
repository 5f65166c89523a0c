"""What is not a formula of one token: exact KL, adaptive coefficients, refilled groups, greedy baselines, no score."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlplay.algorithms import divergences, masks, streams
from rlplay.engine.batch import Prompts
from rlplay.engine.driver import Driver
from rlplay.engine.rollouts import informative_groups
from rlplay.engine.sample import draw_prompts
from rlplay.engine.state import Halt
from rlplay.engine.tensors import Tensors
from rlplay.tasks.task import Example
from rlplay.trace.records import AnyRecord, Credited, Finished, Sampled, Scored, Stepped
from tests.parity.fixed import fixed
from tests.parity.ours import as_batch

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


def records_of(kind: Any, records: list[AnyRecord]) -> list[Any]:
    """The finished records of one kind."""
    return [r for r in records if isinstance(r, kind) and not (isinstance(r, Sampled) and not r.done)]


def updates(start: Start, count: int = 1, **given: Any) -> tuple[Driver, list[AnyRecord]]:
    """A driver that has finished some updates, and its records."""
    driver, records = start(**given)
    driver.advance("update", count, lambda: False)
    return driver, records


@given(st.integers(0, 1000))
def test_exact_kl_is_never_negative_and_zero_only_for_the_same_distribution(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    p, q = (torch.randn(4, 7, generator=generator, dtype=torch.double).log_softmax(-1) for _ in range(2))
    assert float(divergences.full(Tensors, p, q).min()) > 0
    assert float(divergences.full(Tensors, p, p).abs().max()) == 0
    torch.testing.assert_close(
        divergences.full(Tensors, p, q), torch.nn.functional.kl_div(q, p, reduction="none", log_target=True).sum(-1)
    )


@pytest.mark.parametrize(("anchor", "temperature"), [("ref", 1.0), ("ref", 0.6), ("old", 1.0), ("old", 0.6)])
def test_the_exact_kl_of_the_loss_is_that_of_the_whole_distributions(
    start: Start, anchor: str, temperature: float
) -> None:
    given = {"kl_estimator": "full", "kl_anchor": anchor, "beta": 0.5, "learning_rate": 1e-2,
             "temperature": temperature}  # fmt: skip
    driver, records = updates(start, run="two.rlplay", num_iterations=2, **given)
    driver.close()
    first, second = records_of(Stepped, records)
    assert np.abs(first.kl).max() < 1e-6

    driver, records = updates(start, run="one.rlplay", **given)  # ends where the second step above began
    driver.close()
    lm, sampled = driver._state.lm, records_of(Sampled, records)[0]
    expected = []
    for i, (a, b) in enumerate(zip(sampled.offsets[:-1], sampled.offsets[1:], strict=True)):
        g = sampled.group[i]
        prompt = sampled.prompt_ids[sampled.prompt_offsets[g] : sampled.prompt_offsets[g + 1]]
        ids = torch.from_numpy(np.concatenate([prompt, sampled.token_ids[a:b]])).long()[None]
        logits = (model(input_ids=ids).logits[0, len(prompt) - 1 : -1] for model in (lm.policy, lm.reference))
        own, reference = ((values / temperature).log_softmax(-1) for values in logits)
        p, q = (reference, own) if anchor == "old" else (own, reference)  # the first update samples from the reference
        expected.append(torch.nn.functional.kl_div(q, p, reduction="none", log_target=True).sum(-1).detach().numpy())
    np.testing.assert_allclose(second.kl, np.concatenate(expected), atol=1e-5)


def test_an_exact_kl_that_is_too_large_is_refused_with_a_remedy(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlplay.engine.passes.LOGITS_AT_ONCE", 1000)
    driver, _ = start(kl_estimator="full", beta=0.1)
    with pytest.raises(Halt, match="set kl_estimator to k3"):
        driver.advance("update", 1, lambda: False)
    driver.close()


def test_an_entropy_bonus_raises_the_entropy(start: Start) -> None:
    entropies = {}
    for coefficient in (-0.5, 0.5):
        driver, records = updates(start, 4, run=f"{coefficient}.rlplay", entropy_coef=coefficient, learning_rate=5e-3)
        driver.close()
        entropies[coefficient] = records_of(Finished, records)[-1].metrics["entropy"]
    assert entropies[0.5] > entropies[-0.5] + 0.05


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_the_entropy_bonus_is_the_mean_entropy_of_the_tokens_that_count(start: Start, share: float) -> None:
    given = {"entropy_coef": 0.3, "top_entropy_quantile": share, "temperature": 0.7}
    driver, records = updates(start, **given)
    driver.close()
    (sampled,), (step,) = records_of(Sampled, records), records_of(Stepped, records)
    counted = sampled.entropy >= np.quantile(sampled.entropy, 1 - share) - 1e-7
    assert counted.mean() == pytest.approx(share, abs=0.05)
    bonus = 0.3 * sampled.entropy[counted].astype(np.float64).mean()
    assert step.metrics["loss"] == pytest.approx(step.metrics["policy_loss"] - bonus, rel=1e-5)


def test_ziegler_and_ppo_move_beta_towards_the_target() -> None:
    assert divergences.ziegler(0.1, 0.2, 0.1, 64, 10000) == pytest.approx(0.1 * (1 + 0.2 * 0.0064))
    assert divergences.ziegler(0.1, 0.09, 0.1, 64, 10000) == pytest.approx(0.1 * (1 - 0.1 * 0.0064))
    assert [divergences.halve_or_double(3.0, x, 0.03) for x in (0.019, 0.021, 0.044, 0.046)] == [1.5, 3.0, 3.0, 6.0]
    assert [divergences.halve_or_double(1.0, x, 3.0) for x in (2.0, 4.5)] == [1.0, 1.0]


def test_an_adapted_beta_is_recorded_survives_a_rewind_and_yields_to_the_knob(start: Start) -> None:
    given = {"algorithm": "ppo-penalty", "target_kl": 1e-4, "learning_rate": 5e-3}
    driver, records = updates(start, 3, **given)
    betas = [r.metrics["kl_coef"] for r in records_of(Finished, records)]
    assert betas == [1.0, 2.0, 4.0]
    driver.rewind(1)
    driver.advance("update", 1, lambda: False)
    assert records_of(Finished, records)[-1].metrics["kl_coef"] == 2.0
    driver.set({"beta": 0.5})
    driver.advance("update", 1, lambda: False)
    assert records_of(Finished, records)[-1].metrics["kl_coef"] == 0.5
    driver.close()


def test_an_adapted_entropy_bonus_is_recorded_survives_a_rewind_and_yields_to_the_knob(start: Start) -> None:
    given = {"use_adaptive_entropy": True, "entropy_coef": 0.1, "entropy_coef_delta": 0.03, "entropy_target": 20.0,
             "num_minibatches": 2}  # fmt: skip
    driver, records = updates(start, 3, **given)

    def metrics(name: str) -> list[list[float]]:
        steps = records_of(Stepped, records)
        return [[round(s.metrics[name], 6) for s in steps if s.update == n] for n in range(1, steps[-1].update + 1)]

    assert metrics("entropy_coef_used") == [[0.0, 0.13], [0.16, 0.19], [0.22, 0.25]]
    assert metrics("entropy_coef") == [[0.13, 0.16], [0.19, 0.22], [0.25, 0.28]]
    driver.rewind(1)
    before = len(records)
    driver.advance("update", 1, lambda: False)
    again = records_of(Stepped, records[before:])
    assert [s.metrics["entropy_coef_used"] for s in again] == pytest.approx([0.16, 0.19])
    driver.set({"entropy_coef": 0.5, "entropy_target": 0.0})
    driver.advance("update", 1, lambda: False)
    last = records_of(Stepped, records)[-2:]
    assert [s.metrics["entropy_coef_used"] for s in last] == [0.0, 0.0]
    assert [s.metrics["entropy_coef"] for s in last] == pytest.approx([0.47, 0.44])
    driver.close()


@pytest.mark.parametrize("target", [0.0, 20.0])
def test_an_adaptive_bonus_acts_only_where_the_entropy_is_low(start: Start, target: float) -> None:
    given = {"entropy_coef": 0.3, "entropy_coef_delta": 0.0, "num_iterations": 3}
    _, plain = updates(start, 1, run="plain.rlplay", **given | {"entropy_coef": 0.0})
    _, own = updates(start, 1, run="own.rlplay", use_adaptive_entropy=True, entropy_target=target, **given)
    pulls = [[s.dloss_dlogp for s in records_of(Stepped, records)] for records in (plain, own)]
    np.testing.assert_array_equal(pulls[0][1], pulls[1][1])  # the first step has no bonus yet
    assert np.array_equal(pulls[0][2], pulls[1][2]) == (target == 0.0)


COVARIANT = {"algorithm": "clip-cov", "clip_cov_ratio": 0.15, "clip_cov_lb": -0.2, "num_iterations": 2}


def test_what_clip_cov_draws_is_drawn_again_by_every_replay_and_by_another_seed_otherwise(start: Start) -> None:
    driver, records = updates(start, 3, **COVARIANT)
    drawn = [step.left_out == 5 for step in records_of(Stepped, records)]
    assert all(each.any() for each in drawn)
    assert {int(each.sum()) for each in drawn} <= {int(0.15 * len(each)) for each in drawn}
    driver.rewind(1)
    before = len(records)
    driver.advance("update", 2, lambda: False)
    again = [step.left_out == 5 for step in records_of(Stepped, records[before:])]
    driver.close()
    assert [each.tolist() for each in again] == [each.tolist() for each in drawn[-len(again) :]]


def test_a_preview_draws_the_tokens_that_the_step_has_drawn(start: Start) -> None:
    driver, records = updates(start, 2, **COVARIANT | {"num_iterations": 1})
    seen = [step.left_out for step in records_of(Stepped, records) if step.update == 2]
    imagined = driver.what_if({"learning_rate": 0.0}).before
    driver.close()
    assert [step.left_out.tolist() for step in imagined] == [each.tolist() for each in seen]  # type: ignore[union-attr]


def test_kl_cov_holds_few_tokens_and_those_without_a_clip_pull_on(start: Start) -> None:
    given = {"algorithm": "kl-cov", "kl_cov_ratio": 0.1, "num_iterations": 2, "learning_rate": 1e-2}
    driver, records = updates(start, 1, **given)
    driver.close()
    for step in records_of(Stepped, records)[2:]:
        assert step.dkl_dlogp is not None
        held = step.dkl_dlogp != 0
        assert 0 < held.sum() <= max(1, int(0.1 * len(held)))
        assert step.kl is not None
        assert (step.kl[~held] == 0).all()


def test_groups_without_signal_are_replaced(start: Start) -> None:
    driver, records = updates(start, 3, reward="seldom", dynamic_sampling=True, num_prompts=4, num_generations=4)
    driver.close()
    dropped = 0.0
    for sampled, scored, credited, finished in zip(
        *(records_of(kind, records) for kind in (Sampled, Scored, Credited, Finished)), strict=True
    ):
        assert len(scored.rewards) == len(sampled.group) == 16
        spread = [np.ptp(scored.rewards[sampled.group == g]) for g in range(4)]
        assert min(spread) > 0
        expected = [float(ids.sum() % 4 == 0) for ids in np.split(sampled.token_ids, sampled.offsets[1:-1])]
        np.testing.assert_array_equal(scored.rewards, expected)
        assert len(set(sampled.prompts)) == 4
        assert (credited.group_std > 0).all()
        dropped += finished.metrics["dynamic_sampling/dropped_groups"]
    assert dropped > 0


def test_an_unscored_answer_does_not_hide_its_groups_signal() -> None:
    batch = as_batch(fixed(torch.float32, 0))
    unknown = math.nan
    batch.rewards = torch.tensor([unknown, 0, 1, 1, unknown, 2, 2, 2, unknown, unknown, unknown, unknown])
    assert informative_groups(batch).tolist() == [0]


def test_prompts_come_again_only_when_all_have_been_drawn() -> None:
    examples = [Example(str(number), {}) for number in range(5)]
    drawn = draw_prompts(examples, 12, 7, 1)
    assert sorted(example.prompt for example in drawn[:5]) == list("01234")
    assert drawn == (drawn[:5] * 3)[:12]
    assert draw_prompts(examples, 4, 7, 1, skip=3) == drawn[3:7]
    assert len({str(draw_prompts(examples, 5, seed, update)) for seed in (7, 8) for update in (1, 2)}) == 4


def test_a_greedy_baseline_is_the_reward_of_the_likeliest_answer(start: Start) -> None:
    driver, records = start(algorithm="remax")
    lm = driver._state.lm
    prompts = Prompts.of(lm, draw_prompts(driver._state.task.train, 3, 0, 1))
    expected = []
    for ids, mask in zip(prompts.ids, prompts.mask, strict=True):
        out = lm.policy.generate(
            ids[mask.bool()][None], max_new_tokens=10, do_sample=False, pad_token_id=lm.pad_id,
            attention_mask=torch.ones(1, int(mask.sum()), dtype=torch.long),
        )  # fmt: skip
        expected.append(int(out[0, int(mask.sum()) :].sum()) % 7 / 7)
    driver.advance("update", 1, lambda: False)
    driver.close()
    credited, sampled = records_of(Credited, records)[0], records_of(Sampled, records)[0]
    np.testing.assert_allclose(credited.baseline[sampled.offsets[:-1]], np.repeat(expected, 4), atol=1e-6)


def test_an_answer_that_nobody_scored_teaches_nothing_and_counts_nowhere(start: Start) -> None:
    driver, records = updates(start, reward="choosy", num_generations=8)
    driver.close()
    sampled, scored, credited = (records_of(kind, records)[0] for kind in (Sampled, Scored, Credited))
    unknown = np.isnan(scored.rewards)
    assert 0 < unknown.sum() < len(unknown)
    for i, (a, b) in enumerate(zip(sampled.offsets[:-1], sampled.offsets[1:], strict=True)):
        mine = scored.rewards[(sampled.group == sampled.group[i]) & ~unknown]
        right = 0.0 if unknown[i] else (scored.rewards[i] - mine.mean()) / (mine.std(ddof=1) + 1e-4)
        np.testing.assert_allclose(credited.advantages[a:b], right, atol=1e-4)
    assert records_of(Finished, records)[0].metrics["reward"] == pytest.approx(np.nanmean(scored.rewards))


def test_a_shaped_stream_sums_to_nothing() -> None:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.tensor([[1], [3], [6]])
    mask = torch.arange(6) < lengths
    steps = torch.rand(3, 6, generator=generator, dtype=torch.double) * mask
    for gamma in (1.0, 0.9):
        shaped = streams.shaped(Tensors(steps), steps, mask, lengths[:, 0] - 1, gamma)
        discounts = gamma ** torch.arange(6, dtype=torch.double)
        torch.testing.assert_close((shaped * discounts).sum(-1), torch.zeros(3, dtype=torch.double))


@given(st.integers(0, 1000), st.floats(0.05, 0.95))
def test_the_least_decided_tokens_are_kept(seed: int, share: float) -> None:
    entropy = torch.rand(5, 8, generator=torch.Generator().manual_seed(seed))
    mask = torch.arange(8) < torch.tensor([[8], [5], [1], [3], [8]])
    kept = masks.top_entropy(Tensors, entropy, mask, share)
    assert not bool((kept & ~mask).any())
    assert float(entropy[kept].min()) >= float(entropy[mask & ~kept].max()) if bool((mask & ~kept).any()) else True
    assert abs(int(kept.sum()) - share * int(mask.sum())) <= 1.5


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_where_no_token_counts_none_is_kept(share: float) -> None:
    assert not masks.top_entropy(Tensors, torch.ones(2, 3), torch.zeros(2, 3).bool(), share).any()


def test_a_long_answer_pays_from_the_buffer_on() -> None:
    penalty = streams.overlong(Tensors, torch.tensor([1, 12, 14, 16]), 16, 4)
    assert penalty.tolist() == [0.0, 0.0, -0.5, -1.0]


def test_step_scores_of_ones_own_reward_are_checked(start: Start, tmp_path: Path) -> None:
    driver, _ = start()
    (tmp_path / "uneven.py").write_text("def uneven(completions, **columns):\n    return [[1, 2]] * len(completions)\n")
    with pytest.raises(Halt, match=r"\(end, score\) pairs"):
        driver.advance("update", 1, lambda: False)
    driver.close()
