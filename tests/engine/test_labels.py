"""Pairs labelled by the user: the engine waits for them, keeps them, and repeats what they led to."""

from __future__ import annotations

import io
import queue
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlplay.engine.engine_process import CommandLoop
from rlplay.engine.headless import HeadlessRun
from rlplay.engine.run_report import TextReport
from rlplay.engine.state import Halt
from rlplay.link.messages import COMMANDS, EVENTS, Advance, Pause, Prefer, Rewind, Set, Status, Stop
from rlplay.scenario.schema import Job, Scenario
from rlplay.scenario.script import parse
from rlplay.trace.codec import RECORDS
from rlplay.trace.questions import Judge, Judged
from rlplay.trace.records import AnyRecord, Credited, Labelled, Sampled, Scored, Stepped
from rlplay.trace.run import Run
from rlplay.trace.runfile import RunReader
from rlplay.ui.app import RlplayApp
from rlplay.ui.labels.label_screen import LabelScreen
from rlplay.ui.session.sources import LiveSource
from tests.engine.conftest import SMALL

Start = Callable[..., Any]
GIVEN = {"algorithm": "dpo", "labeller": "user", "num_prompts": 3}
pytestmark = pytest.mark.usefixtures("opinionated")


def never() -> bool:
    return False


def _steps(records: list[AnyRecord], update: int) -> list[bytes]:
    return [RECORDS.encode(r) for r in records if isinstance(r, Stepped) and r.update == update]


def _answer(driver: Any, *choices: str) -> None:
    for pair, choice in enumerate(choices):
        driver.prefer(pair, choice)


def test_an_update_waits_until_every_pair_has_a_label(start: Start) -> None:
    driver, records = start(**GIVEN)
    with pytest.raises(ValueError, match="pair 0 isn't awaiting a label"):
        driver.prefer(0, "a")
    driver.advance("update", 1, never)
    assert (driver.status().update, driver.status().phase) == (0, "score")
    assert driver.asks() == [0, 1, 2]
    assert isinstance(records[-1], Sampled)
    driver.advance("forever", 1, never)
    assert driver.asks() == [0, 1, 2]
    driver.prefer(1, "b")
    driver.prefer(0, "a")
    assert driver.asks() == [2]
    driver.prefer(1, "a")  # on second thoughts
    with pytest.raises(ValueError, match="pair 3 isn't awaiting a label"):
        driver.prefer(3, "a")
    driver.prefer(2, "skip")
    assert [(r.pair, r.choice) for r in records if isinstance(r, Labelled)] == [
        (1, "b"), (0, "a"), (1, "a"), (2, "skip"),
    ]  # fmt: skip
    driver.advance("update", 1, never)
    assert driver.status().update == 1
    (scored,) = [r for r in records if isinstance(r, Scored)]
    assert scored.roles == ["chosen", "rejected", "chosen", "rejected", "", ""]
    (step,) = [r for r in records if isinstance(r, Stepped)]
    assert step.rows.tolist() == [0, 2, 1, 3]
    assert driver.asks() == []
    driver.close()


def test_labels_are_kept_for_going_back_and_resuming_and_forgotten_when_undone(start: Start, tmp_path: Path) -> None:
    driver, records = start(**GIVEN)
    for choices in ("aba", "bba", "abb"):
        driver.advance("update", 1, never)
        _answer(driver, *choices)
        driver.advance("update", 1, never)
    second = _steps(records, 2)
    driver._store.forget_after(1)  # so that update 2 has to be repeated
    driver.rewind(2)
    assert driver.asks() == []
    driver.rewind(1)
    del records[:]
    driver.advance("update", 1, never)
    assert driver.asks() == [0, 1, 2]
    _answer(driver, *"bba")
    driver.advance("update", 1, never)
    assert _steps(records, 2) == second
    driver.close()
    with RunReader(tmp_path / "run.rlplay") as reader:
        assert "".join(label.choice for label in reader.every(Labelled)) == "ababba"
    resumed, _ = start(resume=True, **GIVEN)
    resumed._store.forget_after(1)
    resumed.rewind(2)
    assert resumed.status().update == 2
    resumed.close()


