"""Files of other trainers with random faults are read, or refused in one line."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlplay.foreign.copy import Copy
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.trace.runfile import RunReader
from tests.foreign import nemo_files, slime_files, test_open_instruct, test_traces
from tests.foreign.grown import lines

ODD = (None, True, -1, 0, 10**30, float("nan"), "", "x", "\x1b[31m", [], {}, [[]], [None], {"a": 1}, [1, 2], 1e308)


def mutant(value: Any, dice: random.Random) -> Any:
    """The value with one random fault in it."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        name = dice.choice(list(value))
        rest = {key: each for key, each in value.items() if key != name}
        return rest if dice.random() < 0.15 else value | {name: mutant(value[name], dice)}
    if isinstance(value, list) and value and dice.random() < 0.8:
        place, kind = dice.randrange(len(value)), dice.random()
        if kind < 0.15:
            return value[:place] + value[place + 1 :]
        return [*value, copy.deepcopy(value[place])] if kind < 0.25 else [
            mutant(each, dice) if i == place else each for i, each in enumerate(value)
        ]  # fmt: skip
    return dice.choice(ODD)


def rows(value: Any, dice: random.Random) -> list[Any]:
    made = mutant(value, dice)
    return made if isinstance(made, list) else [made]


def nemo(folder: Path, dice: random.Random) -> None:
    columns = nemo_files.batch(1)
    found = [{name: values[i : i + 1] for name, values in columns.items()} for i in range(4)]
    lines(folder / "train_data_step1.jsonl", rows(found, dice), 100)


def slime(folder: Path, dice: random.Random) -> None:
    held, columns = slime_files.samples(0), slime_files.trained(0)
    faulty = dice.random() < 0.6
    slime_files.save(folder / "rollout_data" / "0.pt", {"samples": mutant(held, dice) if faulty else held}, 10_000)
    data = columns if faulty else mutant(columns, dice)
    slime_files.save(folder / "train_data" / "0_0.pt", {"rank": 0, "rollout_data": data}, 10_000)


def stream(folder: Path, dice: random.Random) -> None:
    names = ("episodes", "orchestrator", "trainer")
    faulty = dice.choice(names)
    for name, where in zip(names, ("stream", "annotations/orchestrator", "annotations/trainer"), strict=True):
        found = test_traces.rows(name)
        test_traces.write(folder, where, rows(found, dice) if name == faulty else found)


def traces(folder: Path, dice: random.Random) -> None:
    found = rows(test_traces.of(0, test_traces.rows("episodes")), dice)
    lines(folder / "rollouts" / "step_0" / "train" / "effective" / "traces.jsonl", found, 100)


def open_instruct(folder: Path, dice: random.Random) -> None:
    found = test_open_instruct.rows(1) + test_open_instruct.rows(2)
    lines(folder / "exp_rollouts_000000.jsonl", rows(found, dice), 100)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("make", [nemo, slime, stream, traces, open_instruct], ids=lambda make: make.__name__)
def test_a_mutant_is_read_or_refused(
    make: Callable[[Path, random.Random], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    said = []
    for seed in range(30):
        folder = tmp_path / f"run{seed}"
        make(folder, random.Random(seed))
        try:
            with RunReader(Copy(folder).path) as run:
                for number in run.updates():
                    run.load(number)
        except ForeignRunError as error:
            said.append(str(error))
    assert 2 < len(said) < 28
    assert not [line for line in said if "\n" in line]
