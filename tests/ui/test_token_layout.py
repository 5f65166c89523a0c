"""The lines of the answers: which token is where, what of a long answer is shown, and what stands before a text."""

from __future__ import annotations

import numpy as np
import pytest

from rlplay.trace.records import Array, Sampled
from rlplay.ui.tokens.token_layout import (
    FLIPPED,
    GUTTER,
    LONG,
    MORE,
    VALUE_WIDTH,
    Folds,
    LayoutRow,
    TokenLayout,
    are_long,
)
from tests.written import sampled_of

ANSWERS = (["two", " and", " two", " is", " four"], ["4"], [], [" sev", "en", "teen", " or", " so"])


def layout_of(
    sampled: Sampled, width: int = 14, signs: bool = False, *, clips: Array | None = None, folds: Folds | None = None
) -> TokenLayout:
    layout = TokenLayout()
    layout.arrange(sampled, clips, list(range(len(sampled.group))), width, signs, folds)
    return layout


def text(row: LayoutRow) -> str:
    return "".join(cell.text for cell in row.cells)


def texts(layout: TokenLayout) -> list[str]:
    return [text(row) for row in layout.rows]


@pytest.mark.parametrize("signs", [False, True])
def test_every_cell_of_a_token_is_that_token(signs: bool) -> None:
    layout = layout_of(sampled_of(*ANSWERS, prompts=["a", "b"]), signs=signs)
    seen = set()
    for number, row in enumerate(layout.rows):
        x = GUTTER
        for cell in row.cells if row.completion >= 0 else ():
            here = row.completion, cell.token
            assert [layout.at(number, column) for column in range(x, x + cell.width)] == [here] * cell.width
            assert [layout.next_text(number, column, 1) for column in (x,)] == [here] or row.values
            if here not in seen:
                assert layout.place(*here) == (number, x)
            seen.add(here)
            x += cell.width
        if row.completion >= 0:
            first, last = (row.cells[at].token if row.cells else 0 for at in (0, -1))
            assert (layout.at(number, 0), layout.at(number, 99)) == ((row.completion, first), (row.completion, last))
    assert seen == {(answer, token) for answer, tokens in enumerate(ANSWERS) for token in range(len(tokens))}


def test_a_prompt_and_what_is_outside_has_no_token() -> None:
    layout = layout_of(sampled_of(["a"], ["b"], prompts=["one", "two"]))
    assert texts(layout) == ["one", "a", "", "two", "b"]
    assert [layout.at(row, 3) for row in (-1, 0, 1, 2, 3, 4, 5)] == [None, None, (0, 0), None, None, (1, 0), None]
    assert [layout.next_text(row, 3, step) for row, step in ((0, 1), (2, 1), (2, -1), (0, -1), (5, 1))] == [
        (0, 0), (1, 0), (0, 0), None, None,
    ]  # fmt: skip
    assert layout.place(7, 0) == (0, GUTTER), "not listed"
    assert layout.place(1, 9) == (4, GUTTER), "no such token"
    assert [layout.heading(row) for row in (0, 1, 3, 4)] == [0, 0, 3, 3]


def test_the_lines_of_an_answer() -> None:
    layout = layout_of(sampled_of(*ANSWERS), width=10, signs=True)
    assert [(row.completion, row.values) for row in layout.rows[1:]] == [
        *[(0, False), (0, True)] * 5, (1, False), (1, True), (2, False), (2, True), *[(3, False), (3, True)] * 5,
    ]  # fmt: skip
    assert [layout.rows_of(answer) for answer in (0, 1, 3, 9)] == [
        range(1, 11), range(11, 13), range(15, 25), range(0),
    ]  # fmt: skip
    assert [row for row in range(len(layout.rows)) if layout.begins(row)] == [1, 11, 13, 15]
    assert [row for row in range(len(layout.rows)) if layout.ends(row) and row] == [9, 11, 13, 23]
    assert [layout.next_text(row, 3, 1) for row in (2, 24)] == [(0, 1), None], "a line of numbers is passed over"
    assert [text(row) for row in layout.rows[1:5:2]] == ["two   ", "·and  "]
    plain = layout_of(sampled_of(*ANSWERS), width=10)
    assert [row for row in range(len(plain.rows)) if plain.ends(row) and row] == [3, 4, 5, 8]
    plain.replace(plain.rows[:1] + plain.rows[3:])
    assert plain.rows_of(0) == range(1, 2)
    plain.clear()
    assert (plain.rows, plain.rows_of(0)) == ([], range(0))


