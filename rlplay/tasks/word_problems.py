"""Two-step word problems: `Roger has 5 balls and buys 2 cans of 3 balls. How many balls does Roger have?`"""

from __future__ import annotations

import msgspec

from rlplay.tasks.split import is_held_out, variant
from rlplay.tasks.task import Example, Task, chat
from rlplay.tasks.verifiers import correct, mentioned, shown_steps, worked

NAMES = ("Roger", "Anna", "Tom", "Maria", "Ben", "Lucy", "Omar", "Mei")
GOODS = (
    ("balls", "cans"),
    ("books", "boxes"),
    ("apples", "bags"),
    ("pens", "packs"),
    ("coins", "jars"),
    ("eggs", "trays"),
)
_WORDINGS = 5


class Operands(msgspec.Struct, frozen=True):
    """The numbers of one problem: `start` things, and then `groups` containers of `each` things."""

    start: int
    groups: int
    each: int

    @property
    def bought(self) -> int:
        return self.groups * self.each

    @property
    def answer(self) -> int:
        return self.start + self.bought

    @property
    def steps(self) -> list[str]:
        """The two steps as the worked answers of the corpus write them."""
        return [f"{self.groups}*{self.each}={self.bought}", f"{self.start}+{self.bought}={self.answer}"]


_LESSON_OPERANDS = Operands(5, 2, 3)
_ALL = [Operands(s, g, e) for s in range(2, 10) for g in range(2, 6) for e in range(2, 7)]
# The split is by operands, not by sentence: known numbers with a new name would test nothing.
HELD_OUT_OPERANDS = [
    numbers
    for numbers in _ALL
    if numbers != _LESSON_OPERANDS and is_held_out(f"{numbers.start}+{numbers.groups}*{numbers.each}", one_in=5)
]
TRAIN_OPERANDS = [_LESSON_OPERANDS] + [n for n in _ALL if n != _LESSON_OPERANDS and n not in HELD_OUT_OPERANDS]


def question(numbers: Operands, name: str, things: str, containers: str) -> str:
    """The prompt of one problem."""
    return (
        f"{name} has {numbers.start} {things} and buys {numbers.groups} {containers} of {numbers.each} {things}. "
        f"How many {things} does {name} have?"
    )


def _examples(numbers: Operands) -> list[Example]:
    """The same numbers with a few fixed, different combinations of name and goods."""
    first = 0 if numbers == _LESSON_OPERANDS else variant(str(numbers), len(NAMES) * len(GOODS))
    examples = []
    for k in range(_WORDINGS):
        # 11 shares no factor with the 48 combinations, so no two wordings of one problem are the same.
        choice = (first + 11 * k) % (len(NAMES) * len(GOODS))
        things, containers = GOODS[choice % len(GOODS)]
        prompt = chat(question(numbers, NAMES[choice // len(GOODS)], things, containers))
        examples.append(Example(prompt=prompt, columns={"answer": numbers.answer, "steps": numbers.steps}))
    return examples


def word_problems() -> Task:
    """Multiply, then add; a fifth of the operand triples is held out."""
    return Task(
        name="word_problems",
        summary="Multiply, then add: how many things are there in all?",
        train=[example for numbers in TRAIN_OPERANDS for example in _examples(numbers)],
        held_out=[example for numbers in HELD_OUT_OPERANDS for example in _examples(numbers)],
        rewards={"correct": correct, "mentioned": mentioned, "steps": shown_steps, "worked": worked},
        gold={"correct": correct},
    )
