"""Tokens in lines: nothing lost, nothing too wide, and growing a text gives the same lines as starting over."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rlplay.ui.format.wrap import wrap

TEXTS = st.lists(
    st.sampled_from([" the", " answer", "4", "2", "*", " 東京", "⏎", " supercalifragilistic", "◦"]), max_size=40
)


def lines_of(texts, width, start=None):
    return wrap(texts, width, [text == "⏎" for text in texts], start)


@given(TEXTS, st.integers(2, 30))
def test_every_token_is_there_in_order_and_fits(texts, width):
    lines = lines_of(texts, width)
    assert "".join(cell.text for line in lines for cell in line) == "".join(texts)
    assert all(sum(cell.width for cell in line) <= width for line in lines)
    assert all(cell.width == cell_len(cell.text) for line in lines for cell in line)
    tokens = [cell.token for line in lines for cell in line]
    assert tokens == sorted(tokens)
    assert all(lines)


@given(TEXTS, st.integers(2, 30), st.integers(0, 40))
def test_growing_gives_the_same_lines(texts, width, first):
    grown = lines_of(texts, width, lines_of(texts[:first], width))
    assert grown == lines_of(texts, width)


def test_words_of_several_tokens_stay_together():
    lines = lines_of([" is", " 2", "8", "4"], 5)
    assert ["".join(cell.text for cell in line) for line in lines] == [" is", " 284"]


def test_a_newline_begins_a_line():
    lines = lines_of(["a", "⏎", "b", "c"], 2)
    assert ["".join(cell.text for cell in line) for line in lines] == ["a⏎", "bc"]
