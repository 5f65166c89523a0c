"""Pipelines: the policy is handed on, and going back across a border or resuming changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
import torch

from rlplay.engine import snapshots
from rlplay.engine.driver import Driver
from rlplay.engine.reward_model import RewardModel
from rlplay.scenario.schema import Job, Scenario, Stage
from rlplay.trace.codec import RECORDS
from rlplay.trace.history import History
from rlplay.trace.records import AnyRecord, Finished, Rewound, Sampled, Scored, Staged, Stepped
from rlplay.trace.runfile import RunReader
from tests.engine.conftest import SMALL, score_by_opinion

Begin = Callable[..., tuple[Driver, list[AnyRecord]]]
STAGES = [
    Stage("imitate", 2, {"algorithm": "sft", "learning_rate": 5e-3}),
    Stage("judge", 2, {"algorithm": "reward-model", "learning_rate": 5e-3}),
    Stage("maximise", 3, {"algorithm": "rlhf-ppo", "reward_weights": {"reward_model": 1}, "beta": 0.2}),
]
pytestmark = pytest.mark.usefixtures("opinionated", "trusts_all")


def never() -> bool:
    return False


def begun(model: Path, run: Path, resume: bool = False) -> tuple[Driver, list[AnyRecord]]:
    """A loaded driver of the pipeline and the list its records go to."""
    scenario = Scenario(
        name="micro", title="Micro", question="", model=str(model), task="questions",
        settings=SMALL, stages=STAGES, max_updates=7, eval_every=2, eval_prompts=2,
    )  # fmt: skip
    records: list[AnyRecord] = []
    driver = Driver(Job(scenario, str(run), device="cpu", threads=1, resume=resume), records.append)
    driver.load(lambda what, fraction: None)
    return driver, records


@pytest.fixture
def begin(micro_model: Path, tmp_path: Path) -> Begin:
    """Makes a driver of the pipeline whose run is in the test's folder."""
    return lambda run="run.rlplay", resume=False: begun(micro_model, tmp_path / run, resume)


class Played(NamedTuple):
    """The whole pipeline, played once without a break: its driver and records, and what each update was and led to."""

    driver: Driver
    records: list[AnyRecord]
    numbers: dict[int, list[bytes]]
    weights: list[torch.Tensor]


