"""Counts over the answers of one batch: repetitions, template marks, and which of two answers earned more."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlplay.trace.records import Array, Sampled

_GRAM = 4
_MOST = 128
"""Answers whose repetitions are counted: of very large batches the first ones are sample enough."""
_MARK = re.compile(r"<\|[^<>|\s]{1,40}\|>|</?s>|\[/?INST\]|<(?:start|end)_of_turn>")
"""How chat templates write the marks of turns: ChatML, Llama, Mistral, Gemma."""
_LONGEST_VALUE = 40
GOLD_COLUMNS = {
    "answer", "answers", "solution", "target", "label", "gold", "ground_truth", "gts", "expected", "reference",
    "reference_answer",
}  # fmt: skip
"""Names under which data sets give a prompt's right answer."""


@dataclass(frozen=True)
class WinCount:
    """Of `all` pairs of answers to one prompt with different rewards, how many were `won`; a draw counts a half."""

    won: float = 0.0
    all: int = 0

    def __add__(self, other: WinCount) -> WinCount:
        return WinCount(self.won + other.won, self.all + other.all)

    @property
    def share(self) -> float:
        """The share that was won; a half without pairs."""
        return self.won / self.all if self.all else 0.5


def rows(sampled: Sampled) -> Iterator[slice]:
    """Where each answer's tokens are in the flat arrays."""
    return (slice(int(a), int(b)) for a, b in zip(sampled.offsets, sampled.offsets[1:], strict=False))


def texts(sampled: Sampled) -> list[str]:
    """The text of each answer, without the marks of a template."""
    return [_MARK.sub("", "".join(sampled.texts[row])) for row in rows(sampled)]


def repetition(sampled: Sampled) -> Array:
    """The share of each answer's 4-grams that repeat an earlier one in it, float64 [N]: seq-rep-4.

    Welleck et al. 2019, arXiv:1908.04319.
    """
    shares = []
    for row in list(rows(sampled))[:_MOST]:
        known, ids = np.unique(sampled.token_ids[row][sampled.mask[row] == 1], return_inverse=True)
        count = max(len(ids) - _GRAM + 1, 0)
        grams = np.zeros(count, dtype=np.int64)  # each as one number: 4-grams of 55,000 different tokens fit
        for at in range(_GRAM):
            grams = grams * len(known) + ids[at : at + count]
        shares.append(1 - len(np.unique(grams)) / count if count else 0.0)
    return np.array(shares)


def long_answers(sampled: Sampled) -> int:
    """How many answers have two 4-grams that do not overlap: in others nothing can repeat."""
    own = np.concatenate([[0], np.cumsum(sampled.mask == 1)])
    return int((own[sampled.offsets[1:]] - own[sampled.offsets[:-1]] >= 2 * _GRAM).sum())


def compared(group: Array, rewards: Array, more: Array, kept: Array) -> WinCount:
    """Whether of two answers to one prompt the one with `more` earned more; pairs with equal `more` do not count.

    `rewards` and `more` are [N]; only answers in `kept`, bool [N], with a finite reward count.
    """
    won, count = 0.0, 0
    kept = kept & np.isfinite(rewards)
    for each in np.unique(group):
        mine = kept & (group == each)
        reward, size = rewards[mine].astype(np.float64), more[mine].astype(np.float64)
        gained = np.sign(np.subtract.outer(reward, reward))
        larger = np.subtract.outer(size, size) > 0
        counted = larger & (gained != 0)
        won += float((gained[counted] > 0).sum())
        count += int(counted.sum())
    return WinCount(won, count)


def values(columns: dict[str, Any]) -> dict[str, str]:
    """The columns of a prompt that an answer may contain: numbers and short texts."""
    kinds = (str, int, float)
    said = {name: str(value) for name, value in columns.items() if isinstance(value, kinds) and value is not True}
    return {name: value for name, value in said.items() if 0 < len(value.strip()) <= _LONGEST_VALUE}


