"""What goes wrong: engines that die, fall silent or never begin, and text that would take over the terminal."""

import unicodedata

from rlplay.link.messages import Failed
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.records import Notice
from rlplay.trace.runfile import RunWriter
from rlplay.ui.app import RlplayApp
from rlplay.ui.session.sources import LiveSource
from tests.recorded import synthetic_run, synthetic_update
from tests.ui.stage import Fed, all_text, on_screen, playground, settled, shown, text_of

WIDE = (160, 45)
EVIL = "\x1b]0;owned\x07\x9b31m"


async def test_the_engine_dies_and_comes_back():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.update(1)
        source.put(Failed("The engine ended: killed (SIGKILL)", "traceback"), None)
        await settled(pilot)
        assert app.panels.banner.display
        words = shown(app.panels.banner)
        assert "killed (SIGKILL)" in words
        assert "r resumes from the last snapshot (update 1)" in words
        assert "answer" in all_text(app.panels.tokens), "the data stays"
        commands = len(source.commands)
        await pilot.press("u")
        assert len(source.commands) == commands, "nobody is there to obey"
        await pilot.press("r")
        source.status(1)
        await settled(pilot)
        assert source.started == 2
        assert not app.panels.banner.display
        assert any("traceback" in line.text for _, line in app.play.session.log)


async def test_an_engine_that_falls_silent_is_noticed():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.put(None)
        await settled(pilot)
        assert app.panels.banner.display


async def test_notices_are_shown_and_logged_and_obey_nothing():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.records([Notice(update=0, level="warning", text="beta=[red]9 is not allowed")])
        await settled(pilot)
        assert [n.message for n in app._notifications] == ["beta=[red]9 is not allowed"]
        assert app.play.session.log[-1][1].level == "warning"


async def test_an_error_the_engine_stopped_at_stays_in_sight_until_it_goes_on():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.update(1)
        source.records([Notice(update=1, level="error", text="reward function 'bad' failed: `x` is [red]gone")])
        source.status(1)
        await settled(pilot)
        assert "reward function 'bad' failed: `x` is [red]gone" in shown(app.panels.narrator)
        assert "▲ stopped" in shown(app.panels.header)
        source.status(1, running=True)
        await settled(pilot)
        assert "failed" not in shown(app.panels.narrator)
        assert "stopped" not in shown(app.panels.header)


async def test_an_engine_that_never_began_offers_no_snapshot():
    source = Fed()
    app = RlplayApp(source)
    async with app.run_test(size=WIDE) as pilot:
        source.put(Failed("model 'nosuch' could not be loaded", ""), None)
        await settled(pilot)
        assert "r tries again" in shown(app.panels.banner)
        for words in (shown(app.panels.narrator), text_of(app.panels.tokens)):
            assert "space" not in words, "nobody is invited to keys that do nothing now"
        await pilot.press("q")
    assert app.return_value == 2


async def test_foreign_text_is_shown_not_obeyed():
    """A run file or a failing reward function may contain anything; none of it reaches the terminal."""
    app, source = playground(title=EVIL, model=EVIL)
    async with app.run_test(size=WIDE) as pilot:
        source.records([Notice(update=1, level="warning", text=f"first\n{EVIL}")])
        await settled(pilot)
        app.panels.narrator.say(EVIL)
        app.panels.narrator.ask(EVIL, [EVIL, EVIL])
        asked = app.panels.narrator.render().plain
        source.put(Failed(f"first\n{EVIL}"))
        await settled(pilot)
        (notice,) = app._notifications
        seen = [
            shown(app.panels.header),
            shown(app.panels.banner),
            app.panels.banner.render().plain,
            notice.message,
            asked,
        ]
        for text in seen:
            assert "owned" in text
            assert not [
                character for character in text if unicodedata.category(character) == "Cc" and character != "\n"
            ]


def test_a_run_file_that_was_deleted_and_written_again_is_read_on(tmp_path):
    run = synthetic_run(tmp_path / "a.rlplay", updates=1)
    source = LiveSource(Job(scenario=Scenario(name="n", title="t", question="q"), run=str(run)))
    reader = source._open()
    assert source.recorded() == [1]
    assert source._open() is reader
    writer = RunWriter.reopen(run)
    run.unlink()
    assert source.load(1) is not None, "from the file that is still open"
    for record in synthetic_update(2):
        writer.append(record)
    assert source.recorded() == [1, 2]
    assert source.load(2) is not None
    writer.close()
