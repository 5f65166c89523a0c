"""The stages that show one pair, or one conversation, large."""

from __future__ import annotations

import msgspec
import numpy as np

from rlplay.trace.records import Sampled, Scored
from rlplay.ui.main.stages import fitting
from tests.recorded import synthetic_update
from tests.ui.stage import CHOSEN, all_text, on_screen, playground, pressed, settled


def compared(number):
    """An update whose two answers to each prompt are a pair."""
    roles = ["chosen", "rejected", "rejected", "chosen"]
    for record in synthetic_update(number, prompts=2, generations=2):
        yield msgspec.structs.replace(record, roles=roles) if isinstance(record, Scored) else record


async def test_a_pair_stands_side_by_side_with_its_gap():
    app, source = playground(settings=CHOSEN | {"loss_type": "sigmoid"})
    async with app.run_test(size=(120, 35)) as pilot:
        source.records(compared(1))
        await settled(pilot)
        await app.play.perform("stage", "pair")
        await settled(pilot)
        text = all_text(app.panels.pair)
        assert app.focused is app.panels.pair
        assert "▲ chosen" in text
        assert "▼ rejected" in text
        sampled = app.play.session.shown.sampled
        sums = [
            float(sampled.old_logprobs[a:b].sum()) for a, b in zip(sampled.offsets, sampled.offsets[1:], strict=False)
        ]
        line = next(each for each in text.split("\n") if each.startswith("before this update"))
        shown = [float(each.replace("−", "-")) for each in line.split()[3:6]]
        assert np.allclose(shown, [sums[0], sums[1], sums[0] - sums[1]], atol=0.006)
        await pressed(pilot, "down")
        line = next(each for each in all_text(app.panels.pair).split("\n") if each.startswith("before this update"))
        shown = [float(each.replace("−", "-")) for each in line.split()[3:6]]
        assert np.allclose(shown, [sums[2], sums[3], sums[3] - sums[2]], atol=0.006), "chosen minus rejected"
        await pressed(pilot, "down", "down")
        assert "Pair 2 of 2" in str(app.panels.pair.border_title)


async def test_an_update_begins_at_a_pair_with_a_label():
    app, source = playground(settings=CHOSEN | {"loss_type": "sigmoid"})
    async with app.run_test(size=(120, 35)) as pilot:
        roles = ["tie", "tie", "chosen", "rejected"]
        for record in compared(1):
            source.records([msgspec.structs.replace(record, roles=roles) if isinstance(record, Scored) else record])
        await settled(pilot)
        await app.play.perform("stage", "pair")
        await settled(pilot)
        assert "Pair 2 of 2" in str(app.panels.pair.border_title)
        assert app.panels.tokens.cursor == (2, 0)
        await pressed(pilot, "up")
        assert "Pair 1 of 2" in str(app.panels.pair.border_title), "one can go to a tie"


def turned(number):
    """An update with a reply in the middle of every answer."""
    for record in synthetic_update(number):
        if not isinstance(record, Sampled):
            yield record
            continue
        mask = record.mask.copy()
        mask[record.offsets[:-1] + 1] = 0
        yield msgspec.structs.replace(record, mask=mask)


async def test_a_conversation_names_who_speaks():
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        source.update(1)
        await settled(pilot)
        assert "conversation" not in fitting(app.play.session)
        source.records(turned(2))
        source.status(2)
        await settled(pilot)
        assert "conversation" in fitting(app.play.session)
        await app.play.perform("stage", "conversation")
        source.speaker = "host"
        app.play.inspect()
        assert " host  " in all_text(app.panels.conversation)
        source.speaker = ""
        app.play.inspect()
        await settled(pilot)
        said = [line.split("  ")[0].strip() or line.strip().split("  ")[0] for line in
                all_text(app.panels.conversation).split("\n") if line.strip()]  # fmt: skip
        assert [word for word in said if word in ("prompt", "model", "environment", "reward")][:10] == [
            "prompt", "model", "environment", "model", "reward",
        ] * 2, "the next conversation follows"  # fmt: skip
        await app.play.perform("panel", "tokens")
        await settled(pilot)
        assert app.focused is app.panels.conversation, "it is the answer's tokens that it shows"
        await pressed(pilot, "right", "right")
        assert app.panels.tokens.cursor == (0, 2)
        await pressed(pilot, "down")
        assert app.panels.tokens.cursor == (1, 0)
        assert "2 of" in str(app.panels.conversation.border_title)
