"""While the knobs are open, the answers and the token show what the drafted changes would do to them."""

import msgspec
import numpy as np
import pytest

from rlplay.link.messages import Advance, Recorded
from rlplay.scenario.loader import load
from rlplay.trace.questions import Imagined, WhatIf
from rlplay.trace.records import Credited, Rewound, Stepped
from rlplay.trace.update import Update
from rlplay.ui.app import RlplayApp
from rlplay.ui.knobs.knob_list import KnobList
from rlplay.ui.session.preview import NEEDS_ANSWERS, NEEDS_ENGINE, NEEDS_PAUSE, Preview
from rlplay.ui.session.session import Session
from rlplay.ui.session.sources import ReplaySource
from tests.recorded import synthetic_run, synthetic_update
from tests.ui.stage import CHOSEN, Fed, all_text, playground, pressed, settled

SCENARIO = msgspec.yaml.encode(load("two-plus-two")).decode()


def known(number: int = 1) -> Update:
    update = Update(number)
    for record in synthetic_update(number):
        update.add(record)
    return update


def imagined(changes, flip=(), update: int = 1, **given) -> Imagined:
    """An answer in which the tokens `flip` (by place in the update) would be pulled the other way, and none clipped."""
    records = synthetic_update(update)
    credited = next(record for record in records if isinstance(record, Credited))
    steps = [msgspec.structs.replace(r, minibatch=0, minibatches=1) for r in records if isinstance(r, Stepped)]
    whole = known(update)
    turned = np.zeros(whole.tokens, dtype=bool)
    turned[list(flip)] = True
    after = []
    for step in steps:
        index = np.concatenate([np.arange(*whole.sampled.offsets[row : row + 2]) for row in step.rows])
        pull = np.where(turned[index], -step.dloss_dlogp, step.dloss_dlogp)
        after.append(msgspec.structs.replace(step, dloss_dlogp=pull, clip_state=step.clip_state * 0))
    settings = {**CHOSEN, **changes}
    return Imagined(
        changes, update, settings=settings, credited=credited, before=steps, after=after, losses=(0.5, 0.25), **given
    )


def pulling(update: Update) -> list[int]:
    """Places of tokens that are pulled and not clipped."""
    pull, clips = update.latest_step("dloss_dlogp"), update.latest_step("clip_state")
    return np.flatnonzero((np.abs(pull) > 1e-4) & (clips == 0)).tolist()


class Asked:
    """A session with one update, and the questions put to its engine."""

    def __init__(self) -> None:
        self.session = Session(Fed())
        self.questions: list[WhatIf] = []
        source = self.session.source
        source.records(synthetic_update(1))
        source.status(1)

    async def preview(self) -> Preview:
        async def send(command) -> None:
            self.questions.append(command)

        self.session.source.put(None)
        async for event in self.session.source.events():
            self.session.apply(event)
        return Preview(self.session, send)


async def test_one_question_at_a_time_and_then_the_newest():
    asked = Asked()
    preview = await asked.preview()
    for epsilon in (0.25, 0.3, 0.35):
        await preview.draft({"epsilon": epsilon})
    assert [question.changes for question in asked.questions] == [{"epsilon": 0.25}]
    await preview.receive(imagined({"epsilon": 0.25}))
    assert preview.shown is None, "an answer to an older draft is not shown"
    assert asked.questions[-1].changes == {"epsilon": 0.35}
    await preview.receive(imagined({"epsilon": 0.35}))
    assert preview.shown is not None
    assert preview.settings.epsilon == 0.35
    assert (preview.shown, preview.version) == (preview.result.after, "as it would be")
    preview.as_trained = True
    assert preview.settings.epsilon == 0.2
    assert (preview.shown, preview.version) == (preview.result.before, "as trained")
    await preview.draft({})
    assert (preview.shown, preview.as_trained) == (None, False)


async def test_a_refusal_is_shown_instead_of_a_preview():
    preview = await Asked().preview()
    await preview.draft({"baseline": "value"})
    await preview.receive(Imagined({"baseline": "value"}, refused="baseline=value needs the value head's predictions"))
    assert preview.shown is None
    assert preview.words == ["No preview on these answers: baseline=value needs the value head's predictions."]


async def test_what_changes_no_gradient_is_said_once_and_is_no_preview():
    preview = await Asked().preview()
    changes = {"learning_rate": 1e-3, "temperature": 0.5}
    await preview.draft(changes)
    await preview.receive(imagined(changes, held=["temperature", "learning_rate"]))
    assert preview.words == ["temperature, learning_rate leave these gradients as they are and act after them."]
    assert preview.shown is None


async def test_a_running_engine_is_not_asked():
    asked = Asked()
    asked.session.source.status(1, running=True)
    preview = await asked.preview()
    await preview.draft({"epsilon": 0.3})
    assert asked.questions == []
    assert preview.words == [NEEDS_PAUSE]
    await preview.paused()
    assert preview.words == [NEEDS_PAUSE], "it goes on still"
    asked.session.status = msgspec.structs.replace(asked.session.status, running=False)
    await preview.paused()
    assert preview.words == []
    assert asked.questions == [WhatIf({"epsilon": 0.3})]


