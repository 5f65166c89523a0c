"""Conversations on the screen: each turn on a line of its own, with who wrote it."""

import msgspec
import numpy as np

from rlplay.trace.turns import turns
from rlplay.ui.format.shown_text import token_text, turn_marks
from tests.recorded import synthetic_update
from tests.ui.stage import all_text, on_screen, settled

WIDE = (160, 45)


def conversation():
    """An update whose answers of 30 tokens are the model's, then a user's from token 10 on, then the model's again."""
    records = synthetic_update(1, prompts=2, generations=2, length=12, steps=1)
    sampled = records[0]
    flat = ("old_logprobs", "entropy", "top_ids", "top_logprobs")
    count = 30 * 4
    index = np.arange(count) % len(sampled.texts)
    texts = [" word"] * count
    for start in range(0, count, 30):
        texts[start + 10] = "<|user|>"
    return msgspec.structs.replace(
        sampled, texts=texts, token_ids=np.arange(count, dtype=np.int32), offsets=np.arange(5) * 30,
        mask=np.tile(np.repeat([1, 0, 1], 10), 4).astype(np.uint8), pieces=dict(enumerate(texts)),
        **{name: getattr(sampled, name)[index] for name in flat},
    )  # fmt: skip


async def test_each_turn_begins_on_its_own_line_with_its_role():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.records([conversation()])
        await settled(pilot)
        assert [turn.role for turn in turns(app.play.session.shown.sampled, 0)] == ["model", "user", "model"]
        lines = [line[2:] for line in all_text(app.panels.tokens).split("\n")[1:4]]
        assert [line.split()[0] for line in lines] == ["model:", "user:", "model:"]
        row, _ = app.panels.tokens._layout.place(0, 10)
        drawn = list(app.panels.tokens.line(row))
        said = next(segment for segment in drawn if segment.text == " word")
        assert said.style == app.panels.tokens.palette.muted, "the environment's words are set back"


def test_in_a_list_turns_are_set_apart_where_the_template_has_its_marks():
    sampled = conversation()
    pieces = dict(enumerate([
        "16", "<|end|>", "<|user|>", "Lower", ".", "<|end|>", "<|model|>", "6", "<|user|>", "Higher", "<|model|>", "11",
        "<|end|>",
    ]))  # fmt: skip
    mask = np.array([1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1], np.uint8)
    short = msgspec.structs.replace(
        sampled, offsets=np.array([0, 13]), token_ids=np.arange(13), mask=mask, texts=[*pieces.values()], pieces=pieces
    )
    between = turn_marks(short, 0)
    shown = "".join(between.get(t) or token_text(text, text) for t, text in pieces.items())
    assert shown == "16 → Lower. · 6 → Higher · 11∎"


async def test_credit_that_is_given_by_turns_stands_behind_them():
    sampled = conversation()
    own = sampled.mask == 1
    by_turn = np.tile(np.repeat([-0.25, 0.0, 0.5], 10), 4).astype(np.float32)
    worth = np.tile(np.repeat([0.75, 0.0, 0.5], 10), 4).astype(np.float32)
    scored, credited = synthetic_update(1, prompts=2, generations=2, length=30, steps=1)[1:3]
    turned = msgspec.structs.replace(
        credited, advantages=by_turn, values=worth, ref_logprobs=None, ref_top_logprobs=None,
        **dict.fromkeys(("token_rewards", "returns", "baseline"), by_turn),
    )  # fmt: skip
    flat = msgspec.structs.replace(turned, advantages=np.where(own, 0.5, 0).astype(np.float32))
    for record, shown in ((turned, True), (flat, False)):
        async with on_screen(size=WIDE) as (app, source, pilot):
            source.records([sampled, scored, record])
            app.panels.show_stage("conversation")
            await settled(pilot)
            text = all_text(app.panels.conversation)
            assert ("V 0.75   A −0.25" in text) == ("V 0.50   A +0.50" in text) == shown


async def test_a_token_after_a_role_is_pointed_at_as_any_other():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.records([conversation()])
        await settled(pilot)
        await pilot.click("#tokens", offset=(2 + len("user:  "), 3))
        assert app.panels.tokens.cursor == (0, 10)
        await pilot.press("right")
        assert app.panels.tokens.cursor == (0, 11)
