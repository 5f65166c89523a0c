"""For a projector: the subject and the sentence about it, and a remote's key goes on."""

from __future__ import annotations

import pytest
from textual.widget import Widget

from rlplay.ui.app import RlplayApp
from tests.ui.stage import on_screen, playground, settled


def seen(app: RlplayApp, *widgets: Widget) -> list[bool]:
    return [bool(widget.size.area) and widget.display for widget in widgets]


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (160, 45)])
async def test_only_the_subject_and_the_sentence_are_shown(size: tuple[int, int]) -> None:
    async with on_screen(1, size=size) as (app, _source, pilot):
        panels = app.panels
        chrome = panels.header, panels.phases, panels.keys, panels.curves
        await pilot.press("f5")
        await settled(pilot)
        assert panels.stage == "answers"
        assert seen(app, *chrome) == [False] * 4
        assert seen(app, panels.tokens, panels.narrator) == [True, True]
        room = panels.tokens.size.height
        stages = set()
        for _ in range(9):
            await pilot.press("p")
            await settled(pilot)
            stages.add(panels.stage)
        assert "all" not in stages
        assert {"token", "curve", "river"} <= stages
        await app.play.perform("stage", "answers")
        await pilot.press("f5")
        await settled(pilot)
        assert all(seen(app, panels.header, panels.phases, panels.keys))
        assert panels.tokens.size.height < room


async def test_page_down_plays_the_lesson_only_while_one_presents() -> None:
    app, _source = playground([{"say": "Look."}, {"say": "Done."}])
    async with app.run_test(size=(120, 35)) as pilot:
        await settled(pilot)
        await pilot.press("pagedown")
        await settled(pilot)
        assert "Look." not in app.panels.narrator.words.plain
        await pilot.press("f5", "pagedown")
        await settled(pilot)
        assert "Look." in app.panels.narrator.words.plain
