"""Names of libraries' environments: how they are read, and that nothing runs or is asked before the user agrees."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from rlplay.containment import OwnError
from rlplay.scenario.command_line import SEVERAL_TURNS, with_changes
from rlplay.scenario.loader import load
from rlplay.scenario.named_files import ScenarioError
from rlplay.scenario.scenario_task import tasks_for
from rlplay.scenario.subject import subject
from rlplay.scenario.trust import code_of
from rlplay.tasks import is_own_task, speaker_of
from rlplay.tasks.library import library_code
from rlplay.tasks.library.entry import KINDS, read_entry
from rlplay.trusted import consequences, follow, strange


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """All libraries are there, and none of them can do anything."""
    for kind in KINDS.values():
        monkeypatch.setitem(sys.modules, kind.package, ModuleType(kind.package))


def test_a_name_has_options_of_any_type() -> None:
    entry = read_entry("reasoning-gym:chain_sum?size=20&seed=3&min_terms=2&ops=[a,+]&negative=false&word=x%26y")
    assert (entry.kind, entry.name, entry.size, entry.seed) == ("reasoning-gym", "chain_sum", 20, 3)
    assert entry.options == {"min_terms": 2, "ops": ["a", "+"], "negative": False, "word": "x&y"}
    assert read_entry("openenv:http://localhost:8000/").name == "http://localhost:8000"
    assert read_entry("verifiers:me/my-env@1.2").module == "my_env"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("textarena:", "names an environment"),
        ("textarena:X?size=0", "size is a whole number from 1"),
        ("textarena:X?seed=-1", "seed is a whole number from 0"),
        ("textarena:X?size=a", "got 'a'"),
        ("textarena:X?plays", "write options as in"),
        ("textarena:X?a=[", "write options as in"),
    ],
)
def test_a_bad_name_is_one_line(text: str, problem: str) -> None:
    with pytest.raises(OwnError, match=problem) as error:
        read_entry(text)
    assert "\n" not in str(error.value)
    assert library_code(text) == []


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(OwnError, match="its address holds a password") as error:
        read_entry("openenv:http://me:s3cret@localhost:8000?size=0")
    assert "s3cret" not in str(error.value)


def test_what_runs_and_what_is_asked_is_known_before_it_does() -> None:
    assert library_code("reasoning-gym:chain_sum") == ["reasoning_gym"]
    assert library_code("verifiers:me/my-env") == ["verifiers", "my_env"]
    code = library_code("openenv:http://localhost:8000/?size=3")
    assert code == ["openenv", "http://localhost:8000"]
    assert consequences(code) == "run the code of openenv and send prompts and answers to http://localhost:8000"
    assert strange(code) == code
    follow(code)
    assert strange(code) == []


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("kind", KINDS)
def test_a_scenario_that_names_one_runs_nothing_untrusted(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f"title: T\nquestion: Q\nenvironment: {kind}:{KINDS[kind].names}\n")
    scenario = with_changes(load(path))
    assert (scenario.task, scenario.environment) == (f"{kind}:{KINDS[kind].names}", None)
    assert strange(code_of(scenario))
    with pytest.raises(OwnError, match="is not trusted"):
        tasks_for(scenario)
    assert not is_own_task(scenario.task)


@pytest.mark.usefixtures("libraries")
def test_an_address_needs_a_word_of_its_own() -> None:
    follow(["openenv"])
    with pytest.raises(OwnError, match="the address http://localhost:1 is not trusted"):
        tasks_for(with_changes(load("two-plus-two"), environment="openenv:http://localhost:1"))


@pytest.mark.usefixtures("libraries")
def test_on_the_command_line_it_takes_the_place_of_prompts_and_rewards() -> None:
    played = with_changes(load("learn-to-think"), environment="textarena:GuessTheNumber-v0")
    assert (played.task, played.script, played.reward) == ("textarena:GuessTheNumber-v0", [], [])
    assert played.settings["max_completion_length"] == SEVERAL_TURNS["max_completion_length"]
    assert "reward_weights" not in played.settings
    assert (subject(played), speaker_of(played.task)) == ("conversation", "game")
    asked = with_changes(load("learn-to-think"), environment="reasoning-gym:gcd", sets=["max_completion_length=9"])
    assert (asked.settings["max_completion_length"], subject(asked)) == ("9", "answers")
    assert msgspec.yaml.decode(msgspec.yaml.encode(asked))["task"] == "reasoning-gym:gcd"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"environment": "reasoning-gym:gcd", "task": "guess"}, "brings its own prompts; omit --task"),
        ({"environment": "reasoning-gym:gcd", "dataset": "a.jsonl"}, "brings its own prompts; omit --dataset"),
        ({"environment": "openenv:somebody/echo"}, "name the address of a server that runs"),
        ({"environment": "textarena:X", "tools": ["os:getcwd"]}, "replies to every turn itself"),
    ],
)
@pytest.mark.usefixtures("libraries")
def test_what_does_not_fit_is_one_line(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        with_changes(load("learn-to-think"), **changes)  # type: ignore[arg-type]


def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlplay.tasks.library.entry.find_spec", lambda name: None)
    with pytest.raises(ScenarioError, match=r"pip install 'rlplay\[textarena\]'"):
        with_changes(load("learn-to-think"), environment="textarena:GuessTheNumber-v0")


@pytest.mark.usefixtures("libraries")
def test_an_opponent_lies_beside_the_scenario_and_is_trusted_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("def move(observation): ...\n")
    path = tmp_path / "s.yaml"
    path.write_text("title: T\nquestion: Q\ntask: textarena:Pair-v0?opponent=bot.py:move\n")
    scenario = load(path)
    assert scenario.task == f"textarena:Pair-v0?opponent={tmp_path / 'bot.py'}:move"
    assert code_of(scenario) == ["textarena", str(tmp_path / "bot.py")]


@pytest.mark.usefixtures("libraries")
def test_a_file_names_prompts_once(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("title: T\nquestion: Q\ntask: guess\nenvironment: reasoning-gym:gcd\n")
    with pytest.raises(ScenarioError, match="brings its own prompts"):
        load(path)
