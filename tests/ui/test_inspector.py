"""The inspector: the numbers of the token under the cursor, its formula and its candidates."""

import re

import msgspec
import numpy as np
import pytest
from rich.style import Style

from rlplay.algorithms.apply import resolve
from rlplay.trace.update import Update
from rlplay.ui.format.folded import folded
from rlplay.ui.format.shown_text import quoted
from rlplay.ui.formula.formula_lines import TokenNumbers
from rlplay.ui.tokens.facts import facts_of
from rlplay.ui.tokens.reasons import reasons
from tests.recorded import SETTINGS, synthetic_update
from tests.ui.stage import all_text, on_screen, pressed, settled, text_of

WIDE = (160, 45)


async def test_clipped_tokens_are_marked_and_explained():
    async with on_screen(1, steps=8, size=WIDE) as (app, _, pilot):
        clips = app.play.session.shown.latest_step("clip_state")
        marks = all_text(app.panels.tokens)
        assert marks.count("▲") == int((clips > 0).sum())
        assert marks.count("▼") == int((clips < 0).sum())
        place = int(np.flatnonzero(clips > 0)[0])
        offsets = app.play.session.shown.sampled.offsets
        completion = int(np.searchsorted(offsets, place, side="right")) - 1
        app.play.point(completion, place - int(offsets[completion]))
        assert "▲ clipped at" in " ".join(all_text(app.panels.inspector).split()), "in words"
        await app.play.perform("maths")
        await settled(pilot)
        assert text_of(app.panels.inspector).split("\n")[1].strip() == "▲ clipped: A > 0 and w > 1.2", "at the top"
        assert "so the surrogate's gradient is zero" in " ".join(all_text(app.panels.inspector).split())


async def test_each_number_names_its_optimizer_steps():
    async with on_screen(size=WIDE) as (app, source, pilot):
        await app.play.perform("maths", True)
        sampled, scored, credited, *steps, _ = synthetic_update(1, steps=8)
        source.records([sampled, scored, credited, *steps[:3]])
        await settled(pilot)
        assert "credit, sum of 3 of 8 steps" in str(app.panels.tokens.border_title)
        for completion, loss, credit in (
            (int(steps[2].rows[0]), "its loss before step 3 of 8", "Credit, sum of 2 steps"),
            (int(steps[1].rows[0]), "its loss before step 2 of 8", "Credit, step 2 of 8"),
        ):
            app.play.point(completion, 0)
            lines = all_text(app.panels.inspector)
            assert loss in lines
            assert credit in lines
            assert f"Ratio, {loss.removeprefix('its loss before ')}" in lines
        source.records(steps[3:])
        await settled(pilot)
        assert "credit, sum of 8 steps" in str(app.panels.tokens.border_title)
        assert "Credit, sum of 4 steps" in all_text(app.panels.inspector), "its half of each pass"


def test_a_formula_is_broken_at_blanks_only():
    bright, dim = Style(bold=True), Style(dim=True)
    parts = [("= −min(", dim), ("1.00·(−0.35)", bright), (", ", dim), ("1.00·(−0.35)", bright), (")", dim)]
    for width in range(14, 40):
        lines = ["".join(segment.text for segment in line) for line in folded(parts, width)]
        assert " ".join(line.strip() for line in lines) == "= −min(1.00·(−0.35), 1.00·(−0.35))"
        assert all(len(line) <= max(width, 20) for line in lines)
        assert not any(line.strip() == ")" for line in lines)


async def test_one_optimizer_step_needs_no_number():
    async with on_screen(size=WIDE) as (app, source, pilot):
        *before, _ = synthetic_update(1, steps=1)
        await app.play.perform("maths", True)
        source.records(before)
        await settled(pilot)
        assert "step" not in str(app.panels.tokens.border_title)
        assert "loss of this token\n" in all_text(app.panels.inspector)
        assert "sum of" not in all_text(app.panels.inspector)


async def test_a_candidate_that_was_not_asked_again_has_a_dot_and_keeps_its_bar():
    async with on_screen(size=WIDE) as (app, source, pilot):
        *before, finished = synthetic_update(1)
        source.records([*before, msgspec.structs.replace(finished, top_logprobs=finished.top_logprobs * np.nan)])
        await settled(pilot)
        app.play.point(0, 1)
        lines = [app.panels.inspector.line(row) for row in range(app.panels.inspector.count())]
        _, _, bar, gained, lost, _, _, new = next(line for line in lines if line and line[0].text == "▸ ")
        assert new.text == "    ·"
        assert new.style == app.panels.inspector.palette.strong, "no movement is known"
        assert bar.text.startswith(" █████"), "as likely as when sampled"
        assert not gained.text + lost.text.strip()