def containing(sampled: Sampled, answers: list[str]) -> dict[str, Array]:
    """By column, which answers contain the column's value as a whole word or number: bool [N].

    Only columns whose value differs between prompts: these say something about the prompt's answer. Of a single prompt,
    only columns that are named as the right answer.
    """
    wanted = [values(columns) for columns in sampled.columns]
    names = {name for each in wanted for name in each}
    lowered, found = [text.lower() for text in answers], {}
    for name in sorted(names):
        differs = len({each.get(name) for each in wanted}) > 1
        if not differs and (len(wanted) > 1 or name.lower() not in GOLD_COLUMNS):
            continue
        said = [each[name].strip().lower() if name in each else "" for each in wanted]
        patterns = [whole(value) for value in said]
        found[name] = np.array([
            said[g] != "" and said[g] in text and patterns[g].search(text) is not None
            for g, text in zip(sampled.group.tolist(), lowered, strict=True)
        ])  # fmt: skip
    return found


def whole(value: str) -> re.Pattern[str]:
    """The value as a whole word or number."""
    return re.compile(rf"(?<![\w.-]){re.escape(value)}(?!\w|\.\d)")


def marked(sampled: Sampled) -> Array:
    """The tokens that are a mark of a template, except the last one of each answer: int64 indices, ascending.

    Of an episode, without the environment's tokens, and without the mark that ends a turn before them.
    """
    marks = {text for text in set(sampled.texts) if _MARK.fullmatch(text)}
    found = np.array([at for at, text in enumerate(sampled.texts) if text in marks] if marks else [], dtype=np.int64)
    said = np.append(sampled.mask == 0, False)
    kept: Array = found[~(np.isin(found, sampled.offsets[1:] - 1) | said[found] | said[found + 1])]
    return kept


def marks_within(sampled: Sampled, marked: Array) -> Counter[str]:
    """In how many answers each mark of a template stands before the last token; `marked` is from the function above."""
    owners = np.searchsorted(sampled.offsets, marked, side="right").tolist()
    return Counter(text for _, text in {(owner, sampled.texts[at]) for owner, at in zip(owners, marked, strict=True)})


def openings(sampled: Sampled) -> Counter[str]:
    """The marks that answers of more than one token begin with, by how many do."""
    firsts = (sampled.texts[row.start] for row in rows(sampled) if row.stop - row.start > 1)
    return Counter(text for text in firsts if _MARK.fullmatch(text))


def tails(sampled: Sampled) -> Counter[str]:
    """The commonest token of the last quarter of each answer that was cut, by how many answers."""
    found: Counter[str] = Counter()
    for row, cut in zip(rows(sampled), sampled.truncated, strict=True):
        if cut and row.stop > row.start:  # another trainer may record an answer without tokens
            last = sampled.token_ids[row][-max(1, (row.stop - row.start) // 4) :].tolist()
            found[sampled.pieces.get(Counter(last).most_common(1)[0][0], "?")] += 1
    return found


def whole_marks(sampled: Sampled) -> int:
    """How many tokens of the prompts are marks of a template."""
    return sum(_MARK.fullmatch(piece) is not None for piece in sampled.prompt_texts)


def alike_prompts(sampled: Sampled) -> tuple[int, int]:
    """Of how many different prompts the tokens are known, and how many have the same tokens as another."""
    starts = zip(sampled.prompt_offsets, sampled.prompt_offsets[1:], strict=False)
    tokens = {text: sampled.prompt_ids[a:b].tobytes() for text, (a, b) in zip(sampled.prompts, starts, strict=False)}
    if not len(sampled.prompt_ids) or sampled.prompt_ids.min() < 0:
        return 0, 0
    count = Counter(tokens.values())
    return len(tokens), sum(count[ids] > 1 for ids in tokens.values())


def broken_marks(sampled: Sampled) -> dict[str, int]:
    """The template's marks that the tokenizer cuts into pieces, with how many pieces.

    Empty if a prompt holds any mark as one token: some templates write a few of their marks as plain text.
    """
    broken: dict[str, int] = {}
    for start, end in zip(sampled.prompt_offsets, sampled.prompt_offsets[1:], strict=False):
        pieces = sampled.prompt_texts[start:end]
        if any(_MARK.fullmatch(piece) for piece in pieces):
            return {}
        ends = np.cumsum([len(piece) for piece in pieces])
        for mark in _MARK.finditer("".join(pieces)):
            first, last = np.searchsorted(ends, [mark.start(), mark.end() - 1], side="right")
            broken.setdefault(mark.group(), int(last - first) + 1)
    return {mark: count for mark, count in broken.items() if count > 1}
