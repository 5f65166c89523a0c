"""New scenario files: an example with comments to start from, or a script that repeats a recorded run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from rlplay.algorithms.settings import check
from rlplay.scenario.names import bundled
from rlplay.scenario.record_to_script import script_from
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.schema import Scenario, Stage
from rlplay.trace.runfile import RunReader
from rlplay.trace.text import brief_path, quote, visible

_EXAMPLE = """\
# Play it: rlplay {path}      Check what it claims: rlplay run {path}
title: {title}
question: What do you want to find out?
# summary: A paragraph for 'rlplay show'.

# What to learn: a bundled task (arithmetic, word_problems, questions, guess, calculator) …
task: arithmetic
# … or 'task: mine.py:make', a function of yours that returns prompts with their rewards …
# … or your own prompts and rewards, relative to this file's folder (prompts also by name on Hugging Face):
# dataset: questions.jsonl        # a column "prompt"; the others reach the reward by name
# reward: [score.py:short]        # def short(prompts, completions, **columns): return [number, …]
# model: Qwen/Qwen3-0.6B          # a name or a folder; without it, the small bundled model

# Every knob; 'k' in the playground explains them, 'rlplay algorithms' lists the algorithms.
settings:
  algorithm: grpo
  num_prompts: 8                  # different prompts in an update
  num_generations: 8              # answers to each
  max_completion_length: 24       # tokens
  learning_rate: 4e-4
  reward_weights: {{correct: 1}}    # the task's rewards, by name

seed: 0
max_updates: 10
eval_every: 5                     # updates between answers to held-out prompts; 0: never
# eval_prompts: 64

# Pipelines: stages in place of max_updates; each continues with the policy of the one before.
# stages:
#   - {{name: imitate, updates: 10, settings: {{algorithm: sft}}}}
#   - {{name: reinforce, updates: 20, settings: {{algorithm: grpo}}}}

# A lesson, step by step with 't'; without a screen 'rlplay run' plays it and checks the claims.
script:
  - say: What happens first, and what to look at.
  - update: 1                     # also token, phase, step
  - lens: credit                  # colours the tokens
  - ask:                          # predict first
      question: What will happen to the reward?
      choices: [it falls, it rises]
      answer: it rises
      because: Training maximises it.
  - run: 9
  - expect: {{text: It learns, metric: reward, at: 10, minus: 1, above: 0}}
# - set: {{temperature: 0.8}}       # any knob
# - rewind: 0                     # back to the state after an update; 'undo': by one
  - say: What this has shown.
"""

_WORLD = """\
# Play it: rlplay {path}      Check what it claims: rlplay run {path}
title: {title}
question: Does it find the way?

world:
  map:                            # S start, G goal, O hole, # wall, . floor, 1 to 9 a reward of that size
    - S...
    - .O..
    - ..O.
    - O..G
  goal: 1                         # reward for reaching G, which ends the episode
  hole: -1                        # reward for falling into O, which ends it too
  step: -0.01                     # reward for every other move
  slip: 0                         # share of moves that go another way
# hidden: true                    # in world: squares whose names the policy cannot read
# model: mlp                      # a small network in place of a table

settings:
  algorithm: ppo
  num_prompts: 1                  # starting squares in an update
  num_generations: 16             # episodes from each
  gamma: 0.99
  learning_rate: 0.1

seed: 0
max_updates: 60
eval_every: 0

script:
  - say: The environment writes squares, the policy answers with moves. At first every move is equally likely.
  - update: 1
  - you: {{say: "Look for the token with the most credit: press `x`.", largest: null}}
  - ask:
      question: What does the policy learn first?
      choices: [the first move, the last move before the goal]
      answer: the last move before the goal
      because: Only there does a reward tell good moves from bad ones; the critic then carries it back.
  - watch: {{metric: reward, above: 0.5, say: Most episodes reach the goal.}}
  - run: 59
  - expect: {{text: The goal is found, metric: reward, above: 0.8}}
"""

_FROM_RUN = """\
# Play it: rlplay {path}      Check what it claims: rlplay run {path}
# From the run {run}: its task, seed and initial settings; the script repeats what you did there.
# On the same machine and device ({device}, {versions}) it gives the same numbers, bit for bit.
# It shows the colours and tokens that you looked at during the run; add say, ask and expect as you like.
"""


def example(path: Path, world: bool = False) -> str:
    """The text of an example scenario for the file `path`; with a map, if it is to be about a `world`."""
    return (_WORLD if world else _EXAMPLE).format(path=path, title=json.dumps(_title(path), ensure_ascii=False))


def from_run(run: Path, path: Path) -> str:
    """The text of a scenario for the file `path` that repeats what the user did in a recorded run.

    Raises ValueError, one line, if the run cannot be read or no script can repeat it.
    """
    with RunReader(run) as reader:
        started = reader.started
        if started.source:
            raise ValueError(f"{run}: {visible(started.source)} trained this run; only a run of rlplay can be repeated")
        try:
            scenario = scenario_of(started)
            script = script_from(reader.events())
        except (ValueError, msgspec.MsgspecError) as error:
            raise ValueError(f"{run}: {error}") from None
    versions = ", ".join(f"{name} {started.versions[name]}" for name in ("torch", "rlplay") if name in started.versions)
    content = {"title": _title(path), **_plain(scenario), "script": script}
    head = _FROM_RUN.format(path=path, run=run.stem, device=started.device, versions=versions)
    return head + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)


def write(path: Path, text: str) -> None:
    """Write a new scenario file. Raises ValueError, one line, if it cannot be written."""
    if path.stem.startswith(".") or not re.search(r"\w", path.stem):
        raise ValueError(f"a scenario needs a name of letters or digits, e.g. my-first; got {quote(path.stem)}")
    if path.stem in bundled():
        raise ValueError(f"{quote(path.stem)} is a bundled scenario; take another name")
    if not path.parent.is_dir():
        raise ValueError(
            f"there is no folder {quote(str(path.parent))}; create it, or give only a name, e.g. {path.stem}"
        )
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ValueError(f"{brief_path(str(path))} exists already; take another name, or remove it") from None
    except OSError as error:
        raise ValueError(f"{brief_path(str(path))} cannot be written: {error.strerror}") from None


def _title(path: Path) -> str:
    return path.stem.replace("-", " ").replace("_", " ").capitalize()


def _plain(scenario: Scenario) -> dict[str, Any]:
    """What differs from a scenario's defaults, in YAML types; the new file brings its own name, title and script."""
    content = msgspec.to_builtins(scenario)
    kept = ("name", "title", "script", "origin") + ("max_updates",) * bool(scenario.stages)
    defaults = msgspec.to_builtins(Scenario("", "", ""))
    content = {name: value for name, value in content.items() if name not in kept and value != defaults[name]}
    if "stages" in content:
        unset = msgspec.to_builtins(Stage("", 0))
        content["stages"] = [{name: v for name, v in stage.items() if v != unset[name]} for stage in content["stages"]]
    for part in (content, *content.get("stages", ())):
        if "settings" in part:
            part["settings"] = {name: check(name, value) for name, value in part["settings"].items()}
    return {"question": scenario.question, **content, "seed": scenario.seed}
