"""The answer tree: every answer is in it once, its rewards are means of the records, at every size."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from textual.content import Content

from rlplay.trace.answer_tree import Node, answer_tree
from rlplay.trace.history import History
from rlplay.trace.records import Sampled
from rlplay.trace.update import Update
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.tree import ABOVE, BELOW, NOTHING_SAMPLED, AnswerTree
from tests.recorded import synthetic_sampling, synthetic_update
from tests.ui.curve_panels import title
from tests.ui.stage import on_screen, pressed, settled, shown

ANSWERS = ("ab", "ab", "acd", "b", "acd", "ac")
REWARDS = (1.0, 1.0, 0.0, 0.0, 1.0, 0.0)


def update_of(answers: tuple[str, ...] = ANSWERS, rewards: tuple[float, ...] = REWARDS) -> Update:
    """One group with these answers, a token for each letter."""
    record, scored, *_ = synthetic_update(1)
    assert isinstance(record, Sampled)
    ids = np.array([ord(letter) for answer in answers for letter in answer], dtype=np.int32)
    flat = {"token_ids": ids, "texts": list("".join(answers)), "mask": np.ones(len(ids), dtype=np.uint8)}
    update = Update(1)
    update.add(msgspec.structs.replace(
        record, group=np.zeros(len(answers), dtype=np.int32),
        offsets=np.concatenate([[0], np.cumsum([len(answer) for answer in answers])]),
        pieces={ord(letter): letter for letter in "abcd"}, **flat,
    ))  # fmt: skip
    update.add(msgspec.structs.replace(scored, rewards=np.array(rewards)))
    return update


def lines(source: PlotData, width: int = 70, height: int = 12) -> list[str]:
    drawn = AnswerTree().draw(source, Size(width, height), False)
    assert isinstance(drawn, Picture), drawn
    return drawn.content.plain.split("\n")


def leaves(node: Node) -> list[Node]:
    return [leaf for child in node.children for leaf in leaves(child)] or [node]


def nodes(node: Node) -> list[Node]:
    return [node, *(each for child in node.children for each in nodes(child))]


@pytest.mark.parametrize("group", range(4))
def test_the_values_of_the_beginnings_are_means_over_the_records(group: int) -> None:
    update = Update(1)
    for record in synthetic_update(1):
        update.add(record)
    assert update.sampled is not None
    assert update.scored is not None
    sampled = update.sampled
    root = answer_tree(update, group)
    assert root is not None
    answers = {row: tuple(sampled.token_ids[sampled.offsets[row] : sampled.offsets[row + 1]].tolist())
               for row in range(16) if sampled.group[row] == group}  # fmt: skip
    assert sorted(row for leaf in leaves(root) for row in leaf.rows) == sorted(answers)
    for node in nodes(root):
        beginning = answers[node.rows[0]][: node.end]
        same = [row for row, answer in answers.items() if answer[: node.end] == beginning]
        if node.end > node.start:
            assert node.rows == same
            assert node.reward == pytest.approx(np.mean([update.scored.rewards[row] for row in same]))


def test_a_line_for_each_branch_the_largest_first() -> None:
    found = lines(PlotData(History(), shown=update_of()))
    words = [" ".join(line.replace("━", "").replace("╸", "").split()) for line in found]
    assert words == [
        "(all answers) 6/6 0.50",
        "├ a 5/6 0.60",
        "│ ├ c 3/6 0.33",
        "│ │ ├ d 2/6 0.50",
        "│ │ └ (ends) 1/6 0.00 ✗",
        "│ └ b 2/6 1.00 ✓",
        "└ b 1/6 0.00 ✗",
    ]
    bare = lines(PlotData(History(), shown=update_of(), tinted=False))
    assert [line.count("━") + line.count("╸") / 2 for line in bare] == [8, 6.5, 4, 2.5, 1.5, 2.5, 1.5]


def test_the_bar_behind_a_text_is_its_share_of_the_answers() -> None:
    drawn = AnswerTree().draw(PlotData(History(), shown=update_of()), Size(70, 12), False)
    assert isinstance(drawn, Picture)
    bars = [span.end - span.start for span in drawn.content.spans if str(span.style).startswith("on ")]
    assert bars == [round(share / 6 * 58) for share in (6, 5, 3, 2, 1, 2, 1)]


def test_in_little_room_whole_answers_have_a_mark_and_beginnings_a_mean() -> None:
    found = [line.split()[-2:] for line in lines(PlotData(History(), shown=update_of()), width=36)]
    assert found == [["×6", ".50"], ["×5", ".60"], ["×3", ".33"], ["×2", ".50"], ["×1", "✗"], ["×2", "✓"], ["×1", "✗"]]


def test_answers_that_are_all_the_same_are_said_to_be() -> None:
    assert lines(PlotData(History(), shown=update_of(("ab",) * 3, (1.0,) * 3)))[1] == "All 3 answers are the same text."


def test_colours_compare_with_the_mean_of_the_group() -> None:
    drawn = AnswerTree().draw(PlotData(History(), shown=update_of()), Size(70, 12), False)
    assert isinstance(drawn, Picture)
    for line, ink in ((1, ABOVE), (2, BELOW), (5, ABOVE), (6, BELOW)):
        start = 71 * line
        styles = {str(span.style) for span in drawn.content.spans if start <= span.start < start + 70}
        assert ink in styles
        assert not ({ABOVE, BELOW} - {ink}) & styles


def test_answers_that_got_other_numbers_are_not_right_or_wrong() -> None:
    text = "\n".join(lines(PlotData(History(), shown=update_of(rewards=(0.5, 2.0, 1.0, 0.0, 1.0, 0.0)))))
    assert "✓" not in text
    assert "✗" not in text


def test_the_line_of_the_cursor_is_highlighted() -> None:
    for cursor, word in (((2, 0), "a"), ((2, 2), "d"), ((3, 0), "b"), ((5, 1), "c")):
        drawn = AnswerTree().draw(PlotData(History(), shown=update_of(), cursor=cursor), Size(70, 12), False)
        assert isinstance(drawn, Picture)
        lit = [span for span in drawn.content.spans if str(span.style) == "reverse"]
        assert [drawn.content.plain[span.start : span.end] for span in lit] == [word]


@pytest.mark.parametrize("size", [(10, 2), (36, 5), (36, 8), (110, 30)])
def test_it_fits_and_says_what_has_no_room(size: tuple[int, int]) -> None:
    found = lines(PlotData(History(), shown=update_of()), *size)
    assert len(found) <= size[1]
    assert max(Content(line).cell_length for line in found) <= size[0]
    if size[1] < 7 and size[0] > 30:
        assert any("▸" in line or "more" in line for line in found)


def test_before_rewards_there_are_only_shares() -> None:
    assert AnswerTree().draw(PlotData(History()), Size(40, 8), False) == NOTHING_SAMPLED
    update = Update(1)
    update.add(synthetic_sampling(1)[2])
    text = "\n".join(lines(PlotData(History(), shown=update)))
    assert "4/4" in text
    assert "." not in text.replace("…", "").split("4/4")[1].split("\n")[0]


@pytest.mark.parametrize("size", [(80, 24), (160, 45), (240, 67)])
async def test_its_key_puts_it_up_and_it_follows_the_cursor(size: tuple[int, int]) -> None:
    async with on_screen(1, size=size) as (app, source, pilot):
        await pressed(pilot, "T")
        panel = next(panel for panel in app.panels.curves.panels if isinstance(panel.view, AnswerTree))
        assert title(panel).startswith("Answer tree · ")
        before = shown(panel)
        app.play.point(8, 0)  # another group
        await settled(pilot)
        assert shown(panel) != before
        assert panel.source is not None
        source.records(synthetic_sampling(2)[:1])
        await settled(pilot)
        assert panel.source.shown is app.play.session.shown  # while it is sampled


@pytest.mark.parametrize(("height", "headings"), [(4, 0), (5, 1), (8, 2), (30, 3)])
def test_below_equal_answers_come_the_trees_of_the_next_prompts_that_fit(height: int, headings: int) -> None:
    update = Update(1)
    for record in synthetic_update(1):
        update.add(record)
    sampled = update.sampled
    assert sampled is not None
    size, start = int((sampled.group == 0).sum()), sampled.offsets
    same = np.zeros(len(sampled.group), dtype=np.int64) + 2
    update.sampled = msgspec.structs.replace(
        sampled, offsets=np.concatenate([[0], np.cumsum(same)]), token_ids=np.tile(sampled.token_ids[:2], len(same)),
        texts=(sampled.texts[:2] * len(same)), mask=np.ones(2 * len(same), dtype=np.uint8),
    )  # fmt: skip
    assert size > 1
    assert len(start) == len(same) + 1
    found = lines(PlotData(History(), update, shown=update), height=height)
    assert len(found) <= height
    assert f"All {size} answers are the same text." in found[1]
    assert [prompt.replace("\n", "⏎")[:8] in "\n".join(found) for prompt in sampled.prompts[1:]].count(True) == headings
