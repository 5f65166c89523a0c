"""A lesson on the smallest screen: what a caption speaks of stays in sight beside it, however long the caption is."""

from __future__ import annotations

import re

import msgspec
import pytest

from rlplay.scenario.loader import bundled, load
from rlplay.scenario.script import Ask, Exercise, Say, You, parse
from rlplay.ui.world.world_map import MAPS, WorldMap
from tests.ui.stage import playground, settled, shown, until

SMALLEST = (80, 24)


def words_about_the_map(name: str) -> list[str]:
    """The captions of a lesson that speak of its map, with the hint of an exercise."""
    texts = []
    for step in parse(load(name).script):
        match step:
            case Say(text) | You(text=text) | Ask(question=text):
                texts.append(text)
            case Exercise():
                texts.append(f"{step.text} Hint: {step.hint}")
    return [text for text in texts if re.search(r"\b[Mm]aps?\b", text)]


WITH_MAPS = [name for name in bundled() if load(name).world and words_about_the_map(name)]


@pytest.mark.parametrize("name", WITH_MAPS)
async def test_the_map_is_in_sight_while_a_caption_speaks_of_it(name: str) -> None:
    longest = max(words_about_the_map(name), key=len)
    app, _ = playground(
        [{"panel": "curves"}, {"say": longest}, {"say": "The end."}],
        scenario=name,
        scenario_text=msgspec.yaml.encode(load(name)).decode(),
    )
    async with app.run_test(size=SMALLEST) as pilot:
        await settled(pilot)
        await pilot.press("t")
        await until(pilot, lambda: app.panels.narrator.teaching and longest[:20] in shown(app.panels.narrator))
        await settled(pilot)
        maps = [panel for panel in app.panels.curves.seen if isinstance(panel.view, WorldMap)]
        assert any(panel.outer_size.height for panel in maps)
        assert "make the terminal larger" not in "".join(map(shown, maps))


async def test_the_plan_takes_the_place_of_the_map_and_gives_it_back_on_the_smallest_screen() -> None:
    app, _ = playground(
        [{"panel": "curves"}, {"curve": "optimal map"}, {"say": "The plan."}, {"curve": "map"}, {"say": "The map."}],
        scenario="ice-maze",
        scenario_text=msgspec.yaml.encode(load("ice-maze")).decode(),
    )
    async with app.run_test(size=SMALLEST) as pilot:
        await settled(pilot)
        for words, view in (("The plan.", MAPS[2]), ("The map.", MAPS[0])):
            await pilot.press("t")
            await until(pilot, lambda words=words: words in shown(app.panels.narrator))
            assert [panel.view for panel in app.panels.curves.seen] == [view]
