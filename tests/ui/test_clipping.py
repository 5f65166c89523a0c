"""Why no token is clipped: computed from the settings and the ratios of the update at hand."""

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from rlplay.algorithms.surrogates import SURROGATES
from rlplay.trace.records import Stepped
from rlplay.trace.update import Update
from rlplay.ui.words.clipping import count_clipped, explain_none, summary
from tests.recorded import SETTINGS, synthetic_update
from tests.ui.stage import on_screen, settled, text_of

CHOSEN = SETTINGS
ONE_STEP = replace(CHOSEN, num_iterations=1, num_minibatches=1)


def update(records, ratios=None):
    """An update of `records`; `ratios` replace those of its steps, and then none is clipped."""
    made = Update(1)
    for record in records:
        if ratios is not None and isinstance(record, Stepped):
            ratio = np.resize(np.asarray(ratios, dtype=np.float32), len(record.importance_ratio))
            still = np.zeros_like(record.clip_state)
            made.add(msgspec.structs.replace(record, importance_ratio=ratio, clip_state=still))
        else:
            made.add(record)
    return made


def test_a_run_that_names_no_algorithm_is_not_judged():
    nameless = replace(CHOSEN, algorithm="")
    unknown = [
        msgspec.structs.replace(each, clip_state=None) if isinstance(each, Stepped) else each
        for each in synthetic_update(1)
    ]
    said = explain_none(update(unknown), nameless)
    assert said == "What is clipped is not known: the run does not name its algorithm."
    assert explain_none(update(synthetic_update(1), ratios=[1]), nameless) == "No token is clipped."


def test_clipping_that_a_trainer_recorded_is_counted_without_a_reason():
    steps = [each for each in synthetic_update(1) if isinstance(each, Stepped)]
    clipped = msgspec.structs.replace(steps[-1], clip_state=np.eye(1, len(steps[-1].logprobs), dtype=np.int8)[0])
    made = update([synthetic_update(1)[0], clipped])
    assert summary(made, replace(CHOSEN, algorithm=""), False, "`/`") == "1 token is clipped, ▲ or ▼: `/` finds it."


def test_one_step_per_batch_cannot_clip():
    text = explain_none(update(synthetic_update(1, steps=1)), ONE_STEP)
    assert text.startswith("No token is clipped: with one optimizer step per batch every ratio is 1.")
    assert "num_iterations of two or more (`k`)" in text
    assert explain_none(update(synthetic_update(1)[:1]), ONE_STEP) == text, "before the step as after it"
    assert explain_none(None, ONE_STEP, adjustable=False) == text.replace(" (`k`)", ""), (
        "a recording has no knobs to turn"
    )


def test_the_first_of_several_steps_never_clips():
    whole = synthetic_update(1, steps=3)
    assert "this update has not taken any of its 2 optimizer steps yet" in explain_none(update(whole[:3]), CHOSEN)
    assert "at the first of 3 optimizer steps every ratio is still 1" in explain_none(update(whole[:4]), CHOSEN)


def test_ratios_that_have_moved_are_named_with_their_band():
    whole = synthetic_update(1, steps=3)
    text = explain_none(update(whole, [0.91, 1.07]), CHOSEN)
    assert "the ratios, 0.91 … 1.07, are all inside the band 0.8 … 1.2" in text
    assert "A smaller epsilon" in text
    narrow = explain_none(update(whole, [0.9999, 1.0002]), replace(CHOSEN, epsilon=0.0003, epsilon_high=0.0004))
    assert "0.99990 … 1.00020, are all inside the band 0.9997 … 1.0004" in narrow
    outside = update(whole, [1.3])
    own = int(outside.sampled.mask.sum())
    assert f"{own} outside the band 0.8 … 1.2, none on the side" in explain_none(outside, CHOSEN)


def test_every_surrogate_without_a_clip_says_so():
    without = [name for name, row in SURROGATES.items() if row.gradient_zero is None]
    for surrogate in without:
        text = explain_none(update(synthetic_update(1, steps=3)), replace(CHOSEN, surrogate=surrogate))
        assert surrogate in text
        assert "surrogate=ppo clips" in text
    bounded = replace(CHOSEN, surrogate="ratio", importance_sampling_level="geometric")
    assert "log-ratio" in explain_none(update(synthetic_update(1, steps=3), [1.1]), bounded), "GMPO bounds without ppo"


@pytest.mark.parametrize("loss", ["sigmoid", "sft", "reward"])
def test_losses_without_a_ratio_have_nothing_to_clip(loss):
    text = explain_none(update(synthetic_update(1)[:1]), replace(CHOSEN, loss_type=loss))
    assert f"loss_type={loss} has no ratio to clip" in text


def test_where_some_are_clipped_they_are_counted():
    some = update(synthetic_update(1, steps=8))
    count = int((some.latest_step("clip_state") != 0).sum())
    assert count == count_clipped(some) > 1
    assert summary(some, CHOSEN, True, "`x`").startswith(f"{count} tokens are clipped, ▲ or ▼: `x` finds them")


@pytest.mark.parametrize("ask", ["x", "colour", "find"])
async def test_every_way_to_a_clipped_token_says_why_there_is_none(ask):
    async with on_screen(size=(80, 24)) as (app, source, pilot):
        source.status(**msgspec.to_builtins(ONE_STEP))
        source.records(synthetic_update(1, steps=1))
        await settled(pilot)
        if ask == "find":
            await app.play.perform("find", "clipped")
            await settled(pilot)
            text = text_of(app.panels.tokens)
            assert "esc shows all" in " ".join(text.split())
        else:
            await app.play.perform("lens", "clip_state")
            app.play.point(3, 2)
            if ask == "x":
                await pilot.press("x")
                assert app.panels.tokens.cursor == (3, 2), "there is nothing to go to"
            else:
                await app.play.perform("lens", "importance_ratio")
            text = app.panels.narrator.render().plain
        assert "No token is clipped: with one optimizer step per batch" in " ".join(text.split())


async def test_the_clip_colour_counts_what_is_clipped_and_x_leads_to_the_reason():
    async with on_screen(1, steps=8, size=(160, 45)) as (app, _, pilot):
        await app.play.perform("lens", "clip_state")
        assert f"{count_clipped(app.play.session.shown)} tokens are clipped" in app.panels.narrator.render().plain
        await pilot.press("x")
        await app.play.perform("maths")
        await settled(pilot)
        head = text_of(app.panels.inspector).split("\n")[1]
        assert "clipped: A > 0 and w > 1.2" in head or "clipped: A < 0 and w < 0.8" in head
