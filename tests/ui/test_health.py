"""The health screen: each problem of a run with its numbers and a remedy, or that there is none."""

import msgspec
import numpy as np
from textual.widgets import OptionList

from rlplay.health.digest import Place
from rlplay.health.finding import Finding
from rlplay.trace.records import Sampled
from rlplay.trace.update import Update
from rlplay.ui.screens import health
from rlplay.ui.screens.health import HealthScreen
from rlplay.ui.session.examination import examine
from rlplay.ui.widgets.steady_static import SteadyStatic
from tests.recorded import synthetic_update
from tests.ui.stage import playground, settled


def cut(number):
    """The records of an update of which 9 of 16 answers were cut."""
    short = np.array([1] * 9 + [0] * 7, dtype=np.uint8)
    return [
        msgspec.structs.replace(record, truncated=short) if isinstance(record, Sampled) else record
        for record in synthetic_update(number)
    ]


def health_text(app) -> str:
    assert isinstance(app.screen, HealthScreen)
    options = app.screen.query_one(OptionList)
    parts = [str(text.render()) for text in app.screen.query(SteadyStatic)]
    found = [str(options.get_option_at_index(n).prompt) for n in range(options.option_count)]
    return "\n".join([parts[0], *found, *parts[1:]])


async def test_it_opens_by_its_key_on_the_last_finished_update_and_leads_to_the_knobs():
    app, source = playground()
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("h")
        await settled(pilot)
        assert "press u for the first update" in health_text(app)
        source.records([*cut(1), *synthetic_update(2)[:1]])
        await settled(pilot)
        app.screen.follow()
        assert "1 problem found." in health_text(app)
        assert "9 of 16 answers were cut" in health_text(app)
        assert "Change: Raise max_completion_length." in health_text(app)
        assert "– Critic  not enough data" in health_text(app)
        await pilot.press("k")
        await settled(pilot)
        assert app.knobs is not None


async def test_enter_goes_to_the_token_that_shows_the_problem():
    app, source = playground()
    async with app.run_test(size=(160, 45)) as pilot:
        for number in (1, 2):
            for record in cut(number):
                source.kept.setdefault(number, Update(number)).add(record)
        source.records([*cut(1), *cut(2)])
        source.status(2)
        await settled(pilot)
        app.session.look_at(1)
        await settled(pilot)
        place = examine(app.session)[1][0].place
        app.session.back_to_live()
        await settled(pilot)
        assert examine(app.session)[1][0].place.update == 2
        app.session.look_at(1)
        await pilot.press("h")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert app.screen is app.main
        assert app.session.shown.number == place.update == 1
        assert app.tokens.cursor == (place.answer, place.token)


async def test_a_finding_about_an_older_update_opens_that_update(monkeypatch):
    app, source = playground()
    async with app.run_test(size=(160, 45)) as pilot:
        for number in (1, 2):
            source.kept[number] = Update(number)
            for record in synthetic_update(number):
                source.kept[number].add(record)
            source.update(number)
        await settled(pilot)
        finding = Finding("x", "Title", "E.", "C.", "D.", place=Place(1, 3, 2))
        monkeypatch.setattr(health, "examine", lambda session: (examine(session)[0], [finding]))
        await pilot.press("h")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert app.session.shown.number == 1
        assert app.tokens.cursor == (3, 2)


async def test_a_healthy_run_is_reported_as_healthy():
    app, source = playground()
    async with app.run_test(size=(120, 35)) as pilot:
        source.update(1)
        source.update(2)
        await settled(pilot)
        await pilot.press("h")
        await settled(pilot)
        first, second = app.session.history.series("reward")[1]
        reward = f"Reward from {first:.3g} at update 1 to {second:.3g} at 2."
        assert health_text(app).startswith(f"No problem found. {reward}")
        assert not app.screen.query_one(OptionList).display
        await pilot.press("h")
        await settled(pilot)
        assert app.screen is app.main
