"""An update of many thousand tokens: its digest is made in a thread, and keys go on meanwhile."""

import threading

from rlplay.health import health_of_run as health_run
from rlplay.ui.session import digesting
from rlplay.ui.tokens.facts import Facts, facts_of
from tests.ui.stage import on_screen, settled, until


async def test_the_digest_of_a_large_update_is_made_in_a_thread(monkeypatch):
    monkeypatch.setattr(digesting, "AT_ONCE", 10)
    threads, go_on, plain = [], threading.Event(), health_run.digest

    def digest(update):
        threads.append(threading.current_thread())
        assert go_on.wait(10)
        return plain(update)

    monkeypatch.setattr(health_run, "digest", digest)
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        source.update(1)
        await until(pilot, lambda: threads)
        assert threads[0] is not threading.main_thread()
        await until(pilot, lambda: app.panels.tokens.rows)
        await pilot.press("right")
        await until(pilot, lambda: app.panels.tokens.cursor == (0, 1))  # a key acts while the digest is being made
        assert not app.play.session.health.knows(1)
        go_on.set()
        await until(pilot, lambda: app.play.session.health.knows(1))
        await settled(pilot)


async def test_the_panels_share_the_numbers_of_an_update_until_it_changes():
    async with on_screen(1, size=(160, 45)) as (app, _, _):
        shown = app.play.session.shown
        assert facts_of(shown) is facts_of(shown)
        before = facts_of(shown)
        shown.steps.pop()
        assert facts_of(shown) is not before
        assert isinstance(facts_of(shown), Facts)
