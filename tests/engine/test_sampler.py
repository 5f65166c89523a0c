"""A sampler that is not the policy: older weights, less precision, and what both say of its answers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from rlplay.algorithms.settings import Settings
from rlplay.engine.driver import Driver
from rlplay.engine.sampler import Sampler
from rlplay.engine.sampler_model import as_int8
from rlplay.engine.slate import Slate
from rlplay.trace.records import AnyRecord, Finished, Notice, Sampled, Stepped
from tests.engine.test_more_axes import records_of

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


def never() -> bool:
    return False


def played(driver: Driver, updates: int) -> list[Any]:
    """The policy before each of so many updates, and after the last."""
    models = [copy.deepcopy(driver._state.lm.policy)]
    for _ in range(updates):
        driver.advance("update", 1, never)
        models.append(copy.deepcopy(driver._state.lm.policy))
    return models


def sampled_of(records: list[AnyRecord]) -> list[Sampled]:
    return [each for each in records_of(Sampled, records) if each.done]


@torch.no_grad()
def alone(model: Any, sampled: Sampled) -> Any:
    """The log-probabilities of a model for every token, float64 [T], one sequence at a time and nothing padded."""
    found = []
    for i, group in enumerate(sampled.group):
        a, b = sampled.prompt_offsets[group : group + 2]
        prompt, ids = sampled.prompt_ids[a:b], sampled.token_ids[sampled.offsets[i] : sampled.offsets[i + 1]]
        whole = torch.from_numpy(np.concatenate([prompt, ids]).astype(np.int64))
        logits = model(input_ids=whole[None], use_cache=False).logits[0, len(prompt) - 1 : -1]
        logprobs = (logits.double() / sampled.temperature).log_softmax(-1)
        found.append(logprobs.gather(-1, whole[len(prompt) :, None]).squeeze(-1).numpy())
    return np.concatenate(found)


LORA = {"use_peft": True, "lora_r": 4, "lora_alpha": 16}


@pytest.mark.parametrize(
    ("lag", "scenario"),
    [(1, {}), (2, LORA), pytest.param(1, LORA, marks=pytest.mark.slow), pytest.param(2, {}, marks=pytest.mark.slow)],
)
def test_answers_come_from_the_weights_of_so_many_updates_ago(start: Start, lag: int, scenario: dict[str, Any]) -> None:
    driver, records = start(sampler_lag=lag, learning_rate=3e-3, temperature=0.8, scenario=scenario)
    models = played(driver, 4)
    driver.close()
    assert not records_of(Notice, records)
    for update, sampled in enumerate(sampled_of(records)):
        version = max(update - lag, 0)
        assert sampled.versions is not None
        assert sampled.sampling_logprobs is not None
        assert sampled.versions.tolist() == [version] * len(sampled.group)
        np.testing.assert_allclose(sampled.sampling_logprobs, alone(models[version], sampled), atol=2e-5)
        np.testing.assert_allclose(sampled.old_logprobs, alone(models[update], sampled), atol=2e-5)
        if version == update:
            np.testing.assert_array_equal(sampled.sampling_logprobs, sampled.old_logprobs)
        else:
            assert np.abs(sampled.sampling_logprobs - sampled.old_logprobs).max() > 1e-3, "nothing was learned"
    for step in records_of(Stepped, records):
        np.testing.assert_allclose(step.importance_ratio, 1, atol=1e-4)


def int8_of(model: Any) -> Any:
    """The model with the weights of its linear layers rounded, channel by channel in float64."""
    found = copy.deepcopy(model)
    for name, module in found.named_modules():
        if isinstance(module, nn.Linear) and module.weight is not found.get_input_embeddings().weight:
            assert "lora" not in name
            rows = []
            for row in module.weight.detach().double():
                scale = row.abs().max() / 127
                rows.append((row / scale).round().clamp(-127, 127) * scale)
            module.weight.data = torch.stack(rows).float()
    return found


@pytest.mark.parametrize(
    ("dtype", "other", "atol"), [("bfloat16", lambda m: copy.deepcopy(m).bfloat16(), 0.1), ("int8", int8_of, 2e-5)]
)
def test_a_sampler_of_less_precision_says_what_such_a_model_says(
    start: Start, dtype: str, other: Callable[[Any], Any], atol: float
) -> None:
    driver, records = start(sampler_dtype=dtype, learning_rate=3e-3)
    models = played(driver, 3)
    driver.close()
    assert not records_of(Notice, records)
    for model, sampled in zip(models, sampled_of(records), strict=False):
        assert sampled.sampling_logprobs is not None
        np.testing.assert_allclose(sampled.old_logprobs, alone(model, sampled), atol=2e-5)
        rounded = alone(other(model), sampled)
        np.testing.assert_allclose(sampled.sampling_logprobs, rounded, atol=atol)
        apart = np.abs(sampled.sampling_logprobs - sampled.old_logprobs).max()
        assert apart > (1e-2 if dtype == "bfloat16" else 1e-3)
    ours, theirs = (
        {name: p.detach() for name, p in each.named_parameters()}
        for each in (driver._state.sampler.using.policy, other(models[2]))  # type: ignore[union-attr]
    )
    assert ours.keys() == theirs.keys()
    for name, weight in ours.items():
        torch.testing.assert_close(weight, theirs[name], rtol=0 if dtype == "bfloat16" else 1e-6, atol=0)


def test_int8_is_symmetric_and_has_a_scale_for_every_output() -> None:
    weight = torch.randn(5, 7, generator=torch.Generator().manual_seed(0)) * torch.tensor([1, 10, 0.1, 0, 1.0])[:, None]
    found = as_int8(weight, 1)
    scale = weight.double().abs().amax(1) / 127
    for row, exact, step in zip(found.double(), weight.double(), scale, strict=True):
        assert (row - exact).abs().max() <= step / 2 + 1e-9
        if step:
            steps = row / step
            torch.testing.assert_close(steps, steps.round(), rtol=0, atol=1e-4)
            assert steps.abs().max().round() == 127
    torch.testing.assert_close(as_int8(weight.T.contiguous(), 0), found.T)
    torch.testing.assert_close(as_int8(-weight, 1), -found)
    assert as_int8(weight.bfloat16(), 1).dtype is torch.bfloat16


@pytest.mark.parametrize(
    ("settings", "versions", "discarded"),
    [
        ({"weight_sync_steps": 3}, [0, 0, 0, 3, 3, 3, 6, 6], [0] * 8),
        ({"weight_sync_steps": 0}, [0] * 8, [0] * 8),
        ({"weight_sync_steps": 2, "sampler_lag": 1}, [0, 0, 0, 2, 2, 4, 4, 6], [0] * 8),
        # As in TRL's AsyncGRPO a batch is thrown away once its weights are more than so many syncs old, and the queue
        # is filled up with batches of the newest weights.
        ({"sampler_lag": 4, "max_staleness": 2}, [0, 0, 0, 1, 2, 3, 4, 5], [0, 0, 0, 2, 0, 0, 0, 2]),
        ({"sampler_lag": 2, "max_staleness": 0}, [*range(8)], [0, 2, 0, 2, 0, 2, 0, 2]),
        ({"weight_sync_steps": 0, "sampler_lag": 2, "max_staleness": 0}, [0] * 8, [0] * 8),
    ],
)
def test_which_weights_answers_come_from_and_how_many_are_thrown_away(
    start: Start, settings: dict[str, int], versions: list[int], discarded: list[int]
) -> None:
    driver, records = start(**settings, observe="light", max_completion_length=2)
    driver.advance("update", 8, never)
    driver.close()
    assert [int(each.versions[0]) for each in sampled_of(records) if each.versions is not None] == versions
    every = settings.get("weight_sync_steps", 1)
    for update, end in enumerate(records_of(Finished, records)):
        assert end.metrics["sample/dropped_stale_total"] == discarded[update] * 12
        if every:
            assert end.metrics["sample/staleness_mean"] == update // every - versions[update] // every
        assert end.metrics["sample/staleness_mean"] <= settings.get("max_staleness", 4)


def test_the_queue_is_that_of_a_trainer_which_drops_what_it_finds_too_old() -> None:
    """Against a simulation of AsyncGRPO's queue, batch by batch: take the oldest until one is fresh enough."""
    for lag, most, every in ((5, 1, 1), (7, 3, 2), (3, 2, 4), (6, 0, 1), (9, 4, 1)):
        sampler, settings = Sampler(), Settings(sampler_lag=lag, max_staleness=most, weight_sync_steps=every)
        queue: list[tuple[int, int]] = []
        for update in range(30):
            sync = (update // every, update // every * every)
            queue += [sync] * (lag + 1 - len(queue))
            dropped = 0
            while queue and sync[0] - queue[0][0] > most:
                queue.pop(0)
                dropped += 1
            version = queue.pop(0)[1] if queue else sync[1]
            sampler._go_on(settings, update)
            sampler.weights |= {update: {}}
            assert (sampler.queue[0].updates, sampler.discarded) == (version, dropped), (lag, most, every, update)


def same_records(a: list[AnyRecord], b: list[AnyRecord]) -> None:
    """Bit for bit, but for the time that they took."""
    for one, other in zip(a, b, strict=True):
        assert (one.update, type(one)) == (other.update, type(other))
        for name in one.__struct_fields__:
            if name not in ("timings", "seconds"):
                np.testing.assert_equal(getattr(one, name), getattr(other, name))


OLDER = {"sampler_lag": 3, "max_staleness": 1, "sampler_dtype": "int8", "old_logprobs_of": "sampler"}
SELDOM = {"weight_sync_steps": 3, "sampler_dtype": "bfloat16"}


@pytest.mark.parametrize(
    ("settings", "scenario"),
    [
        ({"sampler_lag": 2}, {}),
        (OLDER, LORA),
        (SELDOM, {}),
        pytest.param({"sampler_lag": 2}, LORA, marks=pytest.mark.slow),
        pytest.param(OLDER, {}, marks=pytest.mark.slow),
        pytest.param(SELDOM, LORA, marks=pytest.mark.slow),
    ],
)
def test_an_update_repeats_itself_after_an_undo_and_a_resumption(
    start: Start, settings: dict[str, Any], scenario: dict[str, Any]
) -> None:
    """The past weights that a later batch comes from are in the snapshot."""

    def after(update: int) -> list[AnyRecord]:
        found = [each for each in records if isinstance(each, (Sampled, Stepped, Finished)) and each.update > update]
        return [each for each in found if not isinstance(each, Sampled) or each.done]

    driver, records = start(**settings, learning_rate=3e-3, scenario=scenario)
    driver.advance("update", 6, never)
    wanted = after(4)
    del records[:]
    driver.rewind(4)
    driver.advance("phase", 1, never)  # and from within an update
    driver.rewind(4)
    driver.advance("update", 2, never)
    same_records(after(4)[-len(wanted) :], wanted)
    del records[:]
    driver.rewind(5)
    driver.advance("phase", 2, never)
    driver.close()
    driver, records = start(resume=True, **settings, learning_rate=3e-3, scenario=scenario)
    driver.advance("update", 1, never)
    driver.close()
    same_records(after(5), [each for each in wanted if each.update == 6])


def test_without_its_snapshots_a_run_goes_back_to_the_same_records(start: Start, tmp_path: Path) -> None:
    driver, records = start(sampler_lag=2, learning_rate=3e-3)
    driver.advance("update", 4, never)
    wanted = sampled_of(records)[-1]
    for update in (2, 3):
        driver._store._drop(update)
    driver.rewind(3)
    driver.advance("update", 1, never)
    driver.close()
    same_records([sampled_of(records)[-1]], [wanted])


def test_a_snapshot_holds_the_past_weights_that_are_needed_and_no_others(start: Start, tmp_path: Path) -> None:
    """Three tensors of each weight, and one more for each update of lag; of a plain run none."""
    sizes = {}
    for lag in (0, 1, 3):
        driver, _ = start(run=f"{lag}.rlplay", sampler_lag=lag)
        driver.advance("update", 5, never)
        driver.close()
        tensors = load_file(tmp_path / f"{lag}.snapshots" / "000005.safetensors")
        past = {name.split("/")[1] for name in tensors if name.startswith("sampler/")} - {"queue"}
        assert past == {str(4 - i) for i in range(lag)}
        sizes[lag] = sum(t.nbytes for name, t in tensors.items() if name.startswith(("policy.", "sampler/")))
        assert not lag or any(name.startswith("sampler/") for name in tensors)
    assert sizes[3] == pytest.approx(4 * sizes[0], rel=1e-2)


def test_settings_may_change_in_a_run(start: Start) -> None:
    driver, records = start(learning_rate=3e-3)
    for update, change in enumerate(
        ({}, {"weight_sync_steps": 0}, {}, {"weight_sync_steps": 1, "sampler_lag": 1}, {}, {"sampler_lag": 0}, {})
    ):
        if change:
            driver.set(change)
        driver.advance("update", 1, never)
        assert driver._done == update + 1
    driver.close()
    versions = [None if each.versions is None else int(each.versions[0]) for each in sampled_of(records)]
    assert versions == [None, 1, 1, 3, 3, None, None]
    assert not driver._state.sampler.weights


def test_the_sampler_s_own_log_probabilities_may_be_what_the_ratio_starts_from(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in AsyncGRPO and prime-rl: no pass for old log-probabilities; the first step shows the mismatch."""
    calls = []
    monkeypatch.setattr("rlplay.engine.mismatch._score_again", lambda *given: calls.append(given))
    driver, records = start(sampler_lag=1, old_logprobs_of="sampler", learning_rate=3e-3, num_minibatches=1)
    models = played(driver, 3)
    driver.close()
    assert not calls
    assert not records_of(Notice, records)
    for update, (sampled, step) in enumerate(zip(sampled_of(records), records_of(Stepped, records), strict=True)):
        sampler, policy = (alone(models[k], sampled) for k in (max(update - 1, 0), update))
        np.testing.assert_array_equal(sampled.old_logprobs, sampled.sampling_logprobs)
        np.testing.assert_allclose(sampled.old_logprobs, sampler, atol=2e-5)
        np.testing.assert_allclose(np.log(step.importance_ratio), policy - sampler, atol=5e-5)
        metrics = next(each for each in records_of(Finished, records) if each.update == update + 1).metrics
        d = policy - sampler
        assert metrics["mismatch_kl"] == pytest.approx(np.mean(np.exp(d) - d - 1), abs=2e-6)
        assert metrics["sampling/sampling_logp_difference/mean"] == pytest.approx(np.abs(d).mean(), abs=2e-5)
        assert metrics["sampling/sampling_logp_difference/max"] == pytest.approx(np.abs(d).max(), abs=5e-5)
    assert d.max() > 1e-2


@pytest.mark.parametrize("settings", [{"sampler_lag": 1}, {"sampler_lag": 1, "old_logprobs_of": "sampler"}])
def test_a_sampler_that_says_what_its_weights_do_not_is_shown(
    start: Start, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    """However far the sampler is from the policy on purpose."""
    write = Slate.write

    def wrong(slate: Slate, rows: torch.Tensor, chosen: Any) -> torch.Tensor:
        ended = write(slate, rows, chosen)
        slate.old_logprobs.mul_(1.001)
        return ended

    driver, records = start(**settings)
    driver.advance("update", 2, never)
    assert not records_of(Notice, records)
    monkeypatch.setattr(Slate, "write", wrong)
    driver.advance("update", 1, never)
    driver.close()
    (said,) = records_of(Notice, records)
    assert said.level == "warning"
    assert "the sampler's own pass over an answer of update 3 is off" in said.text


def test_a_plain_run_has_no_sampler(start: Start, tmp_path: Path) -> None:
    driver, records = start(max_staleness=0, top_p=0.9)
    driver.advance("update", 2, never)
    driver.close()
    assert driver._state.sampler == Sampler()
    assert not [n for n in load_file(tmp_path / "run.snapshots" / "000002.safetensors") if n.startswith("sampler")]
    for sampled in sampled_of(records):
        assert (sampled.sampling_logprobs, sampled.sampling_top_logprobs, sampled.versions) == (None, None, None)
    assert not {"mismatch_kl", "sample/staleness_mean"} & records_of(Finished, records)[0].metrics.keys()


def test_candidates_are_those_of_the_sampler_as_both_see_them(start: Start) -> None:
    driver, records = start(sampler_lag=1, learning_rate=3e-3, candidates=6)
    models = played(driver, 2)
    driver.close()
    sampled = sampled_of(records)[1]
    assert sampled.sampling_top_logprobs is not None
    assert sampled.sampling_logprobs is not None
    assert (np.diff(sampled.top_logprobs) <= 0).all()
    place = [list(top).index(i) if i in top else -1 for top, i in zip(sampled.top_ids, sampled.token_ids, strict=True)]
    known = [(at, k) for at, k in enumerate(place) if k >= 0]
    assert known
    for at, k in known:
        assert sampled.top_logprobs[at, k] == pytest.approx(sampled.old_logprobs[at], abs=1e-5)
        assert sampled.sampling_top_logprobs[at, k] == pytest.approx(sampled.sampling_logprobs[at], abs=1e-5)
    entropies = []
    for i, group in enumerate(sampled.group):
        a, b = sampled.prompt_offsets[group : group + 2]
        ids = [*sampled.prompt_ids[a:b], *sampled.token_ids[sampled.offsets[i] : sampled.offsets[i + 1]]]
        with torch.no_grad():
            logits = models[1](input_ids=torch.tensor([ids])).logits[0, b - a - 1 : -1].double()
        entropies.append((-(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1)).numpy())
    np.testing.assert_allclose(sampled.entropy, np.concatenate(entropies), atol=2e-5)