@pytest.fixture(scope="module")
def played(micro_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """A test that goes back in it plays it to its end again."""
    with pytest.MonkeyPatch.context() as patch:
        score_by_opinion(patch)
        driver, records = begun(micro_model, tmp_path_factory.mktemp("played") / "run.rlplay")
        driver.advance("update", 7, never)
        numbers = {update: _numbers(records, update) for update in range(1, 8)}
        yield Played(driver, records, numbers, _weights(driver._state.lm.policy))
        driver.close()


def _numbers(records: list[AnyRecord], update: int) -> list[bytes]:
    """The records of an update's last playing, but for what the clock decides."""
    kept = [r for r in records if r.update == update and isinstance(r, (Scored, Stepped))]
    done = [r for r in records if r.update == update and isinstance(r, Sampled) and r.done]
    return [RECORDS.encode(r) for r in done[-1:] + kept[-9:]]


def _weights(module: Any) -> list[torch.Tensor]:
    return [p.detach().clone() for p in module.parameters()]


def _same(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(some, others, strict=True))


def test_each_stage_begins_with_the_policy_of_the_one_before_as_its_reference(begin: Begin) -> None:
    driver, records = begin()
    state = driver._state
    base = _weights(state.lm.reference)
    driver.advance("update", 1, never)
    assert _same(base, _weights(state.lm.reference))
    assert not _same(base, _weights(state.lm.policy))
    driver.advance("update", 1, never)
    tuned = _weights(state.lm.policy)
    assert _same(tuned, _weights(state.lm.reference))
    assert driver.status().settings.algorithm == "reward-model"
    driver.advance("update", 2, never)
    assert _same(tuned, _weights(state.lm.policy))
    assert isinstance(state.reward_model, RewardModel)
    judge = _weights(state.reward_model)
    driver.advance("update", 3, never)
    assert not _same(tuned, _weights(state.lm.policy))
    assert _same(tuned, _weights(state.lm.reference))
    assert _same(judge, _weights(state.reward_model))
    assert driver.status().finished
    driver.close()
    begun = [(r.update, r.index, r.stages, r.name) for r in records if isinstance(r, Staged)]
    assert begun == [(1, 0, 3, "imitate"), (3, 1, 3, "judge"), (5, 2, 3, "maximise")]
    scored = [r for r in records if isinstance(r, Scored) and r.update >= 5]
    assert all(list(r.parts) == ["reward_model"] and list(r.gold) == ["helpful"] for r in scored)
    finished = {r.update: r.metrics for r in records if isinstance(r, Finished)}
    assert "gold/helpful/mean" in finished[6]
    assert "gold/helpful/mean" not in finished[2]  # its answers are not the policy's


def quick(numbers: Iterable[int], some: set[int]) -> list[Any]:
    """All numbers as parameters of a test; those that are not in `some` are slow."""
    return [pytest.param(number, marks=[pytest.mark.slow] * (number not in some)) for number in numbers]


@pytest.mark.parametrize("target", quick(range(8), {1, 4}))
def test_going_back_to_anywhere_repeats_the_same_updates_bit_for_bit(played: Played, target: int) -> None:
    driver, records = played.driver, played.records
    driver.rewind(target)
    assert isinstance(records[-1], Rewound)
    del records[:]
    driver.advance("update", 7 - target, never)
    for update in range(target + 1, 8):
        assert _numbers(records, update) == played.numbers[update]
    assert _same(played.weights, _weights(driver._state.lm.policy))


@pytest.mark.parametrize("reached", quick(range(1, 6), {2, 3}))
def test_a_run_resumed_after_a_crash_goes_on_as_if_nothing_had_happened(
    begin: Begin, played: Played, reached: int
) -> None:
    driver, _ = begin()
    driver.advance("update", reached, never)
    driver.advance("phase", 1, never)
    driver._writer.close()  # as after kill -9: nothing else is done
    resumed, later = begin(resume=True)
    assert resumed.status().update == reached
    resumed.advance("update", 7 - reached, never)
    resumed.close()
    for update in range(reached + 1, 8):
        assert _numbers(later, update) == played.numbers[update]
    assert _same(_weights(resumed._state.lm.policy), played.weights)
    assert resumed.status().settings == played.driver.status().settings


def test_the_starts_of_stages_outlive_every_thinning(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "BUDGET", 1)
    driver, records = begin()
    driver.advance("update", 7, never)
    assert set(driver._store._kept()) >= {0, 2, 4}
    sixth = _numbers(records, 6)
    driver.rewind(5)
    driver.advance("update", 1, never)
    assert _numbers(records, 6) == sixth
    driver.close()


def test_a_stage_whose_start_could_not_be_kept_is_reached_from_before(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, records = begin()
    driver.advance("update", 5, never)
    fifth = _numbers(records, 5)
    driver._store.path(4).unlink()
    driver.rewind(4)
    driver.advance("update", 1, never)
    assert _numbers(records, 5) == fifth
    driver.close()


def test_settings_and_their_changes_belong_to_their_stage(begin: Begin, tmp_path: Path) -> None:
    driver, records = begin()
    driver.advance("update", 1, never)
    driver.set({"learning_rate": 1e-4})
    driver.advance("update", 2, never)
    assert driver.status().settings.learning_rate == 5e-3
    driver.advance("update", 1, never)
    driver.set({"beta": 0.4})  # between two stages: it holds for the one that has begun
    driver.advance("update", 1, never)
    assert driver.status().settings.beta == 0.4
    driver.rewind(4)
    assert driver.status().settings.beta == 0.4
    driver.rewind(3)
    driver.advance("update", 1, never)
    assert driver.status().settings.beta == 0.2
    driver.close()
    with RunReader(tmp_path / "run.rlplay") as reader:
        held = [reader.settings(update) for update in (1, 2, 3, 4)]
        marks = reader.history().marks
    assert [s["algorithm"] for s in held] == ["sft", "sft", "reward-model", "reward-model"]
    assert [s["learning_rate"] for s in held] == [5e-3, 1e-4, 5e-3, 5e-3]
    history = History()
    for record in records:
        history.add(record)
    assert marks == history.marks
    assert "stage judge" in [mark.text for mark in marks]


def test_records_of_stages_and_labels_survive_the_file(begin: Begin, tmp_path: Path) -> None:
    driver, records = begin()
    driver.advance("update", 3, never)
    driver.close()
    staged = [r for r in records if isinstance(r, Staged)]
    assert [RECORDS.decode(RECORDS.encode(r)) for r in staged] == staged
    with RunReader(tmp_path / "run.rlplay") as reader:
        assert [c for c in reader.changes() if isinstance(c, Staged)] == staged
        assert msgspec.yaml.decode(reader.started.scenario_text, type=Scenario).stages == STAGES
        update = reader.load(3)
    assert update.steps[0].margins is not None
    np.testing.assert_array_equal(update.steps[0].margins, [r for r in records if isinstance(r, Stepped)][2].margins)


def test_a_stage_learns_from_its_own_prompts_and_rewards(start: Begin, tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text('{"q": "Say 1."}\n{"q": "Say 2."}\n')
    (tmp_path / "mine.py").write_text(
        "def longest(completions, **columns):\n    return [len(c) for c in completions]\n"
    )
    own = {
        "dataset": str(tmp_path / "mine.jsonl"),
        "columns": {"prompt": "q"},
        "reward": [f"{tmp_path / 'mine.py'}:longest"],
    }
    stages = [Stage("first", 2, {}), Stage("mine", 2, {}, **own)]
    driver, records = start(scenario={"stages": stages, "max_updates": 4}, num_prompts=2)
    driver.advance("update", 4, lambda: False)
    driver.rewind(1)
    driver.advance("update", 2, lambda: False)
    driver.close()
    asked = [(r.update, any("Say" in p for p in r.prompts)) for r in records if isinstance(r, Sampled) and r.done]
    assert asked == [(1, False), (2, False), (3, True), (4, True), (2, False), (3, True)]
    scored = [list(r.parts) for r in records if isinstance(r, Scored)]
    assert scored == [["uneven"]] * 2 + [["longest"]] * 2 + [["uneven"], ["longest"]]
    again, more = start(resume=True, scenario={"stages": stages, "max_updates": 4}, num_prompts=2)
    again.advance("update", 1, lambda: False)
    again.close()
    assert [list(r.parts) for r in more if isinstance(r, Scored)] == [["longest"]]
