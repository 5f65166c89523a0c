"""Every way in which a name reaches a loader: none of them runs code that the user has not agreed to.

The ways are found in the types: a new text field of a scenario, a record, a message or a setting is a new case by
itself. Each is given names of code that leaves a mark when it runs, and goes where such a thing goes.
"""

from __future__ import annotations

import itertools
import queue
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_origin

import msgspec
import pytest

from rlplay.algorithms.equations import terms
from rlplay.algorithms.named import _Row, preset
from rlplay.algorithms.setting_values import decoded
from rlplay.algorithms.settings import Settings, row
from rlplay.engine.driver import Driver
from rlplay.engine.engine_process import CommandLoop
from rlplay.engine.state import Halt
from rlplay.foreign.copy import Copy
from rlplay.link.messages import AnyCommand, AnyEvent, Begin, Command, Status, Stop, Trust
from rlplay.record import format as recording
from rlplay.scenario.job import new_job
from rlplay.scenario.schema import Job, Scenario, Stage
from rlplay.scenario.share import Shared, shared_in
from rlplay.scenario.trust import code_of_run
from rlplay.trace.questions import AnyQuestion, Question
from rlplay.trace.records import AnyRecord, Record, Started
from rlplay.trace.rehearsals import Rehearse
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.trusted import agree, contents, follow, strange
from rlplay.ui.session.session import Session
from tests.poisoned import alternatives, hint_of, hints, made, mapping_of, members, part_of
from tests.recorded import SETTINGS, synthetic_started, synthetic_update

