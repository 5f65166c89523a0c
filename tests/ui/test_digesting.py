"""The health and what feeds it forget what was undone, however the threads end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from rlplay.health import health_of_run as health_run
from rlplay.health.digest import Digest
from rlplay.health.health_of_run import Health
from rlplay.trace.records import Scored
from rlplay.trace.run import Run
from rlplay.trace.update import Update
from rlplay.ui.session import digesting
from rlplay.ui.session.digesting import Digesting
from rlplay.ui.session.source import Source
from tests.recorded import synthetic_update


def update(number: int, reward: float) -> Update:
    """A finished update, all of whose answers earned the same."""
    made = Update(number)
    for record in synthetic_update(number, prompts=1, generations=2, length=4):
        paid = isinstance(record, Scored)
        made.add(msgspec.structs.replace(record, rewards=0 * record.rewards + reward) if paid else record)
    return made


def rewards(health: Health) -> dict[int, float | None]:
    """What the answers of each update earned, as the health has it."""
    found = health.evidence(99, {})
    return {} if found is None else {each.update: each.reward for each in found.digests}


class Disk:
    """A run file whose updates are read when the test says so."""

    def __init__(self, updates: list[Update]) -> None:
        self.updates = {each.number: each for each in updates}
        self.asked: asyncio.Queue[tuple[int, asyncio.Future[Update | None]]] = asyncio.Queue()

    def recorded(self) -> list[int]:
        return sorted(self.updates)

    async def load_in_thread(self, number: int) -> Update | None:
        found: asyncio.Future[Update | None] = asyncio.get_running_loop().create_future()
        self.asked.put_nowait((number, found))
        return await found


def fed(disk: Disk) -> tuple[Health, Digesting, asyncio.Event]:
    """A health, what feeds it, and what is set once more is known."""
    health, done = Health(Run()), asyncio.Event()
    return health, Digesting(health, cast("Source", disk), done.set), done


async def known(done: asyncio.Event) -> None:
    """Wait until the feeding says that more is known."""
    async with asyncio.timeout(30):
        await done.wait()
    done.clear()


class Held:
    """Digests that threads make when the test says so."""

    def __init__(self, plain: Callable[[Update], Digest | None]) -> None:
        self._plain = plain
        self.begun, self.go_on = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, update: Update) -> Any:
        self.begun.release()
        assert self.go_on.acquire(timeout=30)
        return self._plain(update)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    made = Held(health_run.digest)
    monkeypatch.setattr(health_run, "digest", made)
    monkeypatch.setattr(digesting, "AT_ONCE", 0)
    return made


def test_the_health_takes_an_update_that_is_done_again_after_going_back() -> None:
    health = Health(Run())
    for number in (1, 2, 3):
        health.add(update(number, 0.25))
    health.run.go_back(1)
    assert rewards(health) == {1: 0.25}
    assert not health.knows(2)
    again = update(2, 0.75)
    assert not health.holds(again)
    health.add(again)
    assert rewards(health) == {1: 0.25, 2: 0.75}


def test_a_small_update_is_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    health, feeding, _ = fed(Disk([]))
    monkeypatch.setattr(digesting, "AT_ONCE", update(1, 0.25).tokens)
    feeding.take(update(1, 0.25))
    assert health.knows(1)


async def test_a_digest_that_is_made_while_its_update_is_undone_is_dropped(held: Held) -> None:
    health, feeding, done = fed(Disk([]))
    feeding.take(update(1, 0.25))
    assert await asyncio.to_thread(held.begun.acquire, timeout=30)
    health.run.go_back(0)
    held.go_on.release()
    await known(done)
    assert rewards(health) == {}
    again = update(1, 0.75)
    assert not health.holds(again)
    held.go_on.release()
    feeding.take(again)
    await known(done)
    assert rewards(health) == {1: 0.75}


async def test_a_digest_is_of_the_update_as_it_was_when_it_began(held: Held) -> None:
    health, feeding, done = fed(Disk([]))
    growing = update(1, 0.25)
    steps, growing.steps = growing.steps, []
    feeding.take(growing)
    assert await asyncio.to_thread(held.begun.acquire, timeout=30)
    growing.steps = steps
    feeding.take(update(2, 0.25))
    held.go_on.release()
    await known(done)
    assert not feeding._under_way, "one large update at a time"
    assert not health.holds(growing)
    run = health.evidence(1, {})
    assert run is not None
    assert run.digests[0].mismatch is None, "of the steps that came later"


async def test_a_digest_that_is_made_while_a_later_update_is_undone_is_kept(held: Held) -> None:
    health, feeding, done = fed(Disk([]))
    feeding.take(update(1, 0.25))
    assert await asyncio.to_thread(held.begun.acquire, timeout=30)
    health.run.go_back(1)
    held.go_on.release()
    await known(done)
    assert rewards(health) == {1: 0.25}


async def test_an_update_that_is_undone_while_it_is_read_is_dropped_and_read_again() -> None:
    disk = Disk([update(1, 0.25), update(2, 0.25)])
    health, feeding, done = fed(disk)
    assert [feeding.left(2), feeding.left(3)] == [1, 2]
    number, reading = await disk.asked.get()
    assert number == 2
    health.run.go_back(1)
    disk.updates[2] = update(2, 0.75)
    reading.set_result(update(2, 0.25))
    for expected in (2, 1):
        number, reading = await disk.asked.get()
        assert number == expected
        assert not health.knows(number)
        reading.set_result(disk.updates[number])
    await known(done)
    assert rewards(health) == {1: 0.25, 2: 0.75}


async def test_what_was_complete_is_so_no_more_after_going_back() -> None:
    disk = Disk([update(number, 0.25) for number in (1, 2, 3)])
    health, feeding, done = fed(disk)
    feeding.stop()
    for number in (1, 2, 3):
        feeding.take(disk.updates[number])
    assert [feeding.left(4), feeding.left(4)] == [0, 0]
    health.run.go_back(1)
    assert feeding.left(4) == 2
    for _ in range(2):
        number, reading = await disk.asked.get()
        reading.set_result(disk.updates[number])
    await known(done)
    assert feeding.left(4) == 0
    assert rewards(health) == {1: 0.25, 2: 0.25, 3: 0.25}
    health.run.go_back(1)
    assert feeding.left(4) == 2, "also what has been read from the run file"
    _, reading = await disk.asked.get()
    feeding.stop()
    await known(done)
    assert reading.cancelled()


async def test_an_update_whose_reading_fails_is_left_out_and_the_others_are_read() -> None:
    disk = Disk([update(1, 0.25), update(2, 0.25)])
    health, feeding, done = fed(disk)
    assert feeding.left(3) == 2
    _, reading = await disk.asked.get()
    reading.set_exception(MemoryError("too large"))
    await known(done)
    assert feeding.left(3) == 1
    number, reading = await disk.asked.get()
    reading.set_result(disk.updates[number])
    await known(done)
    assert feeding.left(3) == 0
    assert rewards(health) == {1: 0.25}
