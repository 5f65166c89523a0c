"""The command line that plays a run again: whatever it says, reading it back gives the same run."""

import shlex

import msgspec
import pytest

from rlplay.algorithms.apply import apply_all, resolve
from rlplay.algorithms.setting_values import decoded
from rlplay.cli import play as cli_play
from rlplay.health.health_of_run import examine_run
from rlplay.scenario import reproduction
from rlplay.scenario.command_line import with_changes
from rlplay.scenario.loader import load, source
from rlplay.scenario.reproduction import Reproduction, check_understood, scenario_of
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.trace.runfile_format import RunFileError
from rlplay.ui.knobs.draft import Draft
from rlplay.ui.session.sources import ReplaySource
from tests.recorded import SETTINGS, synthetic_started


def read_back(line):
    """The scenario that the command line makes."""
    program, *words = shlex.split(line)
    assert program == "rlplay"
    given = cli_play.play.make_context("play", words).params
    name = given.pop("scenario")
    given.pop("device")
    given.pop("trust")
    return with_changes(load(name), **given)


@pytest.fixture
def own(tmp_path):
    folder = tmp_path / "it's mine"
    folder.mkdir()
    (folder / "rows.csv").write_text("prompt\nx\n")
    (folder / "score.py").write_text("def f(**_): return []\ndef g(**_): return []\n")
    (folder / "a b.yaml").write_text(
        "title: T\nquestion: Q\ntask: arithmetic\nsettings: {beta: 0.5, reward_weights: {correct: 2}}\n"
    )
    return folder


STARTS = {
    "as it is": ("learn-to-think", {}),
    "settings": ("learn-to-think", {"sets": ["epsilon=0.1", "num-prompts=4"]}),
    "seed and length": ("flattery", {"seed": 7, "updates": 3}),
    "algorithm": ("learn-to-think", {"algorithm": "rlhf-ppo"}),
    "algorithm and a setting of it": ("learn-to-think", {"algorithm": "ppo", "sets": ["num_iterations=3"]}),
    "model": ("two-plus-two", {"model": "some/model"}),
    "reward": ("learn-to-think", {"reward": ["score.py:f", "score.py:g"]}),
    "dataset": ("learn-to-think", {"dataset": "rows.csv", "reward": ["score.py:f"], "model": "x/y", "seed": 1}),
    "dataset by name": (
        "learn-to-think",
        {"dataset": "x/y", "dataset_config": "main", "dataset_train_split": "train[:9]", "reward": ["score.py:f"]},
    ),
    "few knobs": ("learn-to-think", {"knobs": ["beta", "epsilon"]}),
    "a file": ("a b.yaml", {"sets": ["beta=0"]}),
}


@pytest.mark.parametrize("start", STARTS)
def test_what_a_run_was_started_with_is_in_the_command(own, monkeypatch, tmp_path, start):
    name, given = STARTS[start]
    monkeypatch.chdir(own)
    scenario = with_changes(load(own / name if name.endswith(".yaml") else name), **given)
    recorded = scenario_of(
        msgspec.structs.replace(synthetic_started(), scenario_text=msgspec.yaml.encode(scenario).decode())
    )
    wanted = apply_all(resolve(scenario.settings), {"temperature": 0.7, "learning_rate": 0.000123456789})
    monkeypatch.chdir(tmp_path)
    again = read_back(Reproduction(recorded).command(wanted))
    assert resolve(again.settings) == wanted
    as_run = msgspec.structs.replace(scenario, settings={}, dtype=recorded.dtype)
    assert msgspec.structs.replace(again, settings={}) == as_run


def test_an_untouched_run_needs_no_more_than_its_name():
    scenario = load("flattery")
    assert Reproduction(scenario).command(resolve(scenario.settings)) == "rlplay flattery"


def test_what_is_gone_is_spelled_out_in_full(own):
    scenario = load(own / "a b.yaml")
    (own / "a b.yaml").unlink()
    line = Reproduction(scenario).command(resolve(scenario.settings))
    assert shlex.split(line)[1] == str(own / "a b.yaml")
    assert "--set beta=0.5" in line
    assert "'reward_weights={correct: 2}'" in line


def test_words_of_another_version_are_passed_over():
    text = "name: flattery\ntitle: T\nquestion: Q\nmax_updates: 20\nseed: 4\nunheard: of\n"
    scenario = scenario_of(msgspec.structs.replace(synthetic_started(), scenario_text=text))
    assert Reproduction(scenario).command(resolve(load("flattery").settings)) == "rlplay flattery --seed 4"


def test_a_bundled_scenario_is_read_once_and_a_users_file_each_time(monkeypatch, tmp_path):
    read, plain = [], reproduction.load

    def note(name):
        read.append(name)
        return plain(name)

    monkeypatch.setattr(reproduction, "load", note)
    reproduction._bundled.cache_clear()
    own = tmp_path / "own.yaml"
    own.write_text(source("two-plus-two"), encoding="utf-8")
    for name in ("two-plus-two", str(own)):
        scenario = plain(name)
        for _ in range(2):
            Reproduction(scenario)
    assert read == ["two-plus-two", str(own), str(own)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"settings": {"beta": "much"}}, {"settings": {"reward_weights": []}}, {"scenario_text": "title: [1]"},
        {"scenario_text": "[" * 99}, {"scenario_text": "x" * 999 + ": ["},
    ],
    ids=str,
)  # fmt: skip
def test_a_run_with_settings_of_other_types_is_refused_in_one_line(wrong, tmp_path):
    RunWriter.create(tmp_path / "a.rlplay", synthetic_started(**wrong)).close()
    for opened in (ReplaySource, examine_run):
        with pytest.raises(RunFileError, match="its scenario or a setting is damaged") as refused:
            opened(tmp_path / "a.rlplay")
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 300 + len(str(tmp_path))


def test_a_setting_of_another_version_is_left_out(tmp_path):
    settings = {**msgspec.to_builtins(SETTINGS), "of_a_later_version": 1}
    RunWriter.create(tmp_path / "a.rlplay", synthetic_started(settings=settings)).close()
    with RunReader(tmp_path / "a.rlplay") as run:
        check_understood(run)
        assert Draft(decoded(run.started.settings)).differing() == {}
