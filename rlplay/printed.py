"""What commands print with `--json`: one struct per object, under a schema that has a version.

A field may be added under the same version; a field that goes, or that means something else, makes a new version.
`docs/json.md` explains them, and `docs/schemas` holds a JSON Schema of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rlplay.health.examine import verdicts
from rlplay.health.finding import Evidence, Finding
from rlplay.health.normal import normal
from rlplay.trace.text import visible_json


class Printed(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema"):
    """Base of all objects; `schema` is the command's name and the version, such as "health/1"."""


class UpdateNumbers(Printed, frozen=True, kw_only=True, tag="run-update/1"):
    """An update of `rlplay run`, as soon as no more numbers can come for it."""

    update: int
    """From 1; 0 holds numbers of held-out prompts before training."""
    metrics: dict[str, float | None]
    """By the names of `rlplay.trace.metrics`, which are TRL's where it logs the same; null: not finite."""
    seconds: float
    timings: dict[str, float | None]
    """Seconds of each part of the update."""


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """A claim of the scenario: `passed` is null where the run did not get so far."""

    text: str
    passed: bool | None
    value: float | None


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """A check that would have seen the trouble, and saw none: what it compared."""

    title: str
    text: str


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """A check that cannot say: why, and what to record so that it can ("" where nothing would help)."""

    title: str
    why: str
    record: str


class Usual(msgspec.Struct, frozen=True, kw_only=True):
    """A thing that looks like a fault and is none, and why; `sure` if the settings on record imply it."""

    title: str
    text: str
    sure: bool


class HealthReport(Printed, frozen=True, kw_only=True, tag="health/1"):
    """`rlplay health`: the gravest finding first."""

    run: str
    update: int
    """The last update that was looked at; 0 if none has ended."""
    trainer_steps: tuple[int, int] | None
    """Another trainer's numbers of that update's first and last optimizer step; null: not on record."""
    findings: list[Finding]
    passed: list[Passed]
    unknown: list[Unknown]
    normal: list[Usual]


class RunResult(Printed, frozen=True, kw_only=True, tag="run-result/1"):
    """The last object of `rlplay run`."""

    passed: bool
    expectations: list[Expectation]
    run: str
    """The path of the run file."""
    findings: list[Finding]
    """What is wrong with the run, as in health/1."""


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is on disk."""

    path: str
    name: str
    written: str
    """Local time, ISO 8601."""
    title: str
    model: str
    update: int
    reward: float | None
    """Of the last update that has one."""
    run_bytes: int
    snapshot_bytes: int


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """A file among the runs that cannot be read, and why."""

    path: str
    name: str
    written: str
    problem: str
    run_bytes: int
    snapshot_bytes: int


class RunList(Printed, frozen=True, kw_only=True, tag="runs/1"):
    """`rlplay runs`, newest first."""

    runs: list[RecordedRun]
    unreadable: list[Unreadable]


class ListedScenario(msgspec.Struct, frozen=True, kw_only=True):
    """A bundled scenario; `chapter` is the one of the course that it belongs to."""

    name: str
    title: str
    question: str
    chapter: str


class ScenarioList(Printed, frozen=True, kw_only=True, tag="list/1"):
    """`rlplay list`, in the order of the course."""

    scenarios: list[ListedScenario]


class ListedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting: `--set NAME=VALUE` changes it."""

    name: str
    title: str
    group: str
    default: Any
    takes: str
    meaning: str
    effect: str


class SettingList(Printed, frozen=True, kw_only=True, tag="settings/1"):
    """`rlplay settings`; with a name, that one alone."""

    settings: list[ListedSetting]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the shares are in: a token of an answer, a candidate in its place, or a whole answer."""

    held_out: int | None
    """The update after which the held-out `answer` was given; null: it is one of the update."""
    answer: int
    token: int | None
    """In its answer; null: all tokens that the policy sampled."""
    candidate: int | None
    """The id of the token that is asked about in the place of the one that was sampled; null: that one."""
    text: str
    prompt: str


class TaughtBy(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that taught the target, with a share for each of its tokens."""

    answer: int
    nearness: str
    """"same answer", "same prompt" or "other prompts"."""
    advantage: float | None
    """The mean over its tokens: below 0, the update blamed it; null: not on record."""
    sum: float
    token: int
    """Its token with the largest share, whichever way."""
    prompt: str
    text: str
    tokens: list[str]
    shares: list[float]


class EarlierUpdates(msgspec.Struct, frozen=True, kw_only=True):
    """The updates after `since` up to `update`, whose gradients were still in the optimizer's momentum."""

    since: int
    update: int
    sum: float