async def test_weights_of_rewards_are_shown_in_full():
    async with on_screen(size=WIDE) as (app, source, pilot):
        sampled, scored, *_ = synthetic_update(1)
        weights = dict.fromkeys(scored.weights, 0.25)
        source.records([sampled, msgspec.structs.replace(scored, weights=weights)])
        await app.play.perform("maths", True)
        await settled(pilot)
        assert "0.25·correct" in all_text(app.panels.inspector)


def candidates(app):
    """The names of the candidates under the cursor, and their numbers: under the reference, before and after."""
    lines = [line.strip("▸ ") for line in all_text(app.panels.inspector).split("\n")]
    start = next(at for at, line in enumerate(lines) if line.endswith("old  new"))
    rows = lines[start + 1 : lines.index("", start)]
    count = len(lines[start].split()) - len(lines[start].split("old")[0].split()) + ("ref" in lines[start])
    parted = (re.sub("[▏▎▍▌▋▊▉█░]+", " ", row).rsplit(maxsplit=count) for row in rows)
    return {name.strip(): numbers for name, *numbers in parted}


@pytest.mark.parametrize("size", [WIDE, (120, 35)])
async def test_what_no_candidate_shows_is_in_a_line_for_all_others(size):
    async with on_screen(size=size) as (app, source, pilot):
        *before, finished = synthetic_update(1)
        # Every candidate written down before the update has lost nearly all it had.
        source.records([*before, msgspec.structs.replace(finished, top_logprobs=finished.top_logprobs - 5)])
        await settled(pilot)
        found = candidates(app)
        *_, others = found
        assert others in ("others", "all others")
        old, new = (float(value.replace("<", "")) for value in found[others][-2:])
        listed = [float(row[-2].replace("<", "")) for name, row in found.items() if name != others]
        assert old == pytest.approx(1 - sum(listed), abs=0.04)
        assert new > 0.95, "something else has become the likeliest"


async def test_a_candidate_that_became_likely_is_listed_however_unlikely_it_was():
    async with on_screen(size=WIDE) as (app, source, pilot):
        *before, finished = synthetic_update(1)
        sampled = before[0]
        risen = finished.top_logprobs.copy()
        risen[:, -1] = np.log(0.9)
        source.records([*before, msgspec.structs.replace(finished, top_logprobs=risen)])
        await settled(pilot)
        app.play.point(0, 1)
        token = int(sampled.offsets[0]) + 1
        last = quoted(sampled.pieces[int(sampled.top_ids[token][-1])])
        assert candidates(app)[last][-1] == ".90"


async def test_a_token_that_only_the_update_made_likely_is_listed_with_what_is_known_of_it():
    async with on_screen(size=WIDE) as (app, source, pilot):
        *before, finished = synthetic_update(1)
        sampled, lost = before[0], finished.top_logprobs - 5
        new = {"favourite_ids": np.full_like(finished.favourite_ids, 99_999), "pieces": {99_999: "n\x1b[1m\x07"}}
        new["favourite_logprobs"] = np.full(len(lost), np.log(0.9), dtype=np.float32)
        source.records([*before, msgspec.structs.replace(finished, top_logprobs=lost, **new)])
        await settled(pilot)
        app.play.point(0, 1)
        found = candidates(app)
        bound = np.exp(sampled.top_logprobs[int(sampled.offsets[0]) + 1]).min()
        *_, old, now = found['"n␛[1m␇"']
        assert bound <= float(old.removeprefix("≤")) < bound + 0.01
        assert now == ".90"
        *_, others = found.values()
        listed = sum(float(row[-2].replace("<", "")) for row in [*found.values()][:-1] if "≤" not in row[-2])
        assert float(others[-2].replace("<", "")) == pytest.approx(1 - listed, abs=0.04), "it is among them"


