"""Undo: which update each press goes back to, and what the screen says of it."""

import pytest

from rlplay.link.messages import Rewind
from rlplay.trace.records import Changed, Rewound
from tests.recorded import synthetic_update
from tests.ui.stage import on_screen, settled, shown

WIDE = (160, 45)


async def test_quick_undos_add_up():
    async with on_screen(size=WIDE) as (_, source, pilot):
        for number in range(1, 6):
            source.update(number)
        await settled(pilot)
        await pilot.press("z", "z", "z")
        assert source.commands == [Rewind(4), Rewind(3), Rewind(2)]
        source.records([Rewound(update=4, abandoned=5)])
        source.status(4)
        await settled(pilot)
        await pilot.press("z")
        assert source.commands[-1] == Rewind(1), "it has not come as far as it was asked to"
        source.records([Rewound(update=1, abandoned=4)])
        source.status(1)
        await settled(pilot)
        await pilot.press("u", "z")
        assert source.commands[-1] == Rewind(0)


async def test_undo_gives_up_an_update_in_progress_or_takes_back_a_finished_one():
    async with on_screen(1, size=WIDE) as (_, source, pilot):
        await pilot.press("z")
        assert source.commands[-1] == Rewind(0)
        source.records([Rewound(update=0, abandoned=1)])
        source.update(1)
        source.records(synthetic_update(2)[:2])
        source.status(1, phase="credit")
        await settled(pilot)
        await pilot.press("z")
        assert source.commands[-1] == Rewind(1)


async def test_a_rewind_shows_the_update_gone_back_to():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.update(1)
        source.update(2)
        source.records([Rewound(update=1, abandoned=2)])
        source.status(1)
        await settled(pilot)
        assert app.play.session.shown.number == 1
        assert app.play.session.run.history.series("reward")[0] == [1]


async def test_after_going_back_it_says_so_until_it_goes_on():
    async with on_screen(size=WIDE) as (app, source, pilot):
        for number in range(1, 4):
            source.update(number)
        source.records([Rewound(update=2, abandoned=3)])
        source.status(2)
        await settled(pilot)
        assert "Back at the end of update 2. Update 3 undone" in shown(app.panels.narrator)
        source.records([Rewound(update=0, abandoned=2)])
        source.status(0)
        await settled(pilot)
        assert "Updates 1–3 undone (grey in the curves)." in shown(app.panels.narrator)
        assert "u plays update 1 again" in shown(app.panels.narrator)
        source.update(1)
        await settled(pilot)
        assert "Update 1: reward" in shown(app.panels.narrator)
        source.records([*synthetic_update(2)[:2], Rewound(update=1, abandoned=1, asked=True)])
        source.status(1)
        await settled(pilot)
        assert "Back at the end of update 1." in shown(app.panels.narrator)
        assert "undone" not in shown(app.panels.narrator), "an update that had not ended was only given up"


def changed(update, value, previous, phase="sample", name="temperature", **also):
    return Changed(update=update, phase=phase, name=name, value=value, previous=previous, also=also)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([changed(4, 0.2, 1.0)], "Temperature 0.2 → 1"),
        ([changed(2, 0.5, 1.0), changed(4, 0.2, 0.5)], "Temperature 0.2 → 1"),
        ([changed(2, 0.5, 1.0), changed(4, 1.0, 0.5)], ""),
        ([changed(2, 0.5, 1.0), changed(3, 0.1, 0.2, name="epsilon")], "Temperature 0.5 → 1 · Clip ε 0.1 → 0.2"),
        ([changed(4, "ppo", "grpo", name="algorithm", baseline="value")], "Algorithm ppo → grpo, and 1 more with it"),
        ([changed(1, 0.5, 1.0)], ""),
    ],
)
async def test_going_back_says_which_settings_went_back_too(changes, text):
    async with on_screen(size=WIDE) as (app, source, pilot):
        for number in range(1, 4):
            source.records([change for change in changes if change.update == number])
            source.update(number)
        source.records([change for change in changes if change.update == 4])
        await settled(pilot)
        app.clear_notifications()
        source.records([Rewound(update=0, abandoned=3)])
        source.status(0)
        await settled(pilot)
        words = shown(app.panels.narrator)
        assert "Updates 1–3 undone" in words
        assert (f"Settings also changed back: {text}." in words) == bool(text), words
        toasts = [note.message for note in app._notifications]
        expected = ["\n".join([*text.split(" · "), "from update 1 on"])] if text else []
        assert toasts == expected, "in a lesson the narrator is the teacher's"
        source.update(1)
        await settled(pilot)
        assert "went back" not in shown(app.panels.narrator)


async def test_giving_up_an_update_says_so_where_that_took_a_setting_back():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.update(1)
        source.records([*synthetic_update(2)[:2], changed(2, 0.1, 0.2, "credit", "epsilon")])
        source.records([Rewound(update=1, abandoned=1)])
        source.status(1)
        await settled(pilot)
        assert "Back at the end of update 1. Settings also changed back: Clip ε 0.1 → 0.2." in shown(
            app.panels.narrator
        )
