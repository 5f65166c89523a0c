"""The concepts of the course, each done by the learner: `concepts.yaml` says in which step, and with which key."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest

from rlplay.engine.driver import Driver
from rlplay.engine.headless import HeadlessRun
from rlplay.engine.run_report import TextReport
from rlplay.scenario.expect import ClaimResult
from rlplay.scenario.job import new_job
from rlplay.scenario.lesson import CONCEPTS, whole_script
from rlplay.scenario.loader import load
from rlplay.scenario.scenario_world import step_word
from rlplay.scenario.script import Ask, Change, Exercise, PreferStep, ScreenVerb, Step, Train, Write, You, parse
from rlplay.trace.run import Run
from rlplay.verbs import VERBS

KEYS = {"set": VERBS["knobs"].keys, "walk": ("enter",)}
"""Of verbs without a key of their own: a setting is changed in the knobs, and the map has the focus."""


class Concept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a learner does, and where."""

    concept: int
    name: str
    lesson: str
    step: str
    does: str
    key: str


TABLE = msgspec.yaml.decode(Path(__file__).with_name("concepts.yaml").read_bytes(), type=list[Concept])
BY_LESSON = {lesson: [each for each in TABLE if each.lesson == lesson] for lesson in {each.lesson for each in TABLE}}


def words(step: Step) -> str:
    return step.question if isinstance(step, Ask) else step.text if isinstance(step, You | Exercise | Write) else ""


def the_step(concept: Concept) -> Ask | You | Exercise | Write:
    """The one step of its lesson that has its words."""
    steps = [step for step in parse(whole_script(load(concept.lesson))) if concept.step in words(step)]
    assert len(steps) == 1, f"{concept.lesson} has {len(steps)} such steps"
    assert isinstance(steps[0], Ask | You | Exercise | Write)
    return steps[0]


def verb_of(step: You) -> str:
    match step.step:
        case Train(until):
            return until
        case Change():
            return "set"
        case PreferStep():
            return "prefer"
        case ScreenVerb(verb):
            return verb
        case _:
            return "rewind"


def test_every_concept_has_its_step() -> None:
    assert [each.concept for each in TABLE] == list(range(1, CONCEPTS + 1))
    assert len({each.name for each in TABLE}) == CONCEPTS


@pytest.mark.parametrize("concept", TABLE, ids=lambda each: f"{each.concept}-{each.lesson}")
def test_the_learner_does_it_with_this_key(concept: Concept) -> None:
    step = the_step(concept)
    assert concept.concept in load(concept.lesson).shows
    match step:
        case Ask():
            assert (concept.does, concept.key) == ("ask", str(step.answer + 1))
        case Exercise():
            assert (concept.does, concept.key) == ("exercise", "k")
            assert any(isinstance(each, Change) for each in step.solution), "a setting solves it"
        case Write():
            assert (concept.does, concept.key) == ("write", *VERBS["write"].keys)
        case You():
            assert concept.does == verb_of(step)
            assert concept.key in KEYS.get(concept.does, VERBS[concept.does].keys)


class Pupil(HeadlessRun):
    """Plays a lesson on an engine and does by itself what the concepts ask for; the script then leaves it alone."""

    def __init__(self, concepts: list[Concept]) -> None:
        run = Run(candidates=False)
        super().__init__(TextReport(io.StringIO(), io.StringIO()), None, run)
        self._concepts = concepts
        self.done: set[int] = set()

    def _those(self, task: Step) -> list[Concept]:
        return [each for each in self._concepts if each.step in words(task)]

    async def turn(self, task: You | Exercise) -> bool:
        """Do what a concept asks for; the script does the rest."""
        if not isinstance(task, You) or not (found := self._those(task)):
            return False
        assert await self._script.carry_out(task.step)
        self.done |= {each.concept for each in found}
        return True

    async def write(self, task: Write) -> None:
        """Try the solution on the engine."""
        before = len(self.outcomes)
        await super().write(task)
        if len(self.outcomes) == before:  # a failed try is an outcome
            self.done |= {each.concept for each in self._those(task)}

    def reveal(self, outcomes: list[ClaimResult], about: Ask | Exercise | None) -> None:
        """Note the predictions and the exercises whose claims all hold."""
        super().reveal(outcomes, about)
        if about is not None and all(each.passed for each in outcomes):
            self.done |= {each.concept for each in self._those(about)}


@pytest.mark.slow
@pytest.mark.parametrize("lesson", sorted(BY_LESSON))
def test_the_engine_shows_what_the_learner_has_done(lesson: str, tmp_path: Path) -> None:
    scenario, concepts = msgspec.structs.replace(load(lesson), seed=3), BY_LESSON[lesson]
    pupil = Pupil(concepts)
    pupil.run.step_word = step_word(scenario.world)
    driver = Driver(new_job(scenario, tmp_path / "run.rlplay", "cpu"), pupil.take)
    try:
        driver.load(lambda _what, _share: None)
        pupil.play(parse(whole_script(scenario)), driver)
    finally:
        driver.close()
    assert pupil.done == {each.concept for each in concepts}