async def test_a_newcomer_may_have_been_likelier_than_the_token_that_was_sampled():
    async with on_screen(size=WIDE) as (app, source, pilot):
        *before, finished = synthetic_update(1)
        sampled = before[0]
        ids, rare, top = sampled.token_ids.copy(), sampled.old_logprobs.copy(), sampled.top_logprobs.copy()
        place = int(sampled.offsets[0]) + 1
        ids[place], rare[place], top[place] = 99_998, np.log(1e-4), np.log(np.linspace(0.14, 0.045, top.shape[1]))
        new = {"favourite_ids": np.full_like(finished.favourite_ids, 99_999), "pieces": {99_999: "new"}}
        new["favourite_logprobs"] = np.full(len(ids), np.log(0.9), dtype=np.float32)
        before[0] = msgspec.structs.replace(sampled, token_ids=ids, old_logprobs=rare, top_logprobs=top)
        source.records([*before, msgspec.structs.replace(finished, **new)])
        await settled(pilot)
        app.play.point(0, 1)
        assert candidates(app)['"new"'][-2] == "≤.05"


async def test_the_columns_and_the_prompt_as_the_model_reads_it_are_shown_harmlessly():
    async with on_screen(size=WIDE) as (app, source, pilot):
        first, *others = synthetic_update(1)
        row = {
            "answer": "30\x1b]0;owned\x07",
            "topic": "[b]sums[/b]",
            "solution": "because " * 20 + "so 30",
            "level": 3,
            "steps": ["4*6=24", "3+24=27"],
        }
        first = msgspec.structs.replace(first, columns=[row, *first.columns[1:]])
        source.records([first, *others])
        await settled(pilot)
        app.play.point(0, 0)
        assert "answer 30␛]0;owned␇" in " ".join(all_text(app.panels.inspector).split()), "in words, too"
        await app.play.perform("maths", True)
        await settled(pilot)
        app.play.point(0, 0)
        lines = all_text(app.panels.inspector)
        whole = " ".join(lines.split())
        assert "answer 30␛]0;owned␇ · topic [b]sums[/b] · solution because because" in whole
        assert "\x1b" not in lines
        assert "steps 4*6=24, 3+24=27" in whole
        assert whole.index("level 3") < whole.index("old new"), "above the candidates"
        template = "".join(first.prompt_texts[: int(first.prompt_offsets[1])])
        assert "<|user|>" in template
        shown = "".join(lines.split("prompt as the model reads it")[1].split("column solution")[0].split("\n"))
        assert "".join(shown.split()) == "".join(template.split())
        assert "so 30" in lines.split("column solution")[1], "what is too long for the top is in full below"
        app.play.point(int(np.flatnonzero(first.group == 1)[0]), 0)
        assert "solution" not in all_text(app.panels.inspector)
        assert f"answer {first.columns[1]['answer']} · topic addition" in all_text(app.panels.inspector)


async def test_what_a_reward_function_logged_is_beside_the_answer():
    async with on_screen(size=WIDE) as (app, source, pilot):
        sampled, scored, *_ = synthetic_update(1)
        columns = {"parsed": [f"<{row}>\x1b[31m" + "long " * 40 for row in range(len(sampled.group))],
                   "depth": [None] + [1.5] * (len(sampled.group) - 1)}  # fmt: skip
        source.records([sampled, msgspec.structs.replace(scored, extra=columns)])
        await app.play.perform("maths", True)
        await settled(pilot)
        app.play.point(0, 0)
        assert "parsed <0>␛[31mlong" in all_text(app.panels.inspector)
        assert "depth –" in all_text(app.panels.inspector)
        assert sum("long" in line for line in text_of(app.panels.inspector).split("\n")) == 1
        app.play.point(1, 0)
        assert "depth 1.5" in all_text(app.panels.inspector)


def in_words(app):
    return " ".join(all_text(app.panels.inspector).split())


async def test_in_words_the_panel_says_what_the_model_thought_what_was_earned_and_what_became_of_it():
    async with on_screen(size=WIDE) as (app, source, pilot):
        sampled, scored, credited, *steps, finished = synthetic_update(1)
        at = int(sampled.offsets[1])
        right = np.array([1, 0, 0, 1] * 4, dtype=np.float32)
        scored = msgspec.structs.replace(scored, rewards=right, parts={"correct": right}, weights={"correct": 1.0})
        credited = msgspec.structs.replace(
            credited, advantages=np.where(np.arange(len(credited.advantages)) >= at, -1, 1)
        )
        credited = msgspec.structs.replace(credited, advantages=credited.advantages.astype(np.float32))
        app.play.point(1, 0)
        source.records([sampled])
        await settled(pilot)
        app.play.point(1, 0)
        chosen, share = int(sampled.token_ids[at]), round(100 * float(np.exp(sampled.old_logprobs[at])))
        first = int(sampled.top_ids[at][0])
        told = "its first choice." if first == chosen else f"its first choice was {quoted(sampled.pieces[first])}, "
        assert f"The model gave it {share} %" in in_words(app)
        assert told in in_words(app)
        assert "answers" not in in_words(app), "nothing is earned yet"
        source.records([scored])
        await settled(pilot)
        assert "4 answers, 2 right; this one is wrong." in in_words(app)
        assert "pulled" not in in_words(app)
        source.records([credited])
        await settled(pilot)
        assert "so the token is pulled down (advantage −1.00)." in in_words(app)
        assert "id " not in in_words(app)
        source.records([*steps, finished])
        await settled(pilot)
        old, new = (float(np.exp(x)) for x in (sampled.old_logprobs[at], finished.logprobs[at]))
        way = "up" if new > old else "down"
        assert f"went {way}" in in_words(app).replace(":", "") or "hardly moved it" in in_words(app)
        await pressed(pilot, "m")
        assert f"id {chosen}" in in_words(app), "marks show what is hidden"


