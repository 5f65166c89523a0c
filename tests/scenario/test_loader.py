"""Scenario files: what is read, and how mistakes are reported."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rlplay.algorithms.apply import resolve
from rlplay.paths import POCKET_PATH
from rlplay.scenario.claim import Expect
from rlplay.scenario.command_line import with_changes
from rlplay.scenario.loader import ScenarioError, bundled, load
from rlplay.scenario.scenario_task import tasks_for
from rlplay.scenario.script import parse

GOOD = "title: T\nquestion: Q?\ntask: arithmetic\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_change_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(TypeError, match="with_changes takes no typo"):
        with_changes(load("two-plus-two"), typo=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", bundled())
def test_bundled_scenarios_are_whole(name: str) -> None:
    scenario = load(name)
    steps = parse(scenario.script)
    settings = resolve(scenario.settings)
    task = tasks_for(scenario)[0]
    assert scenario.name == name
    assert any(isinstance(step, Expect) for step in steps)
    assert set(settings.reward_weights) <= set(task.rewards)
    assert settings.reward_weights or scenario.world, "a task offers several rewards; a scenario says which one counts"


def test_the_file_name_is_the_scenario_name(tmp_path: Path) -> None:
    assert load(written(tmp_path, GOOD)).name == "mine"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (GOOD + "promts: [x]\n", 4, "unknown key 'promts'; did you mean 'prompts'?"),
        (GOOD + "settings:\n  beta: 1\n  lerning_rate: 1\n", 6, "did you mean 'learning_rate'?"),
        (GOOD + "settings:\n  beta: high\n", 5, "got 'high'"),
        (GOOD + "settings: 3\n", 4, "settings is a mapping"),
        (GOOD + "script:\n  - say: hello\n  - updaet: 1\n", 6, "script step 2: unknown verb 'updaet'; did you mean"),
        (GOOD + "script:\n  - update: many\n", 5, "script step 1: update takes a whole number"),
        (GOOD + "script: go\n", 4, "script is a list of steps"),
        (GOOD + "seed: -1\n", 4, "seed takes a whole number, 0 or more"),
        (GOOD + "max_updates: true\n", 4, "max_updates takes a whole number"),
        (GOOD + "title: again\n", 4, "'title' appears twice"),
        ("title: T\n  bad: [\n", 2, "not YAML"),
        ("question: Q?\ntask: arithmetic\n", 1, "needs a title"),
        ("title: T\nquestion: Q?\ntask: arithmetics\n", 3, "unknown task 'arithmetics'; did you mean 'arithmetic'?"),
        ("title: T\nquestion: Q?\ntask: [x]\n", 3, "unknown task ['x']"),
        (GOOD + "prompts: &x [*x]\n", 4, "an alias (*) refers to a node that contains it"),
        (GOOD + "settings: &x\n  <<: *x\n", 5, "an alias (*) refers to a node that contains it"),
        (GOOD + "script:\n  - set: {returns: gae}\n", 5, "script step 1: returns=gae needs baseline=value"),
        (
            GOOD + "script:\n  - run: 2\n  - set: {algorithm: ppo}\n  - rewind: 0\n  - set: {baseline: value}\n",
            8,
            "script step 4: baseline=value needs returns=gae or to_go",
        ),
        ("title: T\nquestion: Q?\n", 1, "either a task, a world or a dataset"),
        (GOOD + 'summary: "a\\ud800"\n', 4, "half a character (a lone surrogate), which is not text"),
        (GOOD + 'settings: {reward_weights: {"\\udfff": 1}}\n', 4, "half a character (a lone surrogate)"),
    ],
)
def test_mistakes_name_the_line_and_the_remedy(tmp_path: Path, text: str, line: int, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ScenarioError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize("text", ["", "- a\n", "just words", "title: [1]\nquestion: Q?\ntask: arithmetic\n"])
def test_a_file_that_is_not_a_scenario_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ScenarioError, match=r"mine\.yaml"):
        load(written(tmp_path, text))


def test_a_date_is_the_text_that_it_is(tmp_path: Path) -> None:
    assert load(written(tmp_path, GOOD + "summary: 2024-13-45\n")).summary == "2024-13-45"
    with pytest.raises(ScenarioError, match=r"mine.yaml:4: the tag '!!timestamp' is none that rlplay reads$"):
        load(written(tmp_path, GOOD + "summary: !!timestamp 2024-13-01\n"))


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    assert load(written(tmp_path, f"\ufeff{GOOD}")).title == "T"


def test_names_that_are_not_utf_8_are_refused_before_a_run_begins(tmp_path: Path) -> None:
    written(tmp_path, GOOD).rename(tmp_path / "mine\udcff.yaml")
    with pytest.raises(ScenarioError, match=r"'mine\\udcff' is not UTF-8, the encoding of run files; rename it"):
        with_changes(load(tmp_path / "mine\udcff.yaml"))
    with pytest.raises(ScenarioError, match=r"is not UTF-8, the encoding of run files"):
        with_changes(load("two-plus-two"), model="me/\udcff")


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(ScenarioError, match="did you mean 'learn-to-think'"):
        load("learn-to-thnik")
    with pytest.raises(ScenarioError, match="no such file"):
        load("nowhere/mine.yaml")


def test_paths_count_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"prompt": "x"}\n')
    (tmp_path / "score.py").write_text("def f(completions, **_): return [0.0 for _ in completions]\n")
    text = "title: T\nquestion: Q?\ndataset: rows.jsonl\nreward: ['score.py:f']\n"
    scenario = load(written(tmp_path, text))
    assert scenario.dataset == str(tmp_path / "rows.jsonl")
    assert scenario.reward == [f"{tmp_path / 'score.py'}:f"]


def test_a_verb_alone_is_a_step(tmp_path: Path) -> None:
    assert load(written(tmp_path, GOOD + "script:\n  - undo\n")).script == [{"undo": None}]


def test_changes_of_the_command_line() -> None:
    changed = with_changes(load("learn-to-think"), sets=["beta=0.1", "num-prompts=4"], seed=7, updates=3, model="x/y")
    assert (changed.seed, changed.max_updates, changed.model) == (7, 3, "x/y")
    assert (resolve(changed.settings).beta, resolve(changed.settings).num_prompts) == (0.1, 4)
    assert resolve(with_changes(load("learn-to-think"), algorithm="ppo").settings).baseline == "value"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sets": ["beta"]}, "name=value"),
        ({"sets": ["bta=1"]}, "did you mean 'beta'"),
        ({"sets": ["lr=0.1"]}, "did you mean 'learning_rate'"),
        ({"sets": ["cliprange=0.1"]}, "did you mean 'epsilon'"),
        ({"sets": ["temperature=nan"]}, "temperature"),
        ({"algorithm": "pop"}, "unknown algorithm 'pop'"),
        ({"seed": -1}, "seed is -1"),
        ({"dataset": "rows.jsonl"}, "--dataset needs --reward"),
        ({"dataset": "rows.jsonl", "algorithm": "dpo"}, "dataset rows.jsonl: no such file"),
        ({"dataset": "prompts.txt", "algorithm": "dpo"}, "dataset prompts.txt: no such file"),
        ({"dataset": "./me/rows", "algorithm": "dpo"}, "dataset ./me/rows: no such file"),
        ({"dataset_config": "main"}, "belong to a Hugging Face dataset; this scenario has none"),
        ({"dataset": __file__, "dataset_train_split": "test", "algorithm": "dpo"}, "test_loader.py is a file"),
        ({"reward": ["score.py"]}, "FILE.py:FUNCTION"),
        ({"model": "./nowhere"}, "model ./nowhere: no such folder"),
        ({"reward": ["nowhere.py:f"]}, "there is no file nowhere.py"),
    ],
)
def test_bad_changes_are_reported_in_one_line(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        with_changes(load("learn-to-think"), **changes)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_own_data_replaces_the_task_and_its_script(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("prompt\nx\n")
    (tmp_path / "score.py").write_text("def f(**_): return []\n")
    changed = with_changes(
        load("learn-to-think"), dataset=str(tmp_path / "rows.csv"), reward=[f"{tmp_path / 'score.py'}:f"]
    )
    assert (changed.task, changed.script, changed.name) == (None, [], "own-data")
    assert "reward_weights" not in changed.settings


def test_a_dataset_on_hugging_face_is_given_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = "title: T\nquestion: Q?\ndataset: me/rows\ndataset_config: main\nsettings: {algorithm: dpo}\n"
    scenario = load(written(tmp_path, text))
    assert (scenario.dataset, scenario.dataset_config, scenario.dataset_train_split) == ("me/rows", "main", None)
    again = with_changes(scenario, dataset_train_split="train[:9]")
    assert (again.dataset, again.dataset_config, again.dataset_train_split) == ("me/rows", "main", "train[:9]")
    other = with_changes(again, dataset="imdb")
    assert (other.dataset, other.dataset_config, other.dataset_train_split) == ("imdb", None, None)
    (tmp_path / "imdb").mkdir()
    monkeypatch.chdir(tmp_path)
    assert with_changes(again, dataset="imdb").dataset == str(tmp_path / "imdb"), "what exists wins"
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ScenarioError, match=r"me/rows: there is no such file; .* pip install datasets"):
        with_changes(scenario, seed=1)


def test_settings_that_need_each_other_may_be_set_in_one_step(tmp_path: Path) -> None:
    script = (
        "script:\n  - set: {returns: gae, baseline: value}\n  - run: 1\n  - set: {lam: 1}\n  - phase: 1\n"
        "  - set: {baseline: group_mean, returns: broadcast}\n  - undo\n  - undo\n  - set: {returns: gae}\n"
    )
    assert len(load(written(tmp_path, GOOD + script)).script) == 8


def test_shared_aliases_are_fine(tmp_path: Path) -> None:
    text = GOOD + "script:\n  - say: &words hello\n  - say: *words\n"
    assert load(written(tmp_path, text)).script[1] == {"say": "hello"}


def test_an_algorithm_of_the_command_line_is_not_undone_by_the_scenario() -> None:
    flattery = load("flattery")
    assert flattery.settings["beta"] == 0
    assert resolve(with_changes(flattery, algorithm="rlhf-ppo").settings).beta == 0.05
    assert resolve(with_changes(flattery, sets=["algorithm=rlhf-ppo"]).settings).beta == 0.05
    assert resolve(with_changes(flattery, algorithm="rlhf-ppo", sets=["beta=0.2"]).settings).beta == 0.2
    kept = resolve(with_changes(flattery, algorithm="rlhf-ppo").settings)
    assert kept.num_prompts == flattery.settings["num_prompts"]


def test_another_model_does_not_inherit_what_suits_the_small_one() -> None:
    scenario = load("learn-to-think")
    other = resolve(with_changes(scenario, model="x/y", sets=["num_prompts=2"]).settings)
    found = (other.learning_rate, other.max_completion_length, other.num_prompts, other.num_generations)
    assert found == (1e-6, 256, 2, 8)
    assert with_changes(scenario, model="pocket").settings == scenario.settings


def test_the_nudge_records_the_whole_vocabulary() -> None:
    config = json.loads((POCKET_PATH / "config.json").read_text())
    assert load("two-plus-two").settings["candidates"] >= config["vocab_size"]


def test_paths_of_the_command_line_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("prompt\nx\n")
    (tmp_path / "score.py").write_text("def f(**_): return []\n")
    for folder in ("mine", "pocket"):
        (tmp_path / folder).mkdir()
    scenario = load("learn-to-think")
    changed = with_changes(scenario, dataset="rows.csv", reward=["score.py:f"], model="mine")
    found = (changed.dataset, changed.reward, changed.model)
    assert found == (str(tmp_path / "rows.csv"), [f"{tmp_path / 'score.py'}:f"], str(tmp_path / "mine"))
    assert with_changes(scenario, seed=3).model == "pocket", "the bundled model, whatever folders there are"
