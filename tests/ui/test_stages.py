"""A pipeline on the screen: each panel speaks of the stage that made what is looked at, and calls no label a reward."""

import msgspec
import numpy as np
import pytest

from rlplay.algorithms.apply import resolve
from rlplay.trace.history import History
from rlplay.trace.records import Changed, Credited, Finished, Scored, Staged, Stepped
from rlplay.trace.update import Update
from rlplay.ui.plot.catalogue import IMITATION, PAIRS
from rlplay.ui.plot.curve_view import single, with_average
from rlplay.ui.plot.picture import Size
from rlplay.ui.plot.plot_data import ENDS_BEFORE, NEXT_UPDATE, NOT_COMPUTED, PlotData, first_update
from rlplay.ui.plot.several_runs import RUN_STYLES, Overlay
from rlplay.ui.session.happenings import Moved
from rlplay.ui.theme.inks import levels
from rlplay.ui.words.narration import narrate_run
from tests.recorded import synthetic_update
from tests.ui.stage import all_text, playground, settled, shown

WIDE = (160, 45)
NAMES = {"sft": "Supervised fine-tuning", "dpo": "DPO", "reward-model": "Reward model", "grpo": "GRPO"}


def settings(algorithm):
    return msgspec.to_builtins(resolve({"algorithm": algorithm}))


def staged(update, algorithm):
    return Staged(update=update, index=int(update > 1), stages=2, name=algorithm, settings=settings(algorithm))