def test_an_update_in_which_every_pair_is_left_out_is_asked_again(start: Start) -> None:
    driver, records = start(**GIVEN)
    driver.advance("update", 1, never)
    _answer(driver, "skip", "skip", "skip")
    with pytest.raises(Halt, match="every pair of update 1 was left out"):
        driver.advance("update", 1, never)
    driver.advance("update", 1, never)
    assert driver.asks() == [0, 1, 2]
    driver.set({"labeller": "gold"})  # or let the gold score decide after all
    driver.advance("update", 1, never)
    assert driver.status().update == 1
    driver.close()
    assert [r for r in records if isinstance(r, Scored)][-1].roles.count("chosen") == 3


def test_labels_cross_the_link() -> None:
    for command in (Prefer(2, "skip"), Judge(2)):
        assert COMMANDS.decode(COMMANDS.encode(command)) == command
    status = Status(False, 0, "score", {}, False, [0, 2], True)
    for event in (status, Judged(1, 3, scores={"implicit reward": (0.5, -1.0)})):
        assert EVENTS.decode(EVENTS.encode(event)) == event


def _sums(sampled: Any, flat: Any) -> list[float]:
    return [float(part.sum()) for part in np.split(flat, sampled.offsets[1:-1])]


@pytest.mark.parametrize("algorithm", ["dpo", "simpo", "reward-model"])
def test_the_models_view_of_a_pair_is_that_of_the_update_and_changes_nothing(start: Start, algorithm: str) -> None:
    runs = []
    for asked in (True, False):
        driver, records = start(f"{asked}.rlplay", **GIVEN | {"algorithm": algorithm, "learning_rate": 5e-2})
        for _ in range(2):
            driver.advance("update", 1, never)
            judged = [driver.judge(pair) for pair in range(3)] if asked else []
            _answer(driver, *"aba")
            runs.append(judged)
            driver.advance("update", 1, never)
        with pytest.raises(ValueError, match="pair 0 isn't awaiting a label"):
            driver.judge(0)
        driver.close()
        runs.append(_steps(records, 1) + _steps(records, 2))
        sampled, credited = (
            next(r for r in records if isinstance(r, kind) and r.update == 2 and getattr(r, "done", True))
            for kind in (Sampled, Credited)
        )
    assert runs[2] == runs[5], "the same updates, whether somebody asked or not"
    seen = [judged.scores for judged in runs[1]]
    assert [x for scores in seen for x in scores["log-probability"]] == pytest.approx(
        _sums(sampled, sampled.old_logprobs), abs=1e-4
    )
    if algorithm == "reward-model":
        expected = credited.values[sampled.offsets[1:] - 1]
        assert [judged.scores["reward model"] for judged in runs[0]] == [(0, 0)] * 3, "not trained yet"
    else:
        expected = _sums(sampled, credited.implicit_rewards)
    name = "reward model" if algorithm == "reward-model" else "implicit reward"
    found = [x for scores in seen for x in scores[name]]
    assert found == pytest.approx(expected, abs=1e-5)
    assert max(map(abs, found)) > 1e-3, "something was learned"
    (task_score,) = {scored for scored in seen[0] if scored.startswith(("hidden ", "reward "))} - {name}
    assert task_score


def test_answers_to_imitate_imply_no_reward(start: Start) -> None:
    driver, _ = start(**GIVEN | {"algorithm": "sft"})
    driver.advance("update", 1, never)
    scores = driver.judge(0).scores
    assert "log-probability" in scores
    assert "implicit reward" not in scores


class OneByOne(queue.Queue[Any]):
    """A command comes only when the one before it has been carried out."""

    def get_nowait(self) -> Any:
        raise queue.Empty


class Wire:
    """A link to a session: commands in, events out."""

    def __init__(self, *commands: Any) -> None:
        self.commands = OneByOne()
        for command in commands:
            self.commands.put(command)
        self.events: list[Any] = []
        self.send = self.events.append


