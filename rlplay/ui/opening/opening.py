"""The opening on a playground: where its ways lead."""

from __future__ import annotations

import contextlib

from rlplay import user_preferences
from rlplay.scenario.loader import load
from rlplay.ui.format.shortcuts import written
from rlplay.ui.main.playground import Playground
from rlplay.ui.opening.opening_screen import OpeningScreen
from rlplay.ui.opening.story import recorded
from rlplay.ui.opening.ways import WAYS, beginning, next_lesson
from rlplay.verbs import VERBS


def open_first(play: Playground) -> None:
    """Show the opening above the playground; the way that is taken leads to it, or to a lesson in its place."""
    lesson = next_lesson()
    keys = [written(play.own_keys.get(verb, VERBS[verb].keys[0])) for verb in WAYS]
    now = beginning("" if lesson is None else load(lesson).title, keys)

    async def taken(verb: str | None) -> None:
        if verb is None:
            return
        with contextlib.suppress(OSError):  # then the next start proposes another way
            user_preferences.keep_opening(verb)
        if verb == "lessons" and lesson is not None and play.moves:
            play.open_lesson(lesson)
        else:
            await play.perform(verb)

    play.app.push_screen(OpeningScreen(play.session, recorded(), now), taken)
