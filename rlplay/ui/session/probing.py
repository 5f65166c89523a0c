"""The state of the probe as plain data: a prefix of an answer, and the engine's answers about it."""

from __future__ import annotations

from typing import Any

import msgspec

from rlplay.link.messages import EndProbe
from rlplay.trace.questions import (
    AnyProbed,
    Continue,
    Continued,
    Estimate,
    Estimated,
    Peek,
    Peeked,
    Prefix,
    Recall,
    Recalled,
    Tail,
    Writer,
)
from rlplay.trace.records import Sampled
from rlplay.ui.session.answer_at import answer_at
from rlplay.ui.session.subjects import Subject, text_subject

TAILS = 6
SAMPLES = 256
"""Answers to sample for a value, at most."""
RECALLED = 6
"""Candidates to show over training."""

Key = tuple[tuple[int, ...], Writer]
"""The tokens of a prefix, and the writer of its continuations."""


class Probing:
    """A prompt, an answer to it and a place in the answer. Questions are about the next token at that place.

    Methods that need the engine return the question for it; `take` takes its answers. `version` is another
    one whenever there is something new to draw.
    """

    def __init__(self) -> None:
        self.prompt = ""
        self.columns: dict[str, Any] | None = None
        self.plain = False
        self.answer: list[int] = []  # including the tokens after the place
        self.texts: list[str] = []
        self.pieces: dict[int, str] = {}
        self.place = 0
        self.rank = 0  # the candidate chosen
        self.writer: Writer = "policy"
        self.peeked: Peeked | None = None  # may be for an earlier place
        self.tails: dict[Key, list[Tail]] = {}
        self.values: dict[Key, Estimated] = {}
        self.courses: dict[tuple[int, ...], Recalled] = {}
        self.asked: Continue | Estimate | Recall | None = None
        self.refused = ""
        self.version = 0
        self._draws = 0
        self._regenerating = False

    @property
    def prefix(self) -> Prefix:
        """The prefix that questions are about."""
        return Prefix(self.prompt, self.answer[: self.place], self.columns, self.plain)

    @property
    def begun(self) -> tuple[int, ...]:
        """The tokens of the prefix."""
        return tuple(self.answer[: self.place])

    @property
    def fresh(self) -> bool:
        """Whether the distributions shown are for the current place."""
        return self.peeked is not None and self.peeked.prefix == self.prefix

    @property
    def chosen(self) -> int | None:
        """The candidate under the cursor, if the candidates of the place are known."""
        if self.peeked is None or not self.fresh or not self.peeked.top_ids:
            return None
        return self.peeked.top_ids[self.rank]

    @property
    def subject(self) -> Subject | None:
        """The candidate under the cursor, to ask what moved it; None if none is known."""
        peeked, chosen = self.peeked, self.chosen
        if peeked is None or chosen is None or not peeked.prompt_ids:
            return None
        return text_subject(self.prompt, peeked.prompt_ids, self.begun, chosen, peeked.top_ids, self.pieces)

    @property
    def vacant(self) -> bool:
        """Whether there is no prompt yet."""
        return not self.prompt and not self.answer

    def open(self, sampled: Sampled | None, cursor: tuple[int, int]) -> None:
        """Start at the token under the cursor of the main screen, if there is one."""
        at = answer_at(sampled, cursor)
        if at is None:
            return
        self._begin(at.prompt, at.columns)
        self.answer, self.texts, self.pieces, self.place = at.ids, at.texts, at.pieces, at.token

    def type(self, prompt: str, columns: dict[str, Any] | None = None, plain: bool | None = None) -> Peek:
        """Start with a prompt and an empty answer."""
        self._begin(prompt, columns)
        self.plain = self.plain if plain is None else plain
        return self.peek()

    def _begin(self, prompt: str, columns: dict[str, Any] | None) -> None:
        self.prompt, self.columns = prompt, columns
        self.answer, self.texts, self.place = [], [], 0
        self.tails, self.values, self.courses = {}, {}, {}
        self.peeked = None

    def give(self, columns: dict[str, Any] | None) -> Peek:
        """Set other columns for the same prefix; None for those of the run."""
        self.columns = columns
        self.tails, self.values = {}, {}
        return self.peek()

    def toggle_template(self) -> Peek:
        """Switch between the chat template and plain text."""
        return self.type(self.prompt, None, not self.plain)

    def other_writer(self) -> None:
        """Switch the writer between the policy and the reference."""
        self.writer = "reference" if self.writer == "policy" else "policy"
        self.version += 1

    def peek(self) -> Peek:
        """Ask for the next-token distributions at the place."""
        self.refused = ""
        self.version += 1
        return Peek(self.prefix)

    def move(self, step: int) -> Peek | None:
        """Move the place within the answer."""
        return self.go(self.place + step)

    def go(self, place: int) -> Peek | None:
        """Go to a place of the answer; None if it is the current one."""
        place = max(0, min(place, len(self.answer)))
        if place == self.place:
            return None
        self.place = place
        return self.peek()

    def choose(self, step: int) -> None:
        """Choose another candidate."""
        if self.peeked is not None and self.fresh:
            self.rank = max(0, min(self.rank + step, len(self.peeked.top_ids) - 1))
            self.version += 1

    def pick(self, text: str) -> bool:
        """Choose the candidate with this text; False if the candidates are not known yet, or none has it."""
        known = self.peeked.top_ids if self.peeked is not None and self.fresh else []
        ranks = [rank for rank, token in enumerate(known) if self.pieces.get(token) == text]
        if ranks:
            self.rank = ranks[0]
            self.version += 1
        return bool(ranks)

    def force(self) -> list[Peek | Continue]:
        """Put the chosen candidate at the place and ask for a continuation; empty if no candidate is known."""
        token = self.chosen
        if token is None or self.peeked is None or self.peeked.ended:
            return []
        piece = self.pieces.get(token, "")
        self.answer = [*self.answer[: self.place], token]
        self.texts = [*self.texts[: self.place], piece]
        self.place += 1
        return [self.peek(), self._go_on(Continue(self.prefix, self.writer, draw=self._next_draw()))]

    def greedy(self) -> Continue:
        """Ask for the greedy continuation."""
        return self._go_on(Continue(self.prefix, self.writer, greedy=True))

    def _go_on(self, question: Continue) -> Continue:
        self._regenerating = True
        self._ask(question)
        return question

    def sample(self) -> Continue:
        """Ask for several continuations, different ones each time."""
        self._regenerating = False
        question = Continue(self.prefix, self.writer, TAILS, draw=self._next_draw())
        self._ask(question)
        return question

    def estimate(self) -> Estimate | EndProbe:
        """Ask for the value of the prefix, or stop the current estimate."""
        if isinstance(self.asked, Estimate):
            return EndProbe()
        question = Estimate(self.prefix, self.writer, SAMPLES)
        self._ask(question)
        return question

    def recall(self) -> Recall | None:
        """Ask for the candidates' probabilities over training; None if no candidates are known."""
        if self.peeked is None or self.chosen is None:
            return None
        question = Recall(self.prefix, list(dict.fromkeys([*self.peeked.top_ids[:RECALLED], self.chosen])))
        self._ask(question)
        return question

    def recall_on(self, update: int) -> Recall | None:
        """After `update`: ask for what the chart lacks, and clear all charts if the run went back; None if complete."""
        if any(course.updates and course.updates[-1] > update for course in self.courses.values()):
            self.courses = {}
            self.version += 1
        known = self.courses.get(self.begun)
        if known is None or self.asked is not None or not known.updates or known.updates[-1] == update:
            return None
        return Recall(self.prefix, known.token_ids, known.updates[-1] + 1)

    def _ask(self, question: Continue | Estimate | Recall) -> None:
        self.asked, self.refused = question, ""
        self.version += 1

    def _next_draw(self) -> int:
        self._draws += 1
        return self._draws

    def refuse(self, reason: str) -> None:
        """Say why nothing is asked."""
        self.refused = reason
        self.version += 1

    def take(self, answer: AnyProbed) -> None:
        """Take an answer of the engine. Answers about another prefix are kept for a return to it, or ignored."""
        here = answer.prefix == self.prefix
        chosen = self.chosen
        if answer.refused:
            self.refused = answer.refused if here else self.refused
        match answer:
            case Peeked() if here:
                self.peeked = answer
                if not answer.refused:
                    self.texts[: self.place] = answer.texts
                    self.pieces |= answer.pieces
                    self._choose(chosen)
            case Continued():
                self._continued(answer, here)
            case Estimated():
                if answer.count and answer.prefix.prompt == self.prompt:
                    self.values[tuple(answer.prefix.answer), answer.writer] = answer
                if answer.done or answer.refused:
                    self._answered(answer)
            case Recalled():
                self._recalled(answer)
            case _:
                return
        self.version += 1

    def _recalled(self, answer: Recalled) -> None:
        if answer.done or answer.refused:
            self._answered(answer)
        if not answer.updates or answer.prefix.prompt != self.prompt:
            return
        place = tuple(answer.prefix.answer)
        before = self.courses.get(place)
        if before is not None and before.token_ids == answer.token_ids:
            kept = sum(update < answer.updates[0] for update in before.updates)
            updates = [*before.updates[:kept], *answer.updates]
            rows = [*before.probabilities[:kept], *answer.probabilities]
            answer = msgspec.structs.replace(answer, updates=updates, probabilities=rows)
        self.courses[place] = answer

    def _choose(self, token: int | None) -> None:
        """Put the cursor on a candidate; at first, on the token at the place."""
        assert self.peeked is not None
        if token is None and self.place < len(self.answer):
            token = self.answer[self.place]
        self.rank = self.peeked.top_ids.index(token) if token in self.peeked.top_ids else 0

    def _continued(self, answer: Continued, here: bool) -> None:
        regenerated = self._regenerating and here
        self._answered(answer)
        if not answer.tails or answer.prefix.prompt != self.prompt:
            return
        self.pieces |= answer.pieces
        if regenerated:
            tail = answer.tails[0]
            self.answer = [*self.answer[: self.place], *tail.token_ids]
            self.texts = [*self.texts[: self.place], *tail.texts]
            if self.fresh:
                self._choose(None)
        self.tails[tuple(answer.prefix.answer), answer.writer] = answer.tails

    def _answered(self, answer: Continued | Estimated | Recalled) -> None:
        asked = type(self.asked), type(answer)
        matches = asked in ((Continue, Continued), (Estimate, Estimated), (Recall, Recalled))
        if self.asked is not None and matches and self.asked.prefix == answer.prefix:
            self.asked = None