@pytest.mark.parametrize(
    ("prompt", "answer", "lines"),
    [
        ("one two three four", 1, ["one two", " three four"]),
        ("one two three four five six seven", 1, ["one two", " three four", " five six …"]),
        ("one two three four five fifteen", 1, ["one two", " three four", " five …"]),
        ("one two three four five six seven", LONG + 1, ["one two …"]),
        ("one two", LONG + 1, ["one two"]),
        ("one two three four five", 1, ["one two", " three four", " five"]),
        ("one\ntwo", 1, ["one⏎ two"]),
        ("0123456789" * 9, 1, ["01234567890", "12345678901", "234567890 …"]),
    ],
)
def test_a_prompt_has_three_lines_at_most_and_one_above_long_answers(
    prompt: str, answer: int, lines: list[str]
) -> None:
    layout = layout_of(sampled_of(["a"] * answer, prompts=[prompt]), width=13)
    assert [text(row) for row in layout.rows if row.completion < 0] == lines


def test_clipped_tokens_have_a_mark_in_place_of_their_blank() -> None:
    clips = np.array([1, 0, -1, 2, FLIPPED, 0, 0, 0, 0, 0, 1])
    sampled = sampled_of(*ANSWERS)
    assert texts(layout_of(sampled, 40, clips=clips))[1] == "▲two and▼two▲is±four"
    assert texts(layout_of(sampled, 60, True, clips=clips))[1].split() == ["▲two", "·and", "▼two", "▲is", "±four"]


def test_numbers_need_a_column_for_each_token() -> None:
    row = layout_of(sampled_of(["a", " is", " seventeen"]), 60, True).rows[1]
    assert [cell.text for cell in row.cells] == ["a     ", "·is   ", "·seventeen "]
    assert min(cell.width for cell in row.cells) == VALUE_WIDTH + 1


def test_a_line_break_of_the_answer_ends_the_line() -> None:
    assert texts(layout_of(sampled_of(["one", "\n", "two"]), 40))[1:] == ["one⏎", "two"]


WORDS = ["Find", " it", " now", ".", " x", " y", " z", " w"]
TOLD = ["<|tool|>", *WORDS[1:]]


def spoken(*turns: int, answers: tuple[list[str], ...] = ()) -> Sampled:
    """An answer of turns with so many tokens, the model's and a tool's by turns, and answers of the model alone."""
    own = [(words * 30)[:count] for words, count in zip((WORDS, TOLD, WORDS), turns, strict=False)]
    tools = [turn == 1 for turn, tokens in enumerate(own) for _ in tokens]
    mask = np.array([not tool for tool in tools] + [True] * sum(map(len, answers)), dtype=np.uint8)
    return sampled_of([token for tokens in own for token in tokens], *answers, mask=mask)


def test_speakers_and_copies_stand_before_the_text() -> None:
    layout = layout_of(spoken(8, 8, 8, answers=(WORDS,)), 60, folds=Folds({0: 3}))
    assert layout.heads(0) == {0: "×3 model: ", 8: "tool:  ", 16: "model: "}
    assert layout.heads(1) == {}, "nobody else speaks"
    lines = [(row.cells[0].token, text(row)) for row in layout.rows if row.completion == 0]
    assert [token for token, _ in lines] == [0, 8, 16], "each turn begins a line"
    assert lines[1][1].startswith("tool:  ")
    assert layout_of(spoken(1, 15), 60).heads(0) == {0: "model: ", 1: "tool:  "}
    assert [row.cells[0].token for row in layout_of(spoken(1, 15), 90).rows[1:]] == [0, 1]
    copied = layout_of(sampled_of(["a"], ["b"]), folds=Folds({1: 2}))
    assert (copied.heads(0), texts(copied)[1:]) == ({}, ["a", "×2 b"])


def test_a_folded_line_is_found_before_the_turn_after_it() -> None:
    layout = layout_of(spoken(32, 200), 40)
    assert layout.rows[1].folded
    assert text(layout.rows[1]).startswith("model: Find it now.")


def long_answers(length: int = LONG + 30, **fields: object) -> Sampled:
    return sampled_of(*([f" w{n % 97}" for n in range(length)] for _ in range(2)), **fields)


