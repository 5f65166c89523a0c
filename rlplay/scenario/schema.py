"""A scenario file: what is learned, with which settings, and the script that plays it."""

from __future__ import annotations

from typing import Any

import msgspec


class Stage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One part of a pipeline: so many updates, under the scenario's settings with the stage's own on top.

    Each stage begins with the policy of the one before, which is then its reference, too.
    """

    name: str
    updates: int
    settings: dict[str, Any] = {}


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One scenario. `task` names a bundled task, or `dataset` and `reward` point at the user's own.

    `script` is a list of mappings with one key each, a verb of `verbs.py`, as in `- update: 3`.
    """

    name: str
    title: str
    question: str
    summary: str = ""
    model: str = "pocket"
    task: str | None = None
    dataset: str | None = None  # a file, a folder, or a name on Hugging Face; for the last two there are
    dataset_config: str | None = None
    dataset_train_split: str | None = None  # None: train
    reward: list[str] = []  # FILE.py:FUNCTION each
    prompts: list[str] | None = None  # trained on: only these, in this order, every update
    settings: dict[str, Any] = {}
    stages: list[Stage] = []  # `max_updates` is then the sum of theirs
    seed: int = 0
    max_updates: int = 50
    eval_every: int = 5  # held-out evaluation every so many updates; 0: never
    eval_prompts: int = 64
    eval_generations: int = 1  # answers to each held-out prompt; more where prompts are few
    script: list[dict[str, Any]] = []
    origin: str = ""  # what the command line calls it, filled in by `load`: a bundled name or an absolute path


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run to do: a scenario (command-line changes already in it) and where and on what to run it."""

    scenario: Scenario
    run: str  # path of the run file
    device: str = "auto"
    threads: int | None = None  # CPU threads; None: all cores but one, so that the screen stays responsive
    resume: bool = False  # go on from the run file's last snapshot