def labelled(number, roles=("chosen", "rejected"), metrics=None):
    """An update that learned from pairs, or from one answer each; with `roles` in every group."""
    for record in synthetic_update(number, generations=len(roles), steps=1):
        if isinstance(record, Scored):
            every = list(roles) * (len(record.rewards) // len(roles))
            rewards = np.array([float(role == "chosen") for role in every], dtype=np.float32)
            yield msgspec.structs.replace(record, roles=every, rewards=rewards, parts={"preferred": rewards})
        elif isinstance(record, Credited):
            values = np.linspace(-1.5, 1.5, len(record.advantages), dtype=np.float32)
            yield msgspec.structs.replace(record, values=values)
        elif isinstance(record, Stepped | Finished) and metrics:
            yield msgspec.structs.replace(record, metrics={"num_tokens": 50.0 * number, **metrics})
        else:
            yield record


async def test_the_header_names_what_made_the_update_that_is_looked_at():
    app, source = playground(settings=settings("sft"))
    async with app.run_test(size=WIDE) as pilot:
        source.records([staged(1, "sft"), *labelled(1, ["chosen"], {"loss": 0.1}), staged(2, "dpo")])
        source.status(1, **settings("dpo"))
        await settled(pilot)
        assert f"{NAMES['sft']}, next DPO" in shown(app.panels.header), (
            "its tokens are on the screen, and the next are DPO's"
        )
        source.records(list(labelled(2))[:1])
        source.status(1, phase="score", **settings("dpo"))
        await settled(pilot)
        assert "   DPO ·" in shown(app.panels.header)
        app.play.session.look_at(1)
        await settled(pilot)
        assert f"   {NAMES['sft']} ·" in shown(app.panels.header)
        assert "DPO" not in shown(app.panels.header)


async def test_before_anything_is_sampled_the_header_names_what_will_be_played():
    app, source = playground(settings=settings("grpo"))
    async with app.run_test(size=WIDE) as pilot:
        source.records([Changed(update=1, phase="sample", name="algorithm", value="dpo", previous="grpo")])
        source.status(**settings("dpo"))
        await settled(pilot)
        assert "   DPO ·" in shown(app.panels.header)


@pytest.mark.parametrize(
    ("algorithm", "roles", "words", "below"),
    [
        ("dpo", ("chosen", "rejected"), ("chosen", "rejected"), "label · pull"),
        ("kto", ("rejected", "chosen"), ("rejected", "chosen"), "label · pull"),
        ("sft", ("chosen",), ("imitated",), "label · pull"),
        ("reward-model", ("chosen", "rejected"), ("chosen", "rejected"), "label · score"),
        ("dpo", ("", ""), ("left out", "left out"), "label · pull"),
    ],
)
async def test_labels_are_no_rewards(algorithm, roles, words, below):
    app, source = playground(settings=settings(algorithm))
    async with app.run_test(size=WIDE) as pilot:
        source.records(labelled(1, roles))
        source.status(1, **settings(algorithm))
        await settled(pilot)
        listed = all_text(app.panels.rollouts)
        labels = [line[2:].split("  ")[0].split("−")[0].split("+")[0].strip() for line in listed.split("\n")]
        assert set(labels) >= set(words)
        assert not {"chosen", "rejected", "imitated", "left out", "1.00", "0.00"} & (set(labels) - set(words))
        assert "±" not in listed, "a label has no mean and no spread"
        assert str(app.panels.rollouts.border_subtitle).strip() == below
        inspected = " ".join(all_text(app.panels.inspector).split())
        assert f"The answer is {words[0]}" in inspected or "scores of whole answers" in inspected
        await app.play.perform("maths", True)
        await settled(pilot)
        inspected = all_text(app.panels.inspector)
        assert f"label: {words[0]}" in inspected
        assert "reward 1.00" not in inspected
        assert "Advantage" not in inspected
        assert "Pull" in inspected
        app.play.lens_choice = "advantages"
        app.play.session.touch("look")
        await settled(pilot)
        assert "pull" in str(app.panels.tokens.border_title)


async def test_a_reward_models_scores_stand_beside_the_labels_on_a_scale_that_fits():
    app, source = playground(settings=settings("reward-model"))
    async with app.run_test(size=WIDE) as pilot:
        records = list(labelled(1))
        source.records(records)
        source.status(1, **settings("reward-model"))
        app.play.lens_choice = "values"
        await settled(pilot)
        last = records[0].offsets[1] - 1
        score = next(record.values for record in records if isinstance(record, Credited))[last]
        assert f"{score:+.2f}".replace("-", "−") in all_text(app.panels.rollouts)
        scale = app.panels.tokens._border_subtitle.plain.strip()
        assert scale.startswith("−2 ")
        assert " +2 ·" in scale
        assert "colour: score" in str(app.panels.tokens.border_title)
        assert len(set(levels(app.panels.tokens._ink.lens, app.panels.tokens._ink.values).tolist())) > 5, (
            "most of them would have one shade from 0 to 1"
        )


async def test_the_same_answer_twice_is_named_as_such():
    app, source = playground(settings=settings("dpo"))
    async with app.run_test(size=WIDE) as pilot:
        sampled, *others = labelled(1)
        start, middle, end = (int(x) for x in sampled.offsets[2:5])
        length = min(middle - start, end - middle)
        ids, texts = sampled.token_ids.copy(), list(sampled.texts)
        ids[middle : middle + length], texts[middle : middle + length] = (
            ids[start : start + length], texts[start : start + length],
        )  # fmt: skip
        offsets = sampled.offsets.copy()
        keep = np.r_[: start + length, middle : middle + length, end : len(ids)]
        offsets[3:] -= middle - start - length
        offsets[4:] -= end - middle - length
        flat = ("mask", "old_logprobs", "entropy", "top_ids", "top_logprobs")
        source.records(
            [
                msgspec.structs.replace(
                    sampled, token_ids=ids[keep], texts=[texts[i] for i in keep], offsets=offsets,
                    **{name: getattr(sampled, name)[keep] for name in flat},
                ),
                others[0],
            ]
        )  # fmt: skip
        source.status(0, phase="credit", **settings("dpo"))
        await settled(pilot)
        assert all_text(app.panels.rollouts).count("= answer 1") == 1
        assert all_text(app.panels.tokens).count("same text as answer 1") == 1
        row = app.panels.tokens._layout.rows_of(3).stop - 1
        assert "same text" in all_text(app.panels.tokens).split("\n")[row]
        await pilot.resize_terminal(120, 35)
        await settled(pilot)
        assert all(len(line.rstrip()) <= app.panels.rollouts.scrollable_content_region.width
                   for line in all_text(app.panels.rollouts).split("\n"))  # fmt: skip


# Curves


def recorded(stages):
    """A history of stages: how many updates each has, and the metrics of its updates."""
    history, number = History(), 0
    for index, (updates, metrics) in enumerate(stages):
        history.add(Staged(update=number + 1, index=index, stages=len(stages), name=str(index), settings={}))
        for _ in range(updates):
            number += 1
            numbers = {"num_tokens": 10.0 * number, **metrics}
            finished = synthetic_update(1)[-1]
            history.add(msgspec.structs.replace(finished, update=number, metrics=numbers))
    return history


def test_a_curve_is_cut_where_a_stage_begins():
    history = recorded(
        [(8, {"loss": 0.1, "eval_gold/helpful/mean": 0.2}), (8, {"loss": 0.7, "eval_gold/helpful/mean": 0.9})]
    )
    size = Size(40, 12)

    def dots_between(view):
        lines = view.draw(PlotData(history), size, False, 0.0).content.plain.split("\n")
        drawn = [bool(set(line[6:]) - set(" ┊┈│⠀.0123456789")) for line in lines[:-1]]
        first, last = drawn.index(True), len(drawn) - drawn[::-1].index(True)
        return sum(drawn[first + 1 : last - 1])

    assert dots_between(single("loss")) == 0, "a loss is another one in each stage"
    assert dots_between(single("eval_gold/helpful/mean")) > 2, "held-out answers are measured alike all the way"
    assert dots_between(Overlay(("loss",), lambda: [(RUN_STYLES[0], history)])) == 0
    assert "┊" in single("loss").draw(PlotData(history), size, False).content.plain
    assert "┊" not in single("eval_gold/helpful/mean").draw(PlotData(history), size, False).content.plain


def test_the_average_begins_anew_with_the_stage():
    history = recorded([(8, {"loss": 0.1}), (8, {"loss": 0.7})])
    grey, average = with_average(single("loss").series(PlotData(history))[0], 0.9)
    assert np.allclose(average.values, [0.1] * 8 + [0.7] * 8)
    assert (grey.cuts, average.cuts) == ([9], [9])


def test_what_was_rewound_away_is_cut_too():
    history = recorded([(8, {"loss": 0.1}), (8, {"loss": 0.7})])
    history._cut(3)
    live, ghost = single("loss").series(PlotData(history))
    assert list(live.updates) == [1, 2, 3]
    assert (ghost.updates[0], ghost.cuts) == (4, [9])


@pytest.mark.parametrize(
    ("stages", "replayed", "words"),
    [
        ([], False, first_update(PAIRS[1].title)),
        ([(3, {"loss": 0.1}), (0, {})], False, NEXT_UPDATE),
        ([(3, {"loss": 0.1}), (0, {})], True, ENDS_BEFORE),
        ([(3, {"loss": 0.1})], False, NOT_COMPUTED),
        ([(3, {"loss": 0.1}), (1, {"loss": 0.7})], False, NOT_COMPUTED),
    ],
)
def test_an_empty_panel_says_whether_its_numbers_are_still_to_come(stages, replayed, words):
    source = PlotData(recorded(stages), replayed=replayed)
    assert PAIRS[1].draw(source, Size(38, 8), False) == words


def test_another_sentence_is_drawn_afresh():
    history = recorded([(3, {"loss": 0.1}), (0, {})])
    before = PAIRS[1].state(PlotData(history))
    history._marks.clear()
    assert history.settled
    assert PAIRS[1].state(PlotData(history)) != before


async def test_the_panels_change_with_the_stage_before_its_first_step():
    app, source = playground(settings=settings("sft"))
    async with app.run_test(size=WIDE) as pilot:
        source.records([staged(1, "sft"), *labelled(1, ["chosen"], {"loss": 0.1}), staged(2, "dpo")])
        source.status(1, **settings("dpo"))
        await settled(pilot)
        assert "Token accuracy" in str(app.panels.curves.panels[1].border_title), "that is what is on the screen"
        later = list(labelled(2, metrics={"loss": 0.7}))
        source.records(later[:1])
        source.status(1, phase="score", **settings("dpo"))
        await settled(pilot)
        assert app.panels.curves.panels[1].view == PAIRS[1]
        assert shown(app.panels.curves.panels[1]) == NEXT_UPDATE.replace("`", "")
        source.records(later[1:])
        source.status(2, **settings("dpo"))
        await settled(pilot)
        assert shown(app.panels.curves.panels[1]) == NOT_COMPUTED


async def test_the_panels_change_with_the_stage_that_a_playhead_goes_back_to():
    app, source = playground(settings=settings("sft"))
    async with app.run_test(size=WIDE) as pilot:
        first = list(labelled(1, ["chosen"], {"loss": 0.1}))
        source.records([staged(1, "sft"), *first, staged(2, "dpo"), *labelled(2, metrics={"loss": 0.7})])
        source.status(2, **settings("dpo"))
        await settled(pilot)
        assert app.panels.curves.panels[1].view == PAIRS[1]
        begun = Update(1)
        begun.add(first[0])
        source.put(Moved(begun))  # no number is new, and no step is there to draw
        await settled(pilot)
        assert app.panels.curves.panels[1].view == IMITATION[1]


def test_a_run_compares_with_the_beginning_of_its_stage_only():
    stages = [(2, {"reward": 0.2, "entropy": 1.0}), (2, {"reward": 1.5, "entropy": 3.0})]
    assert "reward 1.5 → 1.5, entropy 3 → 3 nats" in narrate_run(recorded(stages)).happened
    begun = recorded([stages[0], (0, {})])
    assert narrate_run(begun).happened == "Running. 2 updates.", "none of this stage has finished"
    gone_back = recorded(stages)
    gone_back._cut(1)
    assert "reward 0.2, entropy 1 nats" in narrate_run(gone_back).happened, "the border lies ahead again"
