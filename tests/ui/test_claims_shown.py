"""Whatever a lesson speaks of is on the screen: the curve of every claim, and every view it asks for, at each size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.settings import Settings
from rlplay.scenario.claim import Expect, MetricValue
from rlplay.scenario.loader import bundled, load
from rlplay.scenario.schema import Scenario
from rlplay.scenario.script import Exercise, ScreenVerb, Train, Watch, You, parse
from rlplay.scenario.script_settings import script_settings
from rlplay.ui.app import RlplayApp
from rlplay.ui.curves.first_views import NAMED, OVERVIEW
from rlplay.ui.lesson.script_view import ScriptView
from rlplay.verbs import VIEWS
from tests.ui.stage import on_screen, settled, shown


def spoken(scenario: Scenario) -> Iterator[tuple[Settings, list[Expect] | ScreenVerb]]:
    """The claims that a lesson makes in one breath, and what it puts up; each with the settings that hold then."""
    stages = [{"name": each.name, "updates": each.updates, "settings": each.settings} for each in scenario.stages]
    followed = script_settings(resolve(scenario.settings), stages)
    assert followed is not None
    held, together = followed.settings, list[Expect]()
    for step in parse(scenario.script):
        if isinstance(step, Expect):
            together.append(step)
            continue
        if together:
            yield held, together
            together = []
        if isinstance(step.step if isinstance(step, You) else step, Train):
            held = followed.settings  # of the update on the screen afterwards
        if not isinstance(step, Exercise):
            followed.follow(step)
        if isinstance(step, Watch):
            yield held, [step.claim]
        elif isinstance(step, Exercise):
            yield held, step.claims
        verb = step.step if isinstance(step, You) else step
        puts_up = isinstance(verb, ScreenVerb) and (verb.verb in VIEWS or (verb.verb == "curve" and verb.argument))
        if isinstance(verb, ScreenVerb) and puts_up:
            yield held, verb
    if together:
        yield held, together


def _begin_again(app: RlplayApp) -> None:
    """The panels as they are when a lesson begins."""
    app.panels.curves.take(replace(app.panels.curves.details, wanted=()))
    app.panels.curves.exhibit(())
    for panel, view in zip(app.panels.curves.row, OVERVIEW, strict=True):
        panel.overview = OVERVIEW
        panel.put(view)


def metrics_seen(app: RlplayApp) -> set[str]:
    seen = {name for panel in app.panels.curves.seen if panel.region.area for name in panel.view.metrics}
    return seen | ({"reward"} if "reward ▁" in shown(app.panels.header) else set())


def named(said: list[Expect] | ScreenVerb) -> set[str]:
    """The metrics of claims."""
    claims = [] if isinstance(said, ScreenVerb) else said
    quantities = [claim.quantity for claim in claims]
    return {each.metric.removeprefix("eval_") for each in quantities if isinstance(each, MetricValue)}


SIZES = (80, 24), (120, 35), (160, 45), (240, 67)
SLOW = [pytest.param(size, True, marks=pytest.mark.slow) for size in SIZES]


@pytest.mark.parametrize(("size", "again"), [(SIZES[0], False), *SLOW])
async def test_what_a_lesson_speaks_of_is_on_the_screen(size: tuple[int, int], again: bool) -> None:
    """The quick one, where there is least room, leaves out what another lesson says of the same algorithm."""
    known: set[object] = set()
    async with on_screen(1, size=size) as (app, _, pilot):
        stage, missing = ScriptView(app.play), []
        for name in bundled():
            _begin_again(app)
            for settings, said in spoken(load(name)):
                metrics, verb = named(said), said if isinstance(said, ScreenVerb) else None
                key = settings.algorithm, frozenset(metrics), verb and (verb.verb, verb.argument)
                if key in known and not again:
                    continue
                known.add(key)
                app.panels.show_stage("all")
                app.play.session.settings_of = lambda *_given, held=settings: held  # type: ignore[method-assign]
                app.panels.curves.prepare(app.play.session.run.history, app.play.session.shown, settings)
                await pilot.pause()
                if isinstance(said, ScreenVerb):
                    await app.play.perform(said.verb, said.argument)
                    await pilot.pause()
                    wanted = NAMED.get(said.verb) or NAMED.get(str(said.argument))
                    seen = [panel.view for panel in app.panels.curves.seen if panel.region.area]
                    there = wanted in seen if wanted else said.argument in metrics_seen(app)
                    missing += [] if there else [(name, said)]
                    continue
                stage.say("", [stage.check(claim) for claim in said], "")
                await (settled(pilot) if app.panels.stage != "all" else pilot.pause())
                missing += [(name, metric) for metric in metrics - metrics_seen(app)]
        assert not missing, "\n".join(map(str, missing))


def test_every_view_with_a_verb_can_be_named_in_a_scenario() -> None:
    assert set(VIEWS) <= set(NAMED)


async def test_a_curve_is_not_in_two_panels_once_there_is_room_for_both() -> None:
    async with on_screen(1, size=(80, 24)) as (app, _, pilot):
        app.panels.show_stage("all")
        await settled(pilot)
        (only,) = app.panels.curves.seen
        app.panels.curves.exhibit(["reward"])
        assert "reward" in only.view.metrics, "beside the answers there is room for one"
        app.panels.show_stage("curve")
        await settled(pilot)
        assert len(app.panels.curves.seen) == 1, "the one that is spoken of"
        app.panels.curves.exhibit([])
        await settled(pilot)
        assert [panel.view for panel in app.panels.curves.seen] == list(only.overview[:2])


async def test_curves_asked_for_one_after_the_other_are_shown_together_once_there_is_room() -> None:
    async with on_screen(1, size=(80, 24)) as (app, _, pilot):
        app.panels.show_stage("curve")
        await settled(pilot)
        app.panels.curves.exhibit(["entropy", "grad_norm"])
        app.panels.show_stage("all")
        await settled(pilot)
        for metric in ("kl_old", "reward"):
            await app.play.perform("curve", metric)
        assert len(app.panels.curves.seen) == 1, "until the next layout"
        await settled(pilot)
        assert len(app.panels.curves.seen) == 2
        assert {"kl_old", "reward"} <= {name for panel in app.panels.curves.seen for name in panel.view.metrics}
