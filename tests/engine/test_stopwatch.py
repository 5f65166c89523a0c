"""Where the time of an update goes: parts that exclude each other and add up to the whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator

import pytest
import torch

from rlplay.engine import stopwatch
from rlplay.engine.driver import Driver
from rlplay.engine.stopwatch import Stopwatch, spent_on, timed
from rlplay.trace.parts import OTHER, PARTS
from rlplay.trace.records import AnyRecord, Evaluated, Finished
from tests.engine.test_update import only

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


class Clock:
    """Stands still but for what a test adds to `now`."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(stopwatch, "time", clock := Clock())
    return clock


def test_a_part_inside_another_counts_for_the_inner_one_alone(clock: Clock) -> None:
    @spent_on("backward")
    def back() -> None:
        clock.now += 4

    watch = Stopwatch(torch.device("cpu"))
    with watch:
        clock.now += 1
        with spent_on("credit"):
            clock.now += 2
            with spent_on("reference"):
                clock.now += 8
            back()
            clock.now += 16
        clock.now += 32
        assert watch.take() == {OTHER: 33, "credit": 18, "reference": 8, "backward": 4}
        clock.now += 64
    clock.now += 128
    back()
    assert watch.take() == {OTHER: 64}, "what happens while the stopwatch does not run counts for nothing"


def test_all_of_an_evaluation_is_its_own(clock: Clock) -> None:
    watch = Stopwatch(torch.device("cpu"))
    with watch:
        with spent_on("evaluate"):
            clock.now += 1
            with spent_on("exchange"):
                clock.now += 2
            clock.now += 4
        clock.now += 8
        assert watch.take_part("evaluate") == 7
        assert watch.take() == {OTHER: 8}, "nothing of it counts for the next update"


def test_an_error_leaves_the_part_it_was_raised_in(clock: Clock) -> None:
    @spent_on("score")
    def fail() -> None:
        clock.now += 1
        raise ValueError("no luck")

    watch = Stopwatch(torch.device("cpu"))
    with watch:
        with pytest.raises(ValueError, match="no luck"):
            fail()
        clock.now += 2
    assert watch.take() == {OTHER: 2, "score": 1}


def test_what_happens_between_moments_is_not_theirs(clock: Clock) -> None:
    def moments() -> Generator[int, None, str]:
        for each in range(3):
            clock.now += 1
            yield each
        clock.now += 10
        return "over"

    def whole() -> Generator[int, None, None]:
        assert (yield from timed("evaluate", moments())) == "over"

    watch = Stopwatch(torch.device("cpu"))
    with watch:
        for _ in whole():
            clock.now += 100
    assert watch.take() == {"evaluate": 13, OTHER: 300}


def test_an_accelerator_ends_its_work_in_the_part_that_began_it(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    left = 0.0

    def synchronize() -> None:
        nonlocal left
        clock.now += left
        left = 0.0

    monkeypatch.setattr(torch.accelerator, "synchronize", synchronize)
    watch = Stopwatch(torch.device("mps"))
    with watch:
        with spent_on("forward"):
            left = 5.0
        clock.now += 1
        with spent_on("backward"):
            left = 7.0
    assert watch.take() == {OTHER: 1, "forward": 5, "backward": 7}


class Device:
    """Works off what it was given, one thing after the other, while Python goes on."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.busy_until, self.waits = clock, 0.0, 0

    def work(self, seconds: float) -> None:
        self.busy_until = max(self.busy_until, self.clock.now) + seconds

    def synchronize(self) -> None:
        self.clock.now = max(self.busy_until, self.clock.now)
        self.waits += 1

    def event(self, enable_timing: bool) -> Event:
        assert enable_timing
        return Event(self)


class Event:
    """As `torch.cuda.Event`, of a device made up."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def record(self) -> None:
        self.at = max(self._device.busy_until, self._device.clock.now)

    def elapsed_time(self, later: Event) -> float:
        assert max(self.at, later.at) <= self._device.clock.now, "the device has not come so far"
        return 1000 * (later.at - self.at)


@pytest.fixture
def device(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Device:
    device = Device(clock)
    monkeypatch.setattr(torch.accelerator, "synchronize", device.synchronize)
    monkeypatch.setattr(torch.cuda, "Event", device.event)
    return device


def test_a_gpus_work_counts_for_the_part_that_began_it_without_a_wait(clock: Clock, device: Device) -> None:
    watch = Stopwatch(torch.device("cuda"))
    with watch:
        for _ in range(3):
            with spent_on("forward"):
                device.work(5)
                clock.now += 1
            with spent_on("backward"):
                device.work(7)
        clock.now += 2
        assert (device.waits, clock.now) == (0, 5)
        assert watch.take() == {OTHER: 0, "forward": 15, "backward": 21}
        assert (device.waits, clock.now) == (1, 36), "the parts add up to the whole"
        clock.now += 4
    assert watch.take() == {OTHER: 4}


def test_a_gpu_with_nothing_to_do_counts_for_the_part_that_python_is_in(clock: Clock, device: Device) -> None:
    watch = Stopwatch(torch.device("cuda"))
    with watch:
        with spent_on("forward"):
            device.work(5)
        with spent_on("score"):
            clock.now += 20
        clock.now += 1
    device.work(100)
    device.synchronize()
    with watch:
        with spent_on("evaluate"), spent_on("forward"):
            device.work(3)
        assert watch.take_part("evaluate") == 3
        clock.now += 1
    assert watch.take() == {"forward": 5, "score": 15, OTHER: 2}, "what happens in between counts for nothing"


_POLICY_GRADIENT = {"sample", "score", "reference", "credit", "forward", "backward", "step", "look", "record", OTHER}


@pytest.mark.usefixtures("opinionated")
@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"algorithm": "grpo", "beta": 0.1}, _POLICY_GRADIENT),
        ({"algorithm": "trpo"}, {*_POLICY_GRADIENT, "search"}),
        ({"algorithm": "dpo"}, _POLICY_GRADIENT),
        ({"algorithm": "grpo", "observe": "light"}, _POLICY_GRADIENT - {"reference", "look"}),
    ],
)
def test_the_parts_of_an_update_add_up_to_its_time(
    start: Start, monkeypatch: pytest.MonkeyPatch, settings: dict[str, object], parts: set[str]
) -> None:
    class Processor:
        """Seconds of this process, which other work on the machine does not stretch."""

        perf_counter = staticmethod(time.process_time)

    monkeypatch.setattr(stopwatch, "time", Processor)
    driver, records = start(**settings)
    began = time.process_time()
    driver.advance("update", 2, lambda: False)
    whole = time.process_time() - began
    updates = only(Finished, records)
    after = sum(driver._clock.take().values())  # the snapshot of the last update
    assert sum(update.seconds for update in updates) + after == pytest.approx(whole, rel=0.02)
    assert [sum(update.timings.values()) for update in updates] == [update.seconds for update in updates]
    assert set(updates[0].timings) - {"snapshot"} == parts
    assert set(updates[1].timings) == {*parts, "snapshot"} <= set(PARTS)
    assert updates[1].timings[OTHER] < 0.2 * updates[1].seconds


def test_answers_to_held_out_prompts_are_no_part_of_an_update(start: Start) -> None:
    driver, records = start(eval_every=1)
    driver.advance("update", 1, lambda: False)
    assert [evaluated.seconds > 0 for evaluated in only(Evaluated, records)] == [True, True]
    assert "evaluate" not in only(Finished, records)[0].timings