class Without(msgspec.Struct, frozen=True, kw_only=True):
    """The update taken once more, with the credit of some answers 0: log-probability after it, and how far it moved."""

    answers: list[int]
    after: float
    moved: float


class Teachers(Printed, frozen=True, kw_only=True, tag="teachers/1"):
    """`rlplay teachers`: what moved a target in an update, in nats of its log-probability."""

    run: str
    update: int
    by: int
    """The update that the answers belong to."""
    target: Asked
    before: float
    after: float
    measured: float
    predicted: float
    batch: float
    earlier: float
    rest: dict[str, float]
    first_order: float
    """⟨∇q, Δθ⟩ by the weights as they moved, which `predicted` should equal."""
    sentence: str
    """The strongest cause in words, as on the screen; empty if `by` is an earlier update."""
    answers: list[TaughtBy]
    """Nearest first, and of those the one that did most."""
    earlier_updates: list[EarlierUpdates]
    """Newest first."""
    without: Without | None


class TaughtInUpdates(msgspec.Struct, frozen=True, kw_only=True):
    """How far the updates after `since` up to `update` moved a target."""

    since: int
    update: int
    after: float
    measured: float
    predicted: float
    batch: float
    earlier: float
    rest: float


class TeachersCourse(Printed, frozen=True, kw_only=True, tag="teachers-course/1"):
    """`rlplay teachers --course`: every update of the run, oldest first."""

    run: str
    target: Asked
    moves: list[TaughtInUpdates]


class ShownToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token that shows a problem, with its probability before and after the first rehearsed update.

    `same` if the unchanged run has sampled it too, after the same beginning.
    """

    update: int
    answer: int
    token: int
    text: str
    before: float
    after: float | None
    same: bool


class TriedChange(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a finding with changed settings; the first has none, and is the run as it is."""

    label: str
    settings: dict[str, Any]
    verdict: str
    """"unchanged", "gone", "better", "same", "worse", "untold" where a number is missing, "refused"."""
    helped: bool
    text: str
    number: float | None
    numbers: dict[int, float | None]
    """By update."""
    reward: float | None
    kl: float | None
    gold: dict[str, float | None]
    paid_alike: bool
    """Whether the reward is that of the run, and not of other weights."""
    costs_reward: bool
    """Whether the finding is gone or better, and the reward clearly lower than in the run as it is."""
    brings: list[str]
    token: ShownToken | None


class Tried(Printed, frozen=True, kw_only=True, tag="try/1"):
    """`rlplay try`: what became of a finding with each change."""

    run: str
    finding: str
    """Its name, as in health/1; "" if there is none."""
    title: str
    since: int
    """The update after which all begin."""
    why: str
    """Why there; where nothing was tried, why not."""
    updates: int
    measure: str
    """The finding's own number."""
    better: str
    """"lower" or "higher"."""
    changes: list[TriedChange]


def health_report(run: Path, evidence: Evidence | None, found: Sequence[Finding]) -> HealthReport:
    """The findings of a run, and what is said of the other checks; `evidence` is None if no update has ended."""
    said = [] if evidence is None else verdicts(evidence, list(found))
    return HealthReport(
        run=str(run),
        update=0 if evidence is None else evidence.last,
        trainer_steps=None if evidence is None else evidence.history.clock.steps(evidence.last),
        findings=list(found),
        passed=[Passed(title=each.title, text=each.text) for each in said if each.ticked],
        unknown=[Unknown(title=each.title, why=str(each.text), record=each.record) for each in said if not each.ticked],
        normal=[]
        if evidence is None
        else [Usual(title=each.title, text=each.text, sure=each.sure) for each in normal(evidence)],
    )


def finite(numbers: Mapping[str, float]) -> dict[str, float | None]:
    """The numbers, with None for those that are not finite: JSON has no NaN."""
    return {name: number_or_null(value) for name, value in numbers.items()}


def number_or_null(value: float | None) -> float | None:
    """A number that JSON can hold."""
    return float(value) if value is not None and math.isfinite(value) else None


def json_line(what: Printed) -> str:
    """An object as one line of JSON, in which no character can command a terminal."""
    return visible_json(msgspec.json.encode(what).decode())


SCHEMAS: dict[str, type[Printed]] = {
    str(each.__struct_config__.tag): each
    for each in (
        HealthReport,
        UpdateNumbers,
        RunResult,
        RunList,
        ScenarioList,
        SettingList,
        Teachers,
        TeachersCourse,
        Tried,
    )
}
"""The objects by their schema."""
