"""The health screen: each problem of a run with its numbers and a remedy, or that there is none."""

import msgspec
import numpy as np

from rlplay.trace.history import History
from rlplay.trace.records import Sampled
from rlplay.trace.update import Update
from rlplay.ui.screens.health import HealthScreen
from rlplay.ui.widgets.steady_static import SteadyStatic
from rlplay.ui.words.diagnoses import examine, warning
from tests.recorded import synthetic_update
from tests.ui.stage import CHOSEN, playground, settled


def cut(number):
    """The records of an update of which 9 of 16 answers were cut."""
    short = np.array([1] * 9 + [0] * 7, dtype=np.uint8)
    return [
        msgspec.structs.replace(record, truncated=short) if isinstance(record, Sampled) else record
        for record in synthetic_update(number)
    ]


def health_text(app) -> str:
    assert isinstance(app.screen, HealthScreen)
    return str(app.screen.query_one(SteadyStatic).render())


def test_every_check_is_listed_and_problems_come_first():
    update, history = Update(1), History()
    for record in cut(1):
        update.add(record)
        history.add(record)
    findings = examine(update, history, CHOSEN)
    assert [bool(finding.wrong) for finding in findings] == [True] + [False] * 7
    assert findings[0].wrong == warning(update, history, CHOSEN)
    assert "raise max_completion_length" in findings[0].wrong
    fine = {finding.name: finding.evidence for finding in findings[1:]}
    assert fine["KL to the reference"].startswith(f"{update.finished.metrics['kl']:.3g} nats")
    assert fine["Gold score"] == "", "there is none"


def test_an_update_is_without_signal_only_where_every_advantage_is_exactly_0():
    sampled, _, credited = (record for record in synthetic_update(1)[:3])
    text = []
    for advantage in (0.0, 1e-9):
        update = Update(1)
        update.add(sampled)
        flat = np.zeros_like(credited.advantages)
        flat[0] = advantage  # however small: Adam divides a gradient by its size
        update.add(msgspec.structs.replace(credited, advantages=flat))
        text.append({finding.name: finding for finding in examine(update, History(), CHOSEN)}["Signal"])
    assert text[0].wrong.startswith("Every advantage is 0")
    assert text[1].wrong == ""
    assert text[1].evidence.startswith("1 of ")


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
        assert health_text(app).count("✓") == 4, "of gold scores there are none, of entropy only one"
        await pilot.press("k")
        await settled(pilot)
        assert app.knobs is not None


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
        await pilot.press("h")
        await settled(pilot)
        assert app.screen is app.main
