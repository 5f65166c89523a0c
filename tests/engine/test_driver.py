"""Stepping, turning knobs, going back, resuming: the same numbers, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import SafetensorError

from rlplay.engine import snapshots
from rlplay.engine.driver import Driver
from rlplay.engine.state import Halt
from rlplay.trace.codec import RECORDS
from rlplay.trace.records import (
    AnyRecord,
    Changed,
    Credited,
    Evaluated,
    Finished,
    Notice,
    Rewound,
    Sampled,
    Scored,
    Stepped,
)  # fmt: skip
from rlplay.trace.runfile import RunFileError, RunReader
from rlplay.trace.settings_timeline import effective_from

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


def never() -> bool:
    return False


def _numbers(records: list[AnyRecord], update: int) -> list[bytes]:
    """The records of an update as bytes, without what the clock wrote and how closely we looked."""
    kept = [r for r in records if r.update == update and isinstance(r, (Scored, Credited, Stepped))]
    done = [r for r in records if r.update == update and isinstance(r, Sampled) and r.done]
    return [RECORDS.encode(r) for r in done[-1:] + kept[-8:]]


def test_an_update_is_in_the_file_before_anyone_hears_of_it(start: Start, tmp_path: Path) -> None:
    driver, _ = start()
    there = []

    def hear(record: AnyRecord) -> None:
        if isinstance(record, Finished):
            with RunReader(tmp_path / "run.rlplay") as run:
                there.append(record.update in run.updates())

    driver._sink = hear
    driver.advance("update", 2, never)
    driver.close()
    assert there == [True, True]


def test_each_way_of_stepping_stops_where_it_says(start: Start) -> None:
    driver, records = start(num_iterations=2)
    driver.advance("token", 2, never)
    assert [type(r) for r in records[1:]] == [Sampled, Sampled]
    assert not records[-1].done  # type: ignore[union-attr]
    driver.advance("phase", 1, never)
    assert isinstance(records[-1], Sampled)
    assert records[-1].done
    assert (driver.status().update, driver.status().phase) == (0, "score")
    driver.advance("phase", 2, never)
    assert isinstance(records[-1], Credited)
    driver.advance("step", 1, never)
    assert isinstance(records[-1], Stepped)
    driver.advance("update", 1, never)
    assert isinstance(records[-1], Finished)
    assert set(records[-1].timings) >= {"sample", "score", "credit", "forward", "backward", "step", "look"}
    driver.advance("forever", 1, never)
    assert driver.status().update == 4
    assert driver.status().finished


def test_a_run_can_be_stopped_at_any_token_and_goes_on_as_if_it_had_not(start: Start) -> None:
    driver, records = start()
    driver.advance("update", 1, never)
    other, interrupted = start("other.rlplay")
    for _ in range(100):
        other.advance("forever", 1, lambda: True)
        if other.status().update:
            break
    assert _numbers(records, 1) == _numbers(interrupted, 1)


@pytest.mark.parametrize("algorithm", ["grpo", "ppo", "vineppo", "trpo"])
def test_rewinding_repeats_the_same_updates_bit_for_bit(start: Start, algorithm: str) -> None:
    driver, records = start(algorithm=algorithm, vine_samples=2)
    driver.advance("update", 3, never)
    first = [_numbers(records, n) for n in (1, 2, 3)]
    records.clear()
    driver.rewind(1)
    assert isinstance(records[-1], Rewound)
    assert records[-1].abandoned == 3
    driver.advance("update", 2, never)
    assert [_numbers(records, n) for n in (2, 3)] == first[1:]
    records.clear()
    driver.rewind(0)
    driver.advance("update", 1, never)
    assert _numbers(records, 1) == first[0]


@pytest.mark.parametrize(("phases", "since"), [(3, 1), (4, 2)])
def test_a_change_takes_effect_in_the_announced_update(start: Start, phases: int, since: int) -> None:
    driver, records = start()
    driver.advance("phase", phases, never)
    driver.set({"num_iterations": 3})
    driver.advance("update", 2, never)
    change = next(r for r in records if isinstance(r, Changed))
    steps = [sum(isinstance(r, Stepped) and r.update == update for r in records) for update in (1, 2)]
    assert (change.update, effective_from(change)) == (1, since)
    assert next(update for update, count in zip((1, 2), steps, strict=True) if count > 1) == since


def test_going_back_in_the_middle_of_an_update_gives_it_up(start: Start) -> None:
    driver, records = start(num_iterations=3)
    driver.advance("update", 1, never)
    driver.advance("step", 2, never)
    driver.rewind(1)
    records.clear()
    driver.advance("update", 1, never)
    other, undisturbed = start("other.rlplay", num_iterations=3)
    other.advance("update", 2, never)
    assert _numbers(records, 2) == _numbers(undisturbed, 2)
    with pytest.raises(ValueError, match="has reached update 2"):
        driver.rewind(3)


def test_a_rewind_without_its_snapshot_replays_knob_changes_where_they_were_made(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, records = start()
    driver.advance("update", 1, never)
    driver.advance("phase", 1, never)
    driver.set({"scale_rewards": "none"})  # after sampling, before credit
    driver.advance("update", 1, never)
    driver.set({"learning_rate": 5e-3})
    driver.advance("update", 1, never)
    changes = [r for r in records if isinstance(r, Changed)]
    assert [(c.update, c.phase, c.name) for c in changes] == [
        (2, "score", "scale_rewards"), (3, "sample", "learning_rate"),
    ]  # fmt: skip
    third = _numbers(records, 3)
    monkeypatch.setattr(driver._store, "nearest", lambda update: 0)
    driver.rewind(2)
    assert driver.status().settings.learning_rate == 5e-3
    records.clear()
    driver.advance("update", 1, never)
    assert _numbers(records, 3) == third
    driver.rewind(1)
    assert driver.status().settings.scale_rewards == "group"


def test_settings_that_need_each_other_are_changed_together_or_not_at_all(start: Start) -> None:
    driver, records = start()
    with pytest.raises(ValueError, match="returns=gae needs baseline=value"):
        driver.set({"beta": 0.1, "returns": "gae"})
    assert not [r for r in records if isinstance(r, Changed)]
    driver.set({"returns": "gae", "baseline": "value"})
    made = [(r.name, r.value) for r in records if isinstance(r, Changed)]
    assert made == [("returns", "to_go"), ("baseline", "value"), ("returns", "gae")]
    settings = driver.status().settings
    assert (settings.beta, settings.returns, settings.baseline) == (0.0, "gae", "value")


def test_a_change_inside_a_phase_waits_for_the_next(start: Start) -> None:
    driver, records = start(num_iterations=2)
    driver.advance("step", 1, never)
    driver.set({"num_iterations": 1})
    driver.advance("update", 1, never)
    assert sum(isinstance(r, Stepped) for r in records) == 2
    with pytest.raises(ValueError, match="got -1"):
        driver.set({"epsilon": -1})
    with pytest.raises(ValueError, match="evenn"):
        driver.set({"reward_weights": {"evenn": 1}})


def test_a_resumed_run_goes_on_as_if_it_had_never_stopped(start: Start) -> None:
    driver, _ = start()
    driver.advance("update", 1, never)
    driver.set({"beta": 0.1})
    driver.advance("update", 1, never)
    driver.close()
    resumed, later = start(resume=True)
    assert resumed.status().update == 2
    assert resumed.status().settings.beta == 0.1
    resumed.advance("update", 1, never)
    other, undisturbed = start("other.rlplay")
    other.advance("update", 1, never)
    other.set({"beta": 0.1})
    other.advance("update", 2, never)
    assert _numbers(later, 3) == _numbers(undisturbed, 3)


def test_a_failing_reward_leaves_the_run_as_it_was(start: Start) -> None:
    driver, records = start()
    driver.advance("update", 1, never)
    driver.advance("phase", 1, never)
    rewards = driver._state.task.rewards
    good = rewards["uneven"]
    rewards["uneven"] = lambda completion_ids, **columns: [float("nan")] * len(completion_ids)
    with pytest.raises(Halt, match="gave nan for completion 0"):
        driver.advance("update", 1, never)
    rewards["uneven"] = lambda completion_ids: [1.0]
    with pytest.raises(Halt, match="gave 1 score; it must give a list of 12"):
        driver.advance("update", 1, never)
    rewards["uneven"] = lambda prompts: 1 / 0
    with pytest.raises(Halt, match="ZeroDivisionError"):
        driver.advance("update", 1, never)
    rewards["uneven"] = lambda completion_ids: [10**400] * len(completion_ids)
    with pytest.raises(Halt, match="too large to compute with; scale it down"):
        driver.advance("update", 1, never)
    rewards["uneven"] = good
    driver.advance("update", 1, never)
    other, undisturbed = start("other.rlplay")
    other.advance("update", 2, never)
    assert _numbers(records, 2) == _numbers(undisturbed, 2)


def test_a_loss_that_is_not_finite_stops_before_the_weights_change(start: Start) -> None:
    driver, _ = start()
    driver.advance("phase", 3, never)
    before = {name: p.detach().clone() for name, p in driver._state.parameters.items()}
    advantages = driver._moments.gi_yieldfrom.gi_frame.f_locals["batch"].advantages  # type: ignore[attr-defined]
    advantages[0, 0] = float("inf")
    with pytest.raises(Halt, match="The weights were not changed"):
        driver.advance("step", 1, never)
    for name, parameter in driver._state.parameters.items():
        np.testing.assert_array_equal(parameter.detach().numpy(), before[name].numpy())


def test_an_evaluation_belongs_to_its_update_also_when_it_is_repeated(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, records = start(eval_every=2)
    driver.advance("update", 3, never)
    kinds = [type(r).__name__ for r in records if isinstance(r, (Finished, Evaluated))]
    assert kinds == ["Evaluated", "Finished", "Evaluated", "Finished", "Finished"]
    third = _numbers(records, 3)
    monkeypatch.setattr(driver._store, "nearest", lambda update: 0)
    driver.rewind(2)
    records.clear()
    driver.advance("update", 1, never)
    assert driver.status().update == 3
    assert _numbers(records, 3) == third


def test_a_run_that_went_back_is_evaluated_at_its_new_temperature_once_it_goes_on(start: Start) -> None:
    driver, records = start(eval_every=2)
    driver.advance("update", 1, never)
    driver.rewind(0)
    driver.set({"temperature": 0.05})
    before = [record for record in records if isinstance(record, Evaluated)]
    assert len(before) == 1, "until then the held-out answers are those of the old temperature"
    driver.advance("phase", 1, never)
    after = [record for record in records if isinstance(record, Evaluated)]
    assert [record.update for record in after] == [0, 0]
    assert after[1].completions != before[0].completions
    driver.close()


def test_a_resumed_run_forgets_the_changes_that_were_made_after_its_snapshot(start: Start) -> None:
    driver, _ = start()
    driver.advance("update", 1, never)
    driver.advance("phase", 1, never)
    driver.set({"scale_rewards": "none"})
    driver.close()
    resumed, _ = start(resume=True)
    assert resumed.status().settings.scale_rewards == "group"


def test_closing_between_optimizer_steps_keeps_no_half_changed_weights(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "BUDGET", 1)  # so small that snapshots are rare
    driver, _ = start(num_iterations=2)
    driver.advance("update", 2, never)
    driver.advance("step", 1, never)
    driver.close()
    resumed, _ = start(resume=True)
    assert resumed.status().update < 2


def test_an_update_that_has_ended_can_be_resumed_from_its_end(start: Start) -> None:
    """Whenever the process is killed: no finished update has to be done again."""
    driver, _ = start()
    kept: list[tuple[int, list[int]]] = []

    def sink(record: AnyRecord) -> None:
        if isinstance(record, Finished):
            kept.append((record.update, driver._store.kept()))

    driver._sink = sink
    driver.advance("update", 3, never)
    assert [snapshots[-1] for _, snapshots in kept] == [update for update, _ in kept] == [1, 2, 3]


def test_a_snapshot_of_an_update_whose_end_is_not_on_record_is_forgotten(start: Start) -> None:
    whole, expected = start(run="whole.rlplay")
    whole.advance("update", 3, never)
    driver, _ = start()
    driver.advance("update", 1, never)
    append = driver._writer.append

    def killed(record: AnyRecord) -> None:
        if isinstance(record, Finished):
            raise KeyboardInterrupt
        append(record)

    driver._writer.append = killed  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        driver.advance("update", 1, never)
    assert driver._store.kept() == [1, 2]
    driver._writer.close()
    resumed, records = start(resume=True)
    assert (resumed.status().update, resumed._store.kept()) == (1, [1])
    resumed.advance("update", 2, never)
    done = [r for r in records if isinstance(r, Finished)]
    for one, other in zip(done, [r for r in expected if isinstance(r, Finished)][1:], strict=True):
        np.testing.assert_array_equal(one.logprobs, other.logprobs)


def test_a_snapshot_that_cannot_be_written_is_reported_and_the_run_goes_on(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> int:
        raise OSError("no space left on device")

    driver, records = start()
    monkeypatch.setattr(snapshots, "save_file", full)
    driver.advance("update", 2, never)
    assert (driver.status().update, driver.status().phase) == (2, "sample")
    notices = [r for r in records if isinstance(r, Notice)]
    assert len(notices) == 2
    assert "no space left" in notices[0].text


def test_the_status_names_the_last_update_that_is_on_disk(start: Start, monkeypatch: Any) -> None:
    driver, _ = start()
    assert driver.status().kept == 0
    driver.advance("update", 2, never)
    assert driver.status().kept == 2
    driver.rewind(1)
    assert driver.status().kept == 1

    def full(*arguments: object) -> int:
        raise OSError("no space left on device")

    with monkeypatch.context() as filled:
        filled.setattr(snapshots, "save_file", full)
        driver.advance("update", 1, never)
    assert (driver.status().update, driver.status().kept) == (2, 1)
    driver.close()
    resumed, _ = start(resume=True)
    assert resumed.status().kept == 2
    resumed.close()


def test_a_disk_that_is_full_when_it_ends_costs_the_snapshot_only(start: Start, monkeypatch: Any) -> None:
    driver, records = start()
    driver.advance("update", 1, never)
    driver._store.forget_after(0)

    def full(*_: Any) -> None:
        raise SafetensorError("No space left on device")

    monkeypatch.setattr("rlplay.engine.snapshots.save_file", full)
    driver.close()
    assert isinstance(records[-1], Notice)
    assert "no snapshot of update 1 (No space left on device); free some disk space" in records[-1].text
    with pytest.raises(RunFileError):
        driver.note("info", "the run file is closed")


def test_held_out_answers_are_recorded_with_the_columns_of_their_prompts(start: Callable[..., Any]) -> None:
    driver, records = start(eval_every=1)
    driver.advance("update", 1, lambda: False)
    held_out = driver._state.task.held_out[:4]
    for record in (record for record in records if isinstance(record, Evaluated)):
        assert record.columns == [example.columns for example in held_out]
        assert len(record.columns) == len(record.prompts) == len(record.completions)
    driver.close()
