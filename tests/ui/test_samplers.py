"""What the screen says of a sampler that is not the policy: in the Token panel, and in words."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from textual.geometry import Size

from rlplay.algorithms.apply import resolve
from rlplay.trace.update import Update
from rlplay.ui.curves.first_views import overview
from rlplay.ui.formula.formula_lines import TokenNumbers
from rlplay.ui.theme.inks import palette
from rlplay.ui.theme.themes import DARK
from rlplay.ui.tokens.candidates import candidates
from rlplay.ui.tokens.facts import facts_of
from rlplay.ui.tokens.reasons import reasons
from rlplay.ui.words.samplers import gap_in_words, sampled_by, sampler_apart
from tests.apart import records_apart, update_apart
from tests.recorded import synthetic_update
from tests.ui.stage import on_screen, pressed, settled, shown

OWN = resolve({"algorithm": "grpo", "sampler_dtype": "bfloat16", "sampler_lag": 4})


def alone() -> Update:
    update = Update(1)
    for record in synthetic_update(1):
        update.add(record)
    return update


def test_an_answer_names_the_weights_that_wrote_it():
    update = update_apart(6)  # answer i has weights i % 5 updates old
    assert sampled_by(update, 0) == "sampled by the newest weights"
    assert sampled_by(update, 1) == "sampled by the weights of update 4, 1 update old"
    assert sampled_by(update_apart(2), 1) == "sampled by the weights of the start, 1 update old"
    assert sampled_by(alone(), 0) == ""


def test_what_sets_the_sampler_apart_is_named_with_its_age():
    update = update_apart(6)
    assert sampler_apart(update, OWN).startswith("bfloat16, 1.")
    assert sampler_apart(update, OWN).endswith("updates old on average")
    same_age = Update(6)
    same_age.add(msgspec.structs.replace(update.sampled, versions=np.full_like(update.sampled.versions, 1)))
    assert sampler_apart(same_age, OWN) == "bfloat16, 4 updates old"
    cut = resolve({"algorithm": "grpo", "logprobs_mode": "processed_logprobs", "top_p": 0.9})
    assert sampler_apart(alone(), cut) == "top_p 0.9 counted"
    assert sampler_apart(alone(), resolve({"algorithm": "grpo", "top_p": 0.9})) == ""


def test_the_gap_is_said_with_its_kl_and_its_correction():
    update = update_apart(6)
    gap = update.sampled.old_logprobs.astype(float) - update.sampled.sampling_logprobs
    said = gap_in_words(update, OWN)
    assert f"{(np.exp(gap) - 1 - gap).mean():.3g} nats per token" in said
    assert f"c averages {update.credited.correction.mean():.3g}" in said
    assert "is 0 for" not in said
    update.credited.correction[:3] = 0
    assert "is 0 for 3 tokens" in gap_in_words(update, OWN)
    assert gap_in_words(alone(), OWN) == ""


async def test_sampler_and_teacher_have_a_column_beside_the_policy():
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        source.records(records_apart(6))
        source.status(6)
        await settled(pilot)
        await pressed(pilot, "right")
        _, text = app.panels.inspector.clipping()
        heads = next(line for line in text.split("\n") if "old" in line and "new" in line).split()
        assert heads[-4:] == ["smpl", "tchr", "old", "new"]
        update, (answer, token) = app.play.session.shown, app.panels.tokens.cursor
        at = int(update.sampled.offsets[answer]) + token
        row = next(line for line in text.split("\n") if line.startswith("▸")).split()
        names = [update.sampled.sampling_logprobs, update.credited.teacher_logprobs, update.sampled.old_logprobs]
        for cell, values in zip(row[-4:-1], names, strict=True):
            share = float(np.exp(values[at]))
            assert cell in ("<.01", "1.00") or abs(float(cell) - share) <= 0.0051
        assert "sampled by the newest weights" in text


def test_the_mismatch_of_the_run_comes_before_its_kl_to_the_reference():
    plain, apart = overview(OWN), overview(OWN, mismatch="mismatch_kl")
    assert [view.metrics[0] for view in apart if view.metrics] == ["reward", "mismatch_kl", *plain_rest(plain)]
    assert apart[1].metrics == ("mismatch_kl", "kl")
    assert overview(OWN, mismatch="") == plain


def plain_rest(views):
    return [view.metrics[0] for view in views if view.metrics][2:]


async def test_header_narrator_and_curves_say_that_another_policy_samples():
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        records = records_apart(6)
        finished = records[-1]
        records[-1] = msgspec.structs.replace(finished, metrics=finished.metrics | {"mismatch_kl": 0.02})
        source.records(records)
        source.status(6)
        await settled(pilot)
        assert "sampler: 1." in app.panels.header.render().plain
        assert "and policy is" in shown(app.panels.narrator)
        assert any("mismatch_kl" in panel.view.metrics for panel in app.panels.curves.seen)


@pytest.mark.parametrize("width", [33, 36, 48])
def test_columns_for_sampler_and_teacher_leave_room_for_the_newest_probability(width):
    facts = facts_of(update_apart(6)).answer(0)
    inks = palette({**DARK.to_color_system().generate(), **DARK.variables})
    lines = candidates(facts, 1, Size(width, 20), inks).lines
    assert lines
    assert "new" in "".join(segment.text for segment in lines[0])
    assert all(sum(segment.cell_length for segment in line) <= width for line in lines)


def test_a_token_that_the_correction_leaves_out_is_not_said_to_be_pulled():
    update = update_apart(6)
    numbers = TokenNumbers(advantage=-0.5, correction=0.0)
    words = reasons(update, 0, facts_of(update).answer(0), 0, OWN, numbers)
    assert "the loss leaves the token out: the sampler's probability is too far" in words
    assert "pulled" not in words
    corrected = reasons(update, 0, facts_of(update).answer(0), 0, OWN, replace(numbers, correction=0.4))
    assert "so the token is pulled down (advantage −0.50)" in corrected
