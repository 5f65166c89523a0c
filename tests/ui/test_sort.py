"""Answers sorted by any number or column: prompts stay together, and every panel keeps to one order."""

import msgspec
import numpy as np
import pytest
from textual.widgets import OptionList

from rlplay.trace.answers import columns, measures
from rlplay.trace.update import Update
from rlplay.ui.answers.answer_order import Sort, order, sortable
from rlplay.ui.answers.sort_screen import SortScreen
from tests.recorded import synthetic_update
from tests.ui.stage import on_screen, pressed, settled

WIDE = (160, 45)


def whole(**scored) -> Update:
    update = Update(1)
    for record in synthetic_update(1):
        update.add(record)
    update.scored = msgspec.structs.replace(update.scored, **scored)
    return update


@pytest.mark.parametrize("falling", [True, False])
@pytest.mark.parametrize("name", ["reward", "advantage", "length", "correct", "true", "steps"])
def test_prompts_stay_together_and_the_best_answer_leads(name, falling):
    update = whole(extra={"steps": [float(n * 7 % 5) for n in range(16)]})
    listed = order(update, Sort(name, falling))
    assert sorted(listed) == list(range(16))
    key = np.asarray(measures(update)[name], dtype=float) * (-1 if falling else 1)
    groups = [listed[start : start + 4] for start in range(0, 16, 4)]
    for rows in groups:
        assert len({int(update.sampled.group[row]) for row in rows}) == 1
        assert [key[row] for row in rows] == sorted(key[row] for row in rows)
    leaders = [key[rows[0]] for rows in groups]
    assert leaders == sorted(leaders)
    assert key[listed[0]] == key.min()


def test_columns_of_the_dataset_sort_as_numbers_and_as_words():
    update = whole()
    answers = [int(value) for value in columns(update)["answer"]]
    assert [answers[row] for row in order(update, Sort("answer"))] == sorted(answers, reverse=True)
    named = [{"topic": word} for word in ("pears", None, "Apples", "books")]
    update.sampled = msgspec.structs.replace(update.sampled, columns=named)
    topics = columns(update)["topic"]
    listed = [topics[row] for row in order(update, Sort("topic", falling=False))[::4]]
    assert listed == ["Apples", "books", "pears", None]
    assert [topics[row] for row in order(update, Sort("topic"))[::4]] == ["pears", "books", "Apples", None]


def test_what_is_unknown_comes_last_in_both_directions():
    rewards = np.array([np.nan, 0.5, 1.0, 0.0] * 4)
    update = whole(rewards=rewards)
    assert order(update, Sort("reward"))[:4] == [2, 1, 3, 0]
    assert order(update, Sort("reward", falling=False))[:4] == [3, 1, 2, 0]


def test_orders_before_there_is_anything_to_sort_by():
    bare, update = Update(1), whole()
    assert order(bare, Sort("reward")) == []
    bare.add(update.sampled)
    assert order(bare, Sort("reward")) == list(range(16))
    lengths = np.diff(update.sampled.offsets)
    assert lengths[order(bare, Sort("length"))[0]] == lengths.max()
    assert sortable(None) == ["reward", "advantage", "length"]
    assert sortable(update) == ["reward", "advantage", "length", "true", "correct", "format", "answer", "topic"]


async def test_the_key_asks_by_what_and_the_frame_says_it():
    async with on_screen(1, size=WIDE) as (app, _, pilot):
        app.panels.tokens.focus()
        await pressed(pilot, "o", "enter")
        assert app.play.sort == Sort("reward")
        assert "by reward ↓" in app.panels.rollouts.border_subtitle
        assert app.panels.tokens._order == app.panels.rollouts._order
        assert app.panels.tokens.cursor == (app.panels.tokens._order[0], 0), "the best answer"
        await pilot.press("o")
        assert isinstance(app.screen, SortScreen)
        assert app.screen.query_one(OptionList).highlighted == 2, "the one after the present one"
        await pressed(pilot, "up", "enter")
        assert app.play.sort == Sort("reward", falling=False)
        assert "by reward ↑" in app.panels.rollouts.border_subtitle
        await pilot.press("o", "escape")
        assert app.play.sort == Sort("reward", falling=False)
        await pressed(pilot, "o", "home", "enter")
        assert app.play.sort == Sort()


async def test_pointing_and_finding_keep_to_the_order():
    async with on_screen(1, size=WIDE) as (app, _, pilot):
        await app.play.perform("sort", "-length")
        await settled(pilot)
        app.panels.rollouts.focus()
        await pilot.press("down")
        assert app.panels.tokens.cursor[0] == app.panels.rollouts._order[1]
        await app.play.perform("find", "reward<0.5")
        await settled(pilot)
        kept = [row for row in order(app.play.session.shown, app.play.sort) if row in app.panels.rollouts._order]
        assert app.panels.rollouts._order == kept
        app.play.point(kept[0], 0)
        await pilot.press("f")
        assert app.panels.tokens.cursor[0] == kept[1]


async def test_a_column_that_is_not_there_is_named():
    async with on_screen(1, size=WIDE) as (app, source, pilot):
        await app.play.perform("sort", "colour")
        await settled(pilot)
        assert app.play.sort == Sort()
        assert "known: reward, advantage" in [note.message for note in app._notifications][-1]
        await app.play.perform("sort", "topic")
        source.records([msgspec.structs.replace(synthetic_update(2)[0], columns=[{}] * 4)])
        await settled(pilot)
        assert "no topic here" in app.panels.rollouts.border_subtitle
