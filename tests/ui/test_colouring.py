"""Colour that is never off: tokens have shades in every phase, whatever is chosen, and the title says of what."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pytest

from rlplay.trace.lenses import CYCLE, LENSES
from rlplay.trace.records import AnyRecord, Credited, Sampled, Stepped
from rlplay.trace.update import Update
from rlplay.ui.tokens.colouring import colouring, lacks
from rlplay.ui.tokens.facts import facts_of
from tests.recorded import SETTINGS, synthetic_sampling, synthetic_update
from tests.ui.stage import on_screen, playground, settled


def phases(records: list[AnyRecord]) -> Iterator[Update]:
    """The update after each of its records."""
    update = Update(1)
    for record in records:
        update.add(record)
        yield update


def without_signal(number: int = 1) -> list[AnyRecord]:
    """An update in which every advantage, and with it every gradient, is 0."""

    def emptied(record: AnyRecord) -> AnyRecord:
        if isinstance(record, Credited):
            return msgspec.structs.replace(record, advantages=np.zeros_like(record.advantages))
        if isinstance(record, Stepped):
            nothing = {"dloss_dlogp": np.zeros_like(record.dloss_dlogp), "clip_state": record.clip_state * 0}
            return msgspec.structs.replace(record, **nothing)
        return record

    return [emptied(record) for record in synthetic_update(number)]


@pytest.mark.parametrize("make", [synthetic_update, without_signal])
@pytest.mark.parametrize("name", list(LENSES))
def test_a_share_of_the_tokens_is_shaded_in_every_phase_whatever_is_chosen(name: str, make) -> None:
    for update in phases([*synthetic_sampling(1), *make(1)]):
        colours = colouring(update, LENSES[name], False, SETTINGS)
        assert facts_of(update).lens(colours.lens.name) is not None
        assert (facts_of(update).levels(colours.lens) != 0).mean() > (0.1 if name != "clip_state" else 0.01)
        assert (colours.lens.name == name) == (not lacks(update, LENSES[name]))
        assert (colours.wanted is None) == (colours.lens.name == name)


@pytest.mark.parametrize("name", CYCLE)
async def test_the_title_names_the_statistic_shown_and_the_numbers_are_its_own(name: str) -> None:
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        await app.play.perform("lens", name)
        for record in synthetic_update(1):
            source.records([record])
            await settled(pilot)
            ink, shown = app.panels.tokens._ink, app.play.session.shown
            title = app.panels.tokens._border_title.plain
            assert f"colour: {ink.lens.title[0].lower()}{ink.lens.title[1:]}" in title.replace("KL", "kL")
            np.testing.assert_array_equal(ink.values, facts_of(shown).lens(ink.lens.name))
            assert ("(" in title) == (ink.lens.name != name)
            assert any(
                segment.style is not None and segment.style.bgcolor is not None and not segment.style.bold
                for row in range(app.panels.tokens.count())
                for segment in app.panels.tokens.line(row)
            )


async def test_while_updates_follow_each_other_the_last_one_stays_until_the_newest_has_the_statistic() -> None:
    app, source = playground()
    async with app.run_test(size=(160, 45)) as pilot:
        await app.play.perform("lens", "prob_delta")
        source.status(0, running=True)
        source.records(synthetic_update(1))
        source.status(1, running=True)
        await settled(pilot)
        first = app.play.session.shown
        for record in [*synthetic_sampling(2), *synthetic_update(2)[1:-1]]:
            source.records([record])
            await settled(pilot)
            assert app.play.session.shown is first is not app.play.session.run.newest
            assert app.panels.tokens._border_title.plain.strip() == "Tokens · update 1 · colour: change in probability"
            assert app.panels.inspector._shown[0] is first
        assert app.panels.phases.here == "sample", "the stages say where the engine is"
        source.records(synthetic_update(2)[-1:])
        await settled(pilot)
        assert app.play.session.shown is app.play.session.run.newest
        source.records(synthetic_sampling(3)[:1])
        await settled(pilot)
        assert app.play.session.shown.number == 2
        source.status(2, running=False)
        await settled(pilot)
        assert app.play.session.shown.number == 3, "what pauses is on the screen"


async def test_step_by_step_the_newest_answers_are_on_the_screen() -> None:
    async with on_screen(1, size=(160, 45)) as (app, source, pilot):
        await app.play.perform("lens", "prob_delta")
        source.records(synthetic_sampling(2)[:2])
        await settled(pilot)
        assert app.play.session.shown.number == 2
        assert app.panels.tokens._border_title.plain.strip().startswith(
            "Tokens · colour: probability (change in probability: from ↻ on)"
        )


def test_what_a_statistic_lacks_is_said_in_its_own_numbers() -> None:
    *_, update = phases(without_signal())
    assert lacks(update, LENSES["advantages"]) == "0 for every token"
    assert lacks(update, LENSES["clip_state"]) == "no token"
    assert lacks(update, LENSES["values"]) == "none in this update"
    sampled = next(each for each in synthetic_update(1) if isinstance(each, Sampled))
    update = Update(1)
    update.add(msgspec.structs.replace(sampled, entropy=np.full_like(sampled.entropy, 0.001)))
    assert lacks(update, LENSES["entropy"]) == "about 0 for every token"
    assert lacks(update, LENSES["credit"]) == "from ④ on"