def test_with_the_last_label_the_engine_goes_on_by_itself(start: Start) -> None:
    driver, _ = start(**GIVEN)
    labels = [Prefer(0, "a"), Judge(1), Prefer(1, "b"), Prefer(2, "skip")]
    wire = Wire(Advance("update", 2), *labels, *labels, Stop())
    assert CommandLoop(wire, driver).serve() == 0  # type: ignore[arg-type]
    statuses = [event for event in wire.events if isinstance(event, Status)]
    assert [(s.update, s.running, s.waits, s.asks) for s in statuses if not s.running] == [
        (0, False, False, []),
        *((done, False, True, asks) for done in (0, 1) for asks in ([0, 1, 2], [1, 2], [2])),
        (2, False, False, []),
    ]
    assert [event.pair for event in wire.events if isinstance(event, Judged)] == [1, 1]


@pytest.mark.parametrize("other", [Pause(), Rewind(0)])
def test_what_waits_can_be_called_off(start: Start, other: Any) -> None:
    driver, _ = start(**GIVEN)
    wire = Wire(Advance("forever"), other, *(Prefer(pair, "a") for pair in range(3)), Stop())
    CommandLoop(wire, driver).serve()  # type: ignore[arg-type]
    last = [event for event in wire.events if isinstance(event, Status)][-1]
    assert (last.update, last.running, last.waits) == (0, False, False)


def test_a_labeller_who_gives_up_lets_the_gold_score_go_on(start: Start) -> None:
    driver, _ = start(**GIVEN)
    wire = Wire(Advance("update"), Prefer(0, "a"), Set({"labeller": "gold"}), Stop())
    CommandLoop(wire, driver).serve()  # type: ignore[arg-type]
    assert driver.status().update == 1


async def _until(pilot: Any, condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError(f"never came; the screen is {pilot.app.screen}")


async def test_the_user_labels_on_the_screen_and_an_update_learns_from_it(micro_model: Path, tmp_path: Path) -> None:
    scenario = Scenario(
        name="micro", title="Micro", question="", model=str(micro_model), task="questions",
        settings=SMALL | GIVEN | {"learning_rate": 5e-2}, eval_every=0, max_updates=2,
    )  # fmt: skip
    run = tmp_path / "run.rlplay"
    app = RlplayApp(LiveSource(Job(scenario, str(run), device="cpu", threads=1)))
    async with app.run_test(size=(120, 35)) as pilot:
        await pilot.press("space")  # long before there is an engine
        for done in (1, 2):
            await _until(pilot, lambda: isinstance(app.screen, LabelScreen) and app.screen.labelling.pairs == 3)
            await pilot.press("right")
            await _until(pilot, lambda: app.screen.labelling.judged is not None)  # type: ignore[attr-defined]
            one, other = app.screen.labelling.judged.scores["implicit reward"]  # type: ignore[attr-defined]
            assert (abs(one - other) > 1e-3) == (done == 2), "learned from the first update's labels"
            await pilot.press("left", "U")
            await _until(pilot, lambda done=done: app.play.session.last_finished == done)
    with RunReader(run) as reader:
        assert [label.choice for label in reader.every(Labelled)] == ["b", "a", "skip"] * 2
        update = reader.load(1)
        assert update.scored.roles == ["rejected", "chosen", "chosen", "rejected", "", ""]
        assert update.steps[0].rows.tolist() == [1, 2, 0, 3]


def test_a_script_labels_pairs_and_a_forgotten_label_is_an_error(start: Start) -> None:
    driver, records = start(**GIVEN)
    player = HeadlessRun(TextReport(io.StringIO(), io.StringIO()), None, Run())
    player.play(parse([{"phase": 1}, {"prefer": ["b", "a"]}, {"prefer": "b"}, {"update": 1}]), driver)
    assert driver.status().update == 1
    assert [r.choice for r in records if isinstance(r, Labelled)] == ["b", "a", "b"]
    with pytest.raises(ValueError, match="3 pairs of update 2 wait for labels"):
        player.play(parse([{"update": 2}]), driver)
    driver.close()
    for wrong in ("c", [], ["a", 1], None):
        with pytest.raises(ValueError, match="prefer takes a, b or skip"):
            parse([{"prefer": wrong}])
