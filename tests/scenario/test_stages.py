"""Scenarios with stages: what is read, and what is refused in a line that names the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlplay.scenario.command_line import OTHER_MODEL, with_changes
from rlplay.scenario.loader import ScenarioError, load
from rlplay.scenario.stage_settings import stage_settings

HEAD = "title: T\nquestion: Q?\ntask: questions\nsettings: {num_prompts: 4}\n"
STAGES = """stages:
  - {name: imitate, updates: 3, settings: {algorithm: sft}}
  - name: compare
    updates: 4
    settings: {algorithm: dpo, beta: 0.3, num_minibatches: 2}
"""


def _file(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_stages_are_read_and_their_updates_add_up(tmp_path: Path) -> None:
    scenario = load(_file(tmp_path, HEAD + STAGES))
    assert [(stage.name, stage.updates) for stage in scenario.stages] == [("imitate", 3), ("compare", 4)]
    assert scenario.max_updates == 7
    first, second = stage_settings(scenario)
    assert (first.loss_type, first.num_prompts, first.beta) == ("sft", 4, 0.0)
    assert (second.loss_type, second.num_prompts, second.beta) == ("sigmoid", 4, 0.3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stages: 3\n", ":5: stages is a list"),
        ("stages: []\n", ":5: stages is a list"),
        ("stages:\n  - imitate\n", ":6: stage 1: expected a mapping"),
        ("stages:\n  - {name: a, updates: 1}\n  - {name: a, updates: 1}\n", ":7: stage 2: it needs a name that no"),
        ("stages:\n  - {updates: 1}\n", ":6: stage 1: it needs a name"),
        ("stages:\n  - {name: a, updates: 0}\n", "updates takes a whole number, 1 or more; got 0"),
        ("stages:\n  - {name: a, update: 2}\n", "unknown key 'update'; did you mean 'updates'?"),
        ("stages:\n  - {name: a, updates: 2, settings: {beta: no}}\n", ":6: stage 1: beta "),
        ("stages:\n  - {name: a, updates: 2, settings: [1]}\n", "settings is a mapping"),
        (
            "stages:\n  - {name: a, updates: 2}\n  - {name: b, updates: 2, settings: {algorithm: dpo, beta: 0}}\n",
            ":7: stage 2: loss_type=sigmoid needs a beta above 0",
        ),
        ("stages:\n  - {name: a, updates: 2, dataset: 3}\n", ":6: stage 1: dataset takes text; got 3"),
        ("stages:\n  - {name: a, updates: 2, columns: {a: b}}\n", "columns belongs to a dataset of the stage"),
        ("stages:\n  - {name: a, updates: 2, reward: a.py:f}\n", "reward takes a list of texts; got 'a.py:f'"),
        ("stages:\n  - {name: a, updates: 2, dataset: no.jsonl}\n", "dataset no.jsonl: no such file"),
        ("stages:\n  - {name: a, updates: 2, reward: ['no.py:f']}\n", "reward no.py:f: there is no file no.py"),
        ("max_updates: 3\n" + STAGES, ":5: max_updates is the sum"),
    ],
)
def test_wrong_stages_are_reported_with_their_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(_file(tmp_path, HEAD + text))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_script_is_checked_with_the_settings_of_the_stage_it_has_reached(tmp_path: Path) -> None:
    script = "script:\n  - run: {}\n  - set: {{num_prompts: 1}}\n"
    assert load(_file(tmp_path, HEAD + STAGES + script.format(2)))
    with pytest.raises(ScenarioError, match="num_minibatches=2 is more than the 1 pairs"):
        load(_file(tmp_path, HEAD + STAGES + script.format(3)))
    with pytest.raises(ScenarioError, match=r"mine.yaml:6: stage 1: updates"):
        load(_file(tmp_path, HEAD + "stages:\n  - {name: a, updates: no}\n" + script.format(3)))


def test_the_command_line_reaches_every_stage(tmp_path: Path) -> None:
    scenario = load(_file(tmp_path, HEAD + STAGES))
    changed = stage_settings(with_changes(scenario, sets=["learning_rate=1e-5", "beta=0.7"]))
    assert [(s.learning_rate, s.beta) for s in changed] == [(1e-5, 0.7), (1e-5, 0.7)]
    assert with_changes(scenario, updates=2).max_updates == 2
    other = with_changes(scenario, model="sshleifer/tiny-gpt2")
    assert all(s.learning_rate == OTHER_MODEL["learning_rate"] for s in stage_settings(other))
    for given in ({"algorithm": "grpo"}, {"sets": ["algorithm=grpo"]}):
        with pytest.raises(ScenarioError, match="mine has stages, and each has its algorithm"):
            with_changes(scenario, **given)  # type: ignore[arg-type]


def test_own_pairs_need_no_reward_unless_something_is_maximised(tmp_path: Path) -> None:
    rows = tmp_path / "pairs.jsonl"
    rows.write_text('{"prompt": "p", "chosen": "c", "rejected": "r"}\n')
    given: dict[str, Any] = {"dataset": str(rows)}
    assert with_changes(load("flattery"), **given, algorithm="dpo").settings["algorithm"] == "dpo"
    assert with_changes(load("rlhf"), **given).dataset == str(rows)
    with pytest.raises(ScenarioError, match="--dataset needs --reward"):
        with_changes(load("flattery"), **given, algorithm="grpo")