def test_answers_are_long_by_their_mean_length() -> None:
    assert not are_long(sampled_of(["a"] * (LONG + 1), ["a"] * (LONG - 1)))
    assert are_long(sampled_of(["a"] * (LONG + 2), ["a"] * (LONG - 1)))


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("token", [0, 1, 20, 31, 32, 33, 64, 100, LONG + 29, LONG + 99])
def test_a_folded_line_shows_the_token_that_is_to_be_seen(token: int, signs: bool) -> None:
    seen = dict.fromkeys(range(2), token)
    sampled, width = long_answers(), 40
    layout = layout_of(sampled, width, signs, folds=Folds(seen=seen.__getitem__))
    folded = [row for row in layout.rows if row.completion >= 0]
    assert [(row.completion, row.values, row.folded) for row in folded] == [
        (answer, values, True) for answer in (0, 1) for values in ([False, True] if signs else [False])
    ]
    assert min(token, LONG + 29) in [cell.token for cell in folded[0].cells]
    assert folded[0].cells == folded[-1].cells
    unfolded = layout_of(sampled, width - len(MORE), signs, folds=Folds(unfolded=(0, 1)))
    assert folded[0].cells in [row.cells for row in unfolded.rows], "the same lines, with room for the sign"
    end = GUTTER + sum(cell.width for cell in folded[0].cells)
    at = layout.rows.index(folded[0])
    assert [layout.on_more(at, column) for column in (GUTTER, end - 1, end, end + 1)] == [False, False, True, True]


def test_a_folded_line_has_as_many_tokens_as_fit() -> None:
    layout = layout_of(sampled_of(["x"] * 300), 80, folds=Folds(seen=lambda _: 40))
    assert texts(layout)[1:] == ["x" * (80 - GUTTER - len(MORE))]


def test_a_folded_line_turns_only_when_it_is_told() -> None:
    seen = {0: 0, 1: 0}
    layout = layout_of(long_answers(), folds=Folds(seen=seen.__getitem__))
    first = [list(row.cells) for row in layout.rows]
    seen.update({0: 100, 1: 100})
    assert [row.cells for row in layout.rows] == first
    assert layout.turn(1) == range(2, 3)
    assert [row.cells == cells for row, cells in zip(layout.rows, first, strict=True)] == [True, True, False]
    layout.turn_all()
    assert [row.cells == cells for row, cells in zip(layout.rows, first, strict=True)] == [True, False, False]
    short = layout_of(sampled_of(["a"]))
    short.turn_all()
    assert texts(short) == ["Why?", "a"]


def test_one_answer_is_unfolded_among_folded_ones() -> None:
    layout = layout_of(long_answers(), 40, folds=Folds(unfolded=(1,)))
    assert len(layout.rows_of(0)) == 1
    assert len(layout.rows_of(1)) > 10
    assert not layout.on_more(layout.rows_of(1).start, 99)
    empty = layout_of(sampled_of([], ["a"] * 300))
    assert [len(empty.rows_of(answer)) for answer in (0, 1)] == [1, 1]
    assert not empty.rows[1].folded


@pytest.mark.parametrize("width", [-2, 0, 1, 3])
def test_a_hidden_panel_lays_out_answers_and_prompts_without_room(width: int) -> None:
    layout = layout_of(sampled_of(*ANSWERS, prompts=["a1"]), width)
    assert [len(layout.rows_of(answer)) > 0 for answer in range(4)] == [True] * 4


GROWING = (("a",), ("a", " b"), ("a", " b", " c"))


@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("second", range(6))
def test_what_was_laid_out_before_does_not_matter(first: int, second: int) -> None:
    """More tokens or fewer, other ones, other clipping, and copies, one after another in the same layout."""
    clips = np.array([1, 0, 0])
    known: list[tuple[Sampled, Array | None, Folds]] = [
        *((sampled_of(answer), None, Folds()) for answer in GROWING),
        (sampled_of(GROWING[2]), None, Folds({0: 2})),
        (sampled_of(GROWING[2]), clips, Folds()),
        (sampled_of(["x", " b", " c"], token_ids=np.array([7, 1, 2], dtype=np.int32)), None, Folds()),
    ]
    layout = TokenLayout()
    for number in (first, second):
        sampled, marks, folds = known[number]
        layout.arrange(sampled, marks, [0], 7, False, folds)
    assert layout.rows == layout_of(sampled, 7, clips=marks, folds=folds).rows


def test_growing_long_answers_are_laid_out_as_if_at_once() -> None:
    layout, seen = TokenLayout(), {0: 0, 1: 0}
    for length in (LONG + 1, LONG + 2, LONG + 40):
        for token in (0, length - 1, 50):
            seen.update({0: token, 1: token})
            layout.arrange(long_answers(length), None, [1, 0], 30, False, Folds(seen=seen.__getitem__))
            fresh = TokenLayout()
            fresh.arrange(long_answers(length), None, [1, 0], 30, False, Folds(seen=seen.__getitem__))
            assert layout.rows == fresh.rows