async def test_the_bars_of_28_and_22_percent_differ_and_the_reference_shows_only_where_it_does():
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        sampled, *others = synthetic_update(1)
        top = sampled.top_logprobs.copy()
        top[:, :2] = np.log([0.28, 0.22])
        credited = msgspec.structs.replace(others[1], ref_top_logprobs=top.copy())
        source.records([msgspec.structs.replace(sampled, top_logprobs=top), others[0], credited])
        await settled(pilot)
        bars = [re.search("[▏▎▍▌▋▊▉█]+", line)[0] for line in all_text(app.panels.inspector).split("\n") if "█" in line]
        assert len(bars[0]) - len(bars[1]) >= 1
        assert " ref " not in all_text(app.panels.inspector)
        app.play.session.shown.credited = msgspec.structs.replace(credited, ref_top_logprobs=top - 1)
        source.records(others[2:])
        await settled(pilot)
        assert " ref " in all_text(app.panels.inspector)


async def test_without_colours_what_the_update_added_to_a_bar_has_another_texture(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with on_screen(size=WIDE) as (app, source, pilot):
        *before, finished = synthetic_update(1)
        source.records(
            [*before, msgspec.structs.replace(finished, top_logprobs=np.log(finished.top_logprobs * 0 + 0.9))]
        )
        await settled(pilot)
        assert re.search("█*▓+", all_text(app.panels.inspector))


@pytest.mark.parametrize(
    ("advantage", "returned", "baseline", "reward", "words"),
    [
        (1.2, 1.0, 0.25, 1.0, "Better than the expected 0.25, so the token is pulled up (advantage +1.20)."),
        (-0.5, 0.0, 0.25, 0.0, "Worse than the expected 0.25, so the token is pulled down (advantage −0.50)."),
        (-1.8, 0.88, 0.9, 0.93, "Its return 0.88 is worse than the expected 0.90, so the token is pulled down"),
        (-1.8, 0.95, 0.9, 0.93, "Worse than average, so the token is pulled down (advantage −1.80)."),
        (0.7, None, None, 1.0, "Better than average, so the token is pulled up (advantage +0.70)."),
        (0.0, 0.5, 0.5, 0.5, "That is as expected, so nothing pulls (advantage 0)."),
    ],
)
def test_the_reason_compares_only_numbers_that_explain_the_pull(advantage, returned, baseline, reward, words):
    update = Update(1)
    for record in synthetic_update(1):
        update.add(record)
    update.scored = msgspec.structs.replace(update.scored, rewards=np.full_like(update.scored.rewards, reward))
    numbers = TokenNumbers(advantage=advantage, returned=returned, baseline=baseline)
    said = reasons(update, 0, facts_of(update).answer(0), 0, SETTINGS, numbers)
    assert words in said


@pytest.mark.parametrize(
    ("reward", "words"),
    [
        (1.0, "No baseline: the reward itself pulls, so the token is pulled up (advantage +1.00)."),
        (0.0, "No baseline: the reward itself pulls. It is 0 here, so nothing pulls (advantage 0)."),
    ],
)
def test_without_a_baseline_nothing_is_expected(reward, words):
    update = Update(1)
    for record in synthetic_update(1):
        update.add(record)
    numbers = TokenNumbers(advantage=reward, returned=reward, baseline=0.0)
    said = reasons(update, 0, facts_of(update).answer(0), 0, resolve({"algorithm": "reinforce"}), numbers)
    assert words in said
    assert "expected" not in said