async def test_without_credit_the_key_for_it_is_named_and_later_the_last_answers_with_credit_are_asked_about():
    asked = Asked()
    preview = await asked.preview()
    asked.session.apply(Recorded(Rewound(update=0, abandoned=1)))
    await preview.draft({"epsilon": 0.3})
    assert preview.words == [NEEDS_ANSWERS]
    assert asked.questions == []
    asked.session.source.records([*synthetic_update(1), *synthetic_update(2)[:1]])  # the second is being sampled
    preview = await asked.preview()
    await preview.draft({"epsilon": 0.3})
    assert asked.questions == [WhatIf({"epsilon": 0.3})]
    await preview.receive(imagined({"epsilon": 0.3}))
    assert preview.shown is not None
    assert preview.shown.number == 1
    assert preview.instead_of(asked.session.shown) is preview.shown
    assert preview.words[0] == "These are the answers of update 1, the last with credit."


def last_question(source: Fed) -> WhatIf:
    return next(command for command in reversed(source.commands) if isinstance(command, WhatIf))


@pytest.mark.parametrize("size", [(160, 45), (120, 35), (80, 24)])
async def test_the_map_and_the_token_show_what_would_be_and_go_back_when_the_knobs_close(size):
    app, source = playground(scenario_text=SCENARIO)
    async with app.run_test(size=size) as pilot:
        source.update(1)
        await settled(pilot)
        before = str(app.panels.tokens.border_title)
        await pilot.press("k")
        app.tuning.knobs.query_one(KnobList).highlighted = app.tuning.knobs.query_one(KnobList).get_option_index(
            "epsilon"
        )
        await pressed(pilot, "right")
        question = last_question(source)
        assert question.changes == {"epsilon": 0.25}
        place = pulling(app.play.session.shown)[0]
        source.put(imagined(question.changes, [place]))
        await settled(pilot)
        assert "as it would be" in str(app.panels.tokens.border_title)
        shown = "\n".join(
            "".join(s.text for s in app.panels.tokens.line(row)) for row in range(app.panels.tokens.count())
        )
        assert "±" in shown
        assert app.panels.tokens.region.height >= 5
        assert app.tuning.knobs.query_one("Vertical").region.intersection(app.panels.tokens.region).area == 0, (
            "side by side"
        )
        if size[0] > 80:
            assert "as trained    would be" in all_text(app.panels.inspector)
            assert "clip(w, 0.75, 1.25)" in all_text(app.panels.inspector)
        assert "compare" in app.tuning.knobs.query_one("Vertical").border_subtitle
        detail = str(app.tuning.knobs.query_one("Static").render())
        assert "1 would get a reversed gradient" in detail
        assert "+ S = −min(w·A, clip(w, 0.75, 1.25)·A)" in detail
        await pilot.press("b")
        assert "as trained" in str(app.panels.tokens.border_title)
        assert size[0] == 80 or "clip(w, 0.8, 1.2)" in all_text(app.panels.inspector)
        await pressed(pilot, "escape")
        assert str(app.panels.tokens.border_title) == before
        assert "would be" not in all_text(app.panels.inspector)
        assert not app.panels.main.has_class("-knobs")


async def test_the_cursor_moves_among_the_tokens_while_the_knobs_are_open():
    app, source = playground(scenario_text=SCENARIO)
    async with app.run_test(size=(160, 45)) as pilot:
        source.update(1)
        await settled(pilot)
        await pilot.press("k", "shift+right", "shift+right")
        assert app.panels.tokens.cursor == (0, 2)
        assert "token 3 of" in all_text(app.panels.inspector)
        await pilot.press("escape", "u")
        assert isinstance(source.commands[-1], Advance)


async def test_a_recording_says_that_it_takes_an_engine(tmp_path):
    app = RlplayApp(ReplaySource(synthetic_run(tmp_path / "run.rlplay", updates=2)))
    async with app.run_test(size=(120, 35)) as pilot:
        await settled(pilot)
        await pressed(pilot, "k", "right")
        assert NEEDS_ENGINE in str(app.tuning.knobs.query_one("Static").render())
        assert "compare" not in app.tuning.knobs.query_one("Vertical").border_subtitle


async def test_there_is_nothing_to_compare_until_there_is_a_preview():
    app, source = playground(scenario_text=SCENARIO)
    async with app.run_test(size=(160, 45)) as pilot:
        source.update(1)
        await settled(pilot)
        await pressed(pilot, "k", "right", "b")
        assert "compare" not in app.tuning.knobs.query_one("Vertical").border_subtitle
        source.put(imagined(last_question(source).changes))
        await settled(pilot)
        assert "as it would be" in str(app.panels.tokens.border_title), "b was early"