OWN = "surrogate", "scale_rewards", "algorithm"
REFUSED = Halt, ValueError, OSError, TypeError, IndexError
"""What a made-up value raises that fits no run."""
SMALL = {"num_prompts": 1, "num_generations": 2, "max_completion_length": 2}


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], Path]:
    """The names of a stranger's code: a file's, an algorithm's, a module's, a library's environment; and the mark."""
    mark = tmp_path / "it-ran"
    code = (
        f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n\n\ndef f(xp=None, ratio=None, **k):\n    return ratio\n"
    )
    for name in ("evil.py", "evil_module.py"):
        (tmp_path / name).write_text(code)
    (tmp_path / "own.yaml").write_text("title: T\nsettings: {surrogate: evil.py:f, scale_rewards: evil.py:f}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return [f"{tmp_path / 'evil.py'}:f", str(tmp_path / "own.yaml"), "evil_module:f", "verifiers:evil_module"], mark


def hostile(hint: Any, words: list[str]) -> Iterator[Any]:
    """Values of a field that name the code: as text, in a list, as a setting, or deeper in a struct."""
    for part in alternatives(hint):
        if hint_of(part, str):
            yield from words
        elif get_origin(part) is list:
            yield from ([each] for each in hostile(part_of(part), words))
        elif get_origin(part) is dict and mapping_of(part)[0] is str:
            yield from ({name: word} for name, word in itertools.product(OWN, words))
            yield from ({word: word} for word in words)
        elif isinstance(part, type) and issubclass(part, msgspec.Struct):
            yield from variants(made(part), words)


def variants(thing: Any, words: list[str], spare: tuple[str, ...] = ()) -> Iterator[Any]:
    """Copies of a struct, in each of which another field names the code."""
    for field, hint in hints(type(thing)).items():
        if field not in spare:
            yield from (msgspec.structs.replace(thing, **{field: value}) for value in hostile(hint, words))


def looked_at(settings: dict[str, Any]) -> None:
    """What the screen does with the settings of a run: their formulas, and the functions in them."""
    with suppress(*REFUSED):
        known = decoded(settings)
        terms(known)
        for name in OWN[:2]:
            row(known, name)


def scenario_of(model: Path) -> Scenario:
    return Scenario(name="t", title="T", question="Q?", task="arithmetic", model=str(model), settings=SMALL)


def played(job: Job) -> None:
    """The engine with the job, up to the end of an update."""
    driver = Driver(job, lambda record: None)
    with suppress(*REFUSED):
        driver.load(lambda what, share: None)
        driver.advance("update", 1, lambda: False)
        driver.close()


PARTS: dict[str, Callable[[Scenario, list[str]], Iterator[Scenario]]] = {
    "fields": lambda base, words: variants(base, words, spare=("stages",)),
    "stages": lambda base, words: (
        msgspec.structs.replace(base, stages=[each]) for each in variants(Stage("s", 1), words)
    ),
    "settings": lambda base, words: (
        msgspec.structs.replace(base, settings=SMALL | {name: word})
        for name in Settings.__struct_fields__
        for word in (words if name in OWN else words[:1])
    ),
}
"""The parts of a scenario that can name code."""


@pytest.mark.parametrize("part", PARTS)
def test_no_scenario_runs_code(part: str, trap: tuple[list[str], Path], micro_model: Path, tmp_path: Path) -> None:
    words, mark = trap
    for number, scenario in enumerate(PARTS[part](scenario_of(micro_model), words)):
        run = tmp_path / f"{number}.rlplay"
        with suppress(*REFUSED):
            new_job(scenario, run, "cpu")
        assert not mark.exists(), scenario
        played(Job(scenario, str(run), "cpu", 1))
        assert not mark.exists(), scenario


@pytest.mark.parametrize("kind", [*members(AnyRecord)], ids=lambda kind: kind.__name__)
def test_no_record_runs_code_where_a_run_goes_on_or_is_looked_at(
    kind: type[Record], trap: tuple[list[str], Path], micro_model: Path, tmp_path: Path
) -> None:
    words, mark = trap
    text = msgspec.yaml.encode(scenario_of(micro_model)).decode()
    begun = synthetic_started(scenario_text=text, settings=msgspec.to_builtins(SETTINGS) | SMALL)
    record = begun if kind is Started else msgspec.structs.replace(made(kind), update=2)
    for number, each in enumerate(_recorded(record, words)):
        run = tmp_path / f"{number}.rlplay"
        with closing(RunWriter.create(run, each if isinstance(each, Started) else begun)) as writer:
            for one in [*synthetic_update(1), *([] if isinstance(each, Started) else [each])]:
                with suppress(*REFUSED):
                    writer.append(one)
        with RunReader(run) as reader, suppress(*REFUSED):
            looked_at(reader.settings(1))
            looked_at(reader.timeline().latest())
            strange(code_of_run(scenario_of(micro_model), reader.timeline()))
        played(Job(scenario_of(micro_model), str(run), "cpu", 1, resume=True))
        assert not mark.exists(), each


def _recorded(record: Record, words: list[str]) -> Iterator[Record]:
    """Copies of a record that name the code; one that changes a setting changes each that can."""
    if "name" in record.__struct_fields__ and "value" in record.__struct_fields__:
        for name, word in itertools.product(OWN, words):
            yield msgspec.structs.replace(record, name=name, value=word, previous="ppo", phase="sample", also={})
            yield msgspec.structs.replace(record, name="epsilon", value=0.1, phase="sample", also={name: word})
    whole = {"settings": msgspec.to_builtins(SETTINGS)}
    if "settings" in record.__struct_fields__:
        for name, word in itertools.product(OWN, words):
            yield msgspec.structs.replace(record, settings=whole["settings"] | SMALL | {name: word})
    yield from variants(record, words, spare=("settings",))


@pytest.mark.parametrize("own_engine", [True, False])
@pytest.mark.parametrize("kind", [*members(AnyEvent)], ids=lambda kind: kind.__name__)
def test_nothing_that_another_process_sends_runs_code_in_the_screen(
    kind: type[msgspec.Struct], own_engine: bool, trap: tuple[list[str], Path], tmp_path: Path
) -> None:
    words, mark = trap
    for event in _sent(made(kind), words):
        source = SimpleNamespace(live=True, own_engine=own_engine, path=tmp_path / "a.rlplay", script=[], recorded=list)
        session = Session(source)  # type: ignore[arg-type]
        with suppress(*REFUSED):
            session.apply(event)
        looked_at(session.on_record())
        assert not mark.exists(), event


def _sent(event: Any, words: list[str]) -> Iterator[Any]:
    if isinstance(event, Status):
        for name, word in itertools.product(OWN, words):
            yield msgspec.structs.replace(event, settings=msgspec.to_builtins(SETTINGS) | {name: word})
    yield from variants(event, words)


GRANTING = {Trust: "the screen's word about what the user trusts", Begin: "a job, whose fields are the first test's"}


@pytest.mark.parametrize("kind", [*members(AnyCommand)], ids=lambda kind: kind.__name__)
def test_no_command_runs_code_in_the_engine(
    kind: type[Command | Question], trap: tuple[list[str], Path], start: Callable[..., tuple[Driver, list[Any]]]
) -> None:
    words, mark = trap
    if kind in GRANTING:
        return
    commands = list(variants(made(kind), words))
    driver, _ = start(reward="uneven")
    commands += [_changing(c, {name: word}) for c in commands[:1] if "changes" in c.__struct_fields__
                 for name in Settings.__struct_fields__ for word in words]  # fmt: skip
    waiting: queue.Queue[Any] = queue.Queue()
    for command in [*commands, Stop()]:
        waiting.put(command)
    link = SimpleNamespace(commands=waiting, send=lambda event: None)
    CommandLoop(link, driver).serve()  # type: ignore[arg-type]
    driver.close()
    assert not mark.exists()


def _changing(command: Any, change: dict[str, Any]) -> Any:
    """The command with this change of settings, carried out on the run as it begins."""
    if isinstance(command, Rehearse):
        return Rehearse(since=0, updates=1, changes=[change])
    return type(command)(change)


def test_the_commands_are_all_there_are() -> None:
    known = {*members(AnyCommand)}
    assert known >= {*members(AnyQuestion)}
    assert known >= {each for each in Command.__subclasses__() if each.__module__ == Command.__module__}
    assert hints(Begin) == {"job": Job}


def test_no_share_code_runs_code(trap: tuple[list[str], Path], tmp_path: Path) -> None:
    words, mark = trap
    base = Shared("two-plus-two")
    for shared in [*variants(base, words), *(Shared("two-plus-two", settings={n: w}) for n in OWN for w in words)]:
        with suppress(*REFUSED):
            new_job(shared_in(shared.code).scenario_with({}), tmp_path / "new.rlplay", "cpu")
        assert not mark.exists(), shared


def test_no_algorithm_file_runs_code(trap: tuple[list[str], Path], tmp_path: Path) -> None:
    words, mark = trap
    for given in variants(_Row("T", {}), words):
        (tmp_path / "theirs.yaml").write_bytes(msgspec.yaml.encode(given))
        with suppress(*REFUSED):
            preset("theirs.yaml")
            new_job(scenario_of(tmp_path), tmp_path / "new.rlplay", "cpu")
        named = msgspec.structs.replace(scenario_of(tmp_path), settings={"algorithm": str(tmp_path / "theirs.yaml")})
        with suppress(*REFUSED):
            new_job(named, tmp_path / "new.rlplay", "cpu")
        assert not mark.exists(), given


@pytest.mark.parametrize("kind", [*members(recording.AnyFrame)], ids=lambda kind: kind.__name__)
def test_no_recording_of_another_trainer_runs_code(
    kind: type[recording.Frame], trap: tuple[list[str], Path], tmp_path: Path
) -> None:
    words, mark = trap
    begun = made(recording.Begun)
    for number, frame in enumerate(variants(made(kind), words)):
        folder = tmp_path / f"r{number}"
        folder.mkdir()
        frames = [frame] if isinstance(frame, recording.Begun) else [begun, frame]
        recording.part(folder, 0).write_bytes(recording.MAGIC + b"".join(map(recording.pack, frames)))
        with suppress(*REFUSED):
            copy = Copy(folder)
            with RunReader(copy.path) as reader:
                looked_at(reader.started.settings)
                looked_at(reader.timeline().latest())
        assert not mark.exists(), frame


@pytest.mark.parametrize("name", ["surrogate", "algorithm"])
def test_what_the_user_agrees_to_or_names_runs(
    name: str, trap: tuple[list[str], Path], micro_model: Path, tmp_path: Path
) -> None:
    words, mark = trap
    if name == "surrogate":
        agree(contents([str(tmp_path / "evil.py")]))
    else:
        follow([str(tmp_path / "evil.py")])
    settings = SMALL | {name: words[name == "algorithm"]}
    with suppress(*REFUSED):
        new_job(msgspec.structs.replace(scenario_of(micro_model), settings=settings), tmp_path / "a.rlplay", "cpu")
    assert mark.exists()
